/* Merges one tree into another. */
#include "config/tree/merge.h"

#include <string.h>

#include "config/interpolate/interpolate.h"
#include "config/provenance/error_list.h"
#include "config/provenance/error_origin.h"
#include "config/tree/edit.h"
#include "config/composed.h"

KilnStatus kiln_merge_fits(const KilnConfig *config, const KilnConfigNode *dest,
                           const KilnConfigNode *src, const char *key, KilnError *err)
{
    char where[512] = "";

    if (dest->kind == src->kind || dest->kind == KILN_NODE_SCALAR || src->kind == KILN_NODE_SCALAR)
        return KILN_OK;
    kiln_node_where(config, dest, dest, where, sizeof(where));
    return kiln_error_set(err, KILN_E_TYPE,
                          "%s: %s cannot be merged into %s (%s); give both the same shape", key,
                          kiln_node_kind_name(src), kiln_node_kind_name(dest), where);
}

/* A mapping merged into a reference to a mapping extends a copy of the target. */
static KilnStatus expand_reference(KilnConfig *config, KilnEntry *entry, KilnConfigNode *dest,
                                   KilnError *err)
{
    const KilnConfigNode *target = NULL;
    KilnConfigNode *copy;

    if (kiln_config_resolve(config, entry->value, &target, NULL) < 0 ||
        target->kind != KILN_NODE_MAP)
        return KILN_OK; /* no such target yet: the mapping replaces the reference */
    copy = kiln_node_copy(config->arena, target);
    if (copy == NULL)
        return kiln_error_nomem(err, sizeof(*copy));
    copy->replaced = NULL;
    kiln_node_replace(entry, dest, copy);
    return KILN_OK;
}

/* ---- Another component -------------------------------------------------------------- */

static const KilnConfigNode *plain_target(const KilnConfigNode *map)
{
    const KilnConfigNode *target = kiln_node_get(map, "_target_");

    return kiln_node_is_scalar(target, KILN_SCALAR_STR) ? target : NULL;
}

bool kiln_merge_is_retarget(const KilnConfig *config, const KilnConfigNode *map,
                            const KilnConfigNode *to)
{
    const KilnComposeHooks *hooks = config->search.hooks;
    const KilnConfigNode *from = plain_target(map);

    return hooks != NULL && hooks->other_component != NULL && from != NULL &&
           kiln_node_is_scalar(to, KILN_SCALAR_STR) &&
           hooks->other_component(hooks->ctx, from->text, to->text);
}

static bool has_argument(const KilnConfigNode *node)
{
    if (node->layer == KILN_LAYER_ARGUMENT)
        return true;
    for (size_t i = 0; i < node->count; i++)
        if (has_argument(node->entries[i].value))
            return true;
    return false;
}

/* Delete what no argument gave; of mappings that hold both, a part. */
static KilnStatus drop_options(KilnConfig *config, KilnConfigNode *map, const KilnConfigNode *to,
                               const char *why, const KilnConfigNode *src, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = map->count; i-- > 0 && status >= 0;) {
        KilnEntry *entry = &map->entries[i];
        const KilnConfigNode *next = kiln_node_get(src, entry->key);
        bool maps = entry->value->kind == KILN_NODE_MAP &&
                    (next == NULL || next->kind == KILN_NODE_MAP);

        if (strcmp(entry->key, "_target_") == 0)
            continue;
        if (maps && (next != NULL || has_argument(entry->value)))
            status = drop_options(config, entry->value, to, why, next, err);
        else if (next == NULL && !has_argument(entry->value))
            status = kiln_entry_delete(config, map, entry, to->origin, why, err);
    }
    return status;
}

KilnStatus kiln_merge_retarget(KilnConfig *config, KilnConfigNode *map, const KilnConfigNode *to,
                               const KilnConfigNode *src, KilnError *err)
{
    const KilnConfigNode *from = plain_target(map);
    const char *why;

    if (!kiln_merge_is_retarget(config, map, to))
        return KILN_OK;
    why = kiln_arena_printf(config->arena, "_target_ changed from %s to %s", from->text, to->text);
    return why != NULL ? drop_options(config, map, to, why, src, err)
                       : kiln_error_nomem(err, sizeof(*map));
}

/* ---- Merging ------------------------------------------------------------------------- */

static KilnStatus add_entry(KilnConfig *config, KilnConfigNode *dest, const KilnEntry *from,
                            KilnError *err)
{
    KilnEntry *entry = kiln_node_append(config->arena, dest, from->key, from->key_origin,
                                        from->value);

    if (entry == NULL)
        return kiln_error_nomem(err, sizeof(*entry));
    entry->key_typed = from->key_typed;
    return kiln_edit_settle(config, from->value, err);
}

static KilnStatus merge_entry(KilnConfig *config, KilnConfigNode *dest, const KilnEntry *from,
                              KilnErrors *errors)
{
    KilnEntry *entry = kiln_node_entry(dest, from->key);
    KilnConfigNode *value = from->value;
    const bool map = value->kind == KILN_NODE_MAP;
    KilnError err = { 0 };
    KilnStatus status = KILN_OK;

    if (value->mark != KILN_EDIT_NONE) {
        status = kiln_edit_apply(config, dest, from->key, from->key_origin, value, &err);
    } else if (entry == NULL) {
        status = add_entry(config, dest, from, &err);
    } else if (!kiln_node_is_scalar(value, KILN_SCALAR_MISSING)) {
        if (map && kiln_node_is_scalar(entry->value, KILN_SCALAR_INTERPOLATION))
            status = expand_reference(config, entry, dest, &err);
        if (status >= 0 && map && entry->value->kind == KILN_NODE_MAP)
            return kiln_merge(config, entry->value, value, errors);
        if (status >= 0)
            status = kiln_merge_fits(config, entry->value, value, from->key, &err);
        if (status >= 0)
            kiln_node_replace(entry, dest, value);
    }
    if (status >= 0)
        return KILN_OK;
    if (err.origin.source == NULL && status != KILN_E_NOMEM)
        kiln_error_at(&err, &value->origin);
    return kiln_errors_add(errors, &err);
}

KilnStatus kiln_merge(KilnConfig *config, KilnConfigNode *dest, KilnConfigNode *src,
                      KilnErrors *errors)
{
    KilnError err = { 0 };
    KilnStatus first = kiln_merge_retarget(config, dest, plain_target(src), src, &err);

    if (first < 0)
        return kiln_errors_add(errors, &err);
    for (size_t i = 0; i < src->count; i++) {
        KilnStatus status = merge_entry(config, dest, &src->entries[i], errors);

        if (first >= 0)
            first = status;
    }
    return first;
}
