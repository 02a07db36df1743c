/* Former names of options in a tree: their values move to the present names. */
#include "registry/rename.h"

#include "config/provenance/error_list.h"
#include "config/provenance/origin.h"
#include "config/tree/tree.h"
#include "schema/table.h"

void kiln_rename_warn(const KilnConfig *config, const KilnConfigNode *map, const KilnField *row,
                      const KilnOrigin *origin, KilnErrors *errors)
{
    const char *path = kiln_node_path(config, map), *dot = path[0] != '\0' ? "." : "";
    KilnError err;

    kiln_error_set(&err, KILN_E_KEY, "%s%s%s is now %s%s%s: %s", path, dot, row->name, path, dot,
                   row->renamed, row->help);
    kiln_error_at(&err, origin);
    kiln_errors_warn(errors, &err);
}

static KilnStatus given_twice(const KilnConfig *config, const KilnConfigNode *map,
                              const KilnField *row, const KilnEntry *old, const KilnEntry *new,
                              KilnErrors *errors)
{
    const char *path = kiln_node_path(config, map), *dot = path[0] != '\0' ? "." : "";
    KilnText origin = { 0 };
    KilnError err;

    kiln_origin_write(&origin, &new->value->origin);
    kiln_error_set(&err, KILN_E_KEY,
                   "%s%s%s is now %s, and both are given; keep only the new one\n  %s from %s",
                   path, dot, row->name, row->renamed, row->renamed,
                   origin.data != NULL ? origin.data : "");
    kiln_error_at(&err, &old->key_origin);
    kiln_text_release(&origin);
    return kiln_errors_add(errors, &err);
}

/* Move the value to the option's present name. */
static KilnStatus rename_entry(const KilnConfig *config, KilnConfigNode *map, const KilnField *row,
                               KilnEntry *old, KilnErrors *errors)
{
    KilnConfigNode *value = old->value;
    KilnEntry *new = kiln_node_entry(map, row->renamed);

    if (new != NULL &&new->value->layer >= value->layer) {
        KilnStatus status = given_twice(config, map, row, old, new, errors);
        kiln_node_remove(map, old);
        return status;
    }
    kiln_rename_warn(config, map, row, &old->key_origin, errors);
    if (new == NULL) {
        kiln_node_rename(map, old, row->renamed);
    } else {
        kiln_node_replace(new, map, value);
        kiln_node_remove(map, old);
    }
    return KILN_OK;
}

static KilnStatus first_of(KilnStatus first, KilnStatus status)
{
    return first != KILN_OK ? first : status;
}

KilnStatus kiln_rename_options(const KilnConfig *config, KilnConfigNode *map,
                               const KilnField *fields, KilnErrors *errors)
{
    KilnStatus status = KILN_OK;

    if (map->kind != KILN_NODE_MAP)
        return KILN_OK;
    for (const KilnField *f = fields; f != NULL && f->type != KILN_TYPE_END; f++) {
        KilnEntry *entry = f->renamed != NULL ? kiln_node_entry(map, f->name) : NULL;

        if (entry != NULL)
            status = first_of(status, rename_entry(config, map, f, entry, errors));
    }
    for (const KilnField *f = fields; f != NULL && f->type != KILN_TYPE_END; f++) {
        KilnConfigNode *node = kiln_node_get(map, f->name);

        if (f->type != KILN_TYPE_STRUCT || f->renamed != NULL || node == NULL)
            continue;
        if (f->shape == KILN_ONE)
            status = first_of(status, kiln_rename_options(config, node, f->fields, errors));
        for (size_t i = 0; f->shape != KILN_ONE && i < node->count; i++)
            status = first_of(
                status, kiln_rename_options(config, node->entries[i].value, f->fields, errors));
    }
    return status;
}
