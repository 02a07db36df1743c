/* Merges trees. */
#include "config/merge.h"

#include <stdio.h>

#include "config/interpolate.h"
#include "config/mark.h"
#include "config/state.h"

static bool is_scalar(const KilnConfigNode *node, KilnScalar type)
{
    return node->kind == KILN_NODE_SCALAR && node->scalar == type;
}

KilnStatus kiln_merge_fits(const KilnConfig *config, const KilnConfigNode *dest,
                           const KilnConfigNode *src, const char *key, KilnError *err)
{
    const KilnConfigNode *map;

    if (dest->kind == src->kind || dest->kind == KILN_NODE_SCALAR || src->kind == KILN_NODE_SCALAR)
        return KILN_OK;
    map = dest->kind == KILN_NODE_MAP ? dest : src;
    char where[512] = "";
    kiln_node_where(config, dest, dest, where, sizeof(where));
    kiln_error_set(err, KILN_E_TYPE, "%s: %s can't be laid over %s (%s); give both the same shape",
                   key, map == src ? "a mapping" : "a list", map == src ? "a list" : "a mapping",
                   where);
    return KILN_E_TYPE;
}

/* A mapping over a reference to a mapping extends a copy of what is referred to. */
static KilnStatus expand_reference(KilnConfig *config, KilnEntry *entry, KilnConfigNode *dest,
                                   KilnError *err)
{
    const KilnConfigNode *target = NULL;
    KilnConfigNode *copy;

    if (kiln_config_resolve(config, entry->value, &target, NULL) < 0 ||
        target->kind != KILN_NODE_MAP)
        return KILN_OK; /* leads nowhere yet: it is replaced */
    copy = kiln_node_copy(config->arena, target);
    if (copy == NULL)
        return kiln_error_nomem(err, sizeof(*copy));
    copy->replaced = NULL;
    kiln_node_replace(entry, dest, copy);
    return KILN_OK;
}

static KilnStatus told_at(KilnErrors *errors, KilnError *err, const KilnOrigin *origin)
{
    if (err->origin.source == NULL && err->status != KILN_E_NOMEM)
        kiln_error_at(err, origin);
    return kiln_errors_add(errors, err);
}

static KilnStatus add_entry(KilnConfig *config, KilnConfigNode *dest, const KilnEntry *from,
                            KilnErrors *errors)
{
    KilnError err = { 0 };
    KilnEntry *entry = kiln_node_append(config->arena, dest, from->key, from->key_origin,
                                        from->value);

    if (entry == NULL)
        return kiln_errors_add(errors, (kiln_error_nomem(&err, sizeof(*entry)), &err));
    entry->key_typed = from->key_typed;
    return kiln_mark_settle(config, from->value, &err) < 0 ? kiln_errors_add(errors, &err)
                                                           : KILN_OK;
}

static KilnStatus merge_entry(KilnConfig *config, KilnConfigNode *dest, const KilnEntry *from,
                              KilnErrors *errors)
{
    KilnEntry *entry = kiln_node_entry(dest, from->key);
    KilnConfigNode *value = from->value;
    KilnError err = { 0 };
    KilnStatus status;

    if (value->mark != KILN_MARK_NONE) {
        status = kiln_mark_apply(config, dest, from->key, from->key_origin, value, &err);
        return status < 0 ? told_at(errors, &err, &value->origin) : KILN_OK;
    }
    if (entry == NULL)
        return add_entry(config, dest, from, errors);
    if (is_scalar(value, KILN_SCALAR_MISSING))
        return KILN_OK;
    if (value->kind == KILN_NODE_MAP && is_scalar(entry->value, KILN_SCALAR_INTERPOLATION)) {
        status = expand_reference(config, entry, dest, &err);
        if (status < 0)
            return kiln_errors_add(errors, &err);
    }
    if (value->kind == KILN_NODE_MAP && entry->value->kind == KILN_NODE_MAP)
        return kiln_merge(config, entry->value, value, errors);
    status = kiln_merge_fits(config, entry->value, value, from->key, &err);
    if (status < 0)
        return told_at(errors, &err, &value->origin);
    kiln_node_replace(entry, dest, value);
    return KILN_OK;
}

KilnStatus kiln_merge(KilnConfig *config, KilnConfigNode *dest, KilnConfigNode *src,
                      KilnErrors *errors)
{
    KilnStatus first = KILN_OK;

    for (size_t i = 0; i < src->count; i++) {
        KilnStatus status = merge_entry(config, dest, &src->entries[i], errors);

        if (first >= 0)
            first = status;
    }
    return first;
}
