/* Former names of options in a tree: their values move to the present names. */
#include "registry/rename.h"

#include <string.h>

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

static void given_twice(const KilnConfig *config, const KilnConfigNode *map, const KilnField *row,
                        const KilnEntry *old, const KilnEntry *new, KilnErrors *errors)
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
    kiln_errors_add(errors, &err);
}

/* Move the value to the option's present name. False when both names are given. */
static bool rename_entry(const KilnConfig *config, KilnConfigNode *map, const KilnField *row,
                         KilnEntry *old, KilnErrors *errors)
{
    KilnConfigNode *value = old->value;
    KilnEntry *new = kiln_node_entry(map, row->renamed);

    if (new != NULL &&new->value->layer >= value->layer) {
        given_twice(config, map, row, old, new, errors);
        kiln_node_remove(map, old);
        return false;
    }
    kiln_rename_warn(config, map, row, &old->key_origin, errors);
    if (new == NULL) {
        kiln_node_rename(map, old, row->renamed);
    } else {
        kiln_node_replace(new, map, value);
        kiln_node_remove(map, old);
    }
    return true;
}

/* A mapping for the part; of a component, with the default's name. NULL: memory is out. */
static KilnConfigNode *new_part(const KilnMaker *maker, const KilnField *part)
{
    KilnConfigNode *map = kiln_node_new(maker, KILN_NODE_MAP);

    if (part->type == KILN_TYPE_COMPONENT && part->value != NULL)
        kiln_node_append(maker->arena, map, KILN_TARGET_KEY, maker->origin,
                         kiln_node_string(maker, part->value));
    return map;
}

/* Move the value to an option of a part, "loss.label_smoothing", which gets a mapping if it has no
 * value. If it is no mapping, the old key stays and is unknown. False when both names are given. */
static bool move_into_part(const KilnConfig *config, KilnConfigNode *map, const KilnField *fields,
                           const KilnField *row, KilnEntry *old, KilnErrors *errors)
{
    KilnArena *arena = kiln_config_arena(config);
    KilnConfigNode *value = old->value;
    const KilnOrigin origin = old->key_origin;
    const KilnMaker maker = { .arena = arena, .origin = origin, .layer = value->layer };
    const char *dot = strchr(row->renamed, '.');
    const char *part = kiln_arena_strndup(arena, row->renamed, (size_t)(dot - row->renamed));
    KilnConfigNode *into = part != NULL ? kiln_node_get(map, part) : NULL;

    if (part == NULL || (into != NULL && into->kind != KILN_NODE_MAP))
        return true;
    KilnEntry *new = into != NULL ? kiln_node_entry(into, dot + 1) : NULL;
    if (new != NULL &&new->value->layer >= value->layer) {
        given_twice(config, map, row, old, new, errors);
        kiln_node_remove(map, old);
        return false;
    }
    kiln_rename_warn(config, map, row, &origin, errors);
    kiln_node_remove(map, old);
    if (into == NULL) {
        into = new_part(&maker, kiln_table_find(fields, part));
        kiln_node_append(arena, map, part, origin, into);
    }
    if (new != NULL)
        kiln_node_replace(new, into, value);
    else
        kiln_node_append(arena, into, kiln_arena_strdup(arena, dot + 1), origin, value);
    return true;
}

bool kiln_rename_options(const KilnConfig *config, KilnConfigNode *map, const KilnField *fields,
                         KilnErrors *errors)
{
    bool good = true;

    if (map->kind != KILN_NODE_MAP)
        return true;
    for (const KilnField *f = fields; f != NULL && f->type != KILN_TYPE_END; f++) {
        KilnEntry *entry = f->renamed != NULL ? kiln_node_entry(map, f->name) : NULL;

        if (entry != NULL && strchr(f->renamed, '.') != NULL)
            good = move_into_part(config, map, fields, f, entry, errors) && good;
        else if (entry != NULL)
            good = rename_entry(config, map, f, entry, errors) && good;
    }
    for (const KilnField *f = fields; f != NULL && f->type != KILN_TYPE_END; f++) {
        KilnConfigNode *node = kiln_node_get(map, f->name);

        if (f->type != KILN_TYPE_STRUCT || f->renamed != NULL || node == NULL)
            continue;
        if (f->shape == KILN_ONE)
            good = kiln_rename_options(config, node, f->fields, errors) && good;
        for (size_t i = 0; f->shape != KILN_ONE && i < node->count; i++)
            good = kiln_rename_options(config, node->entries[i].value, f->fields, errors) && good;
    }
    return good;
}
