/* The merge key <<. */
#include "config/yaml/merge_key.h"

#include <string.h>

static KilnStatus remember(const KilnMaker *maker, KilnConfigNode *list, KilnConfigNode *map,
                           KilnError *err)
{
    if (map->kind != KILN_NODE_MAP)
        return KILN_E_TYPE;
    if (kiln_node_append(maker->arena, list, NULL, map->origin, map) == NULL)
        return kiln_error_nomem(err, sizeof(*map));
    return KILN_OK;
}

KilnStatus kiln_merge_key_add(const KilnMaker *maker, KilnConfigNode **merged,
                              KilnConfigNode *value, KilnError *err)
{
    KilnStatus status = KILN_OK;

    if (*merged == NULL)
        *merged = kiln_node_new(maker, KILN_NODE_LIST);
    if (*merged == NULL)
        return kiln_error_nomem(err, sizeof(**merged));
    if (value->kind != KILN_NODE_LIST)
        return remember(maker, *merged, value, err);
    for (size_t i = 0; i < value->count && status >= 0; i++)
        status = remember(maker, *merged, value->entries[i].value, err);
    return status;
}

static bool put_entry(KilnArena *arena, KilnConfigNode *map, const KilnEntry *from,
                      KilnConfigNode *value)
{
    KilnEntry *entry = kiln_node_entry(map, from->key);

    if (entry == NULL)
        entry = kiln_node_append(arena, map, from->key, from->key_origin, value);
    if (entry == NULL || value == NULL)
        return false;
    value->parent = map;
    entry->value = value;
    entry->key_origin = from->key_origin;
    entry->key_typed = from->key_typed;
    return true;
}

bool kiln_merge_key_apply(KilnArena *arena, KilnConfigNode *map, const KilnConfigNode *merged)
{
    const KilnConfigNode own = *map;
    bool ok = true;

    map->entries = NULL;
    map->count = map->capacity = 0;
    /* Last to first gives PyYAML's order of keys. */
    for (size_t i = merged->count; i-- > 0;) {
        const KilnConfigNode *source = merged->entries[i].value;

        for (size_t j = 0; j < source->count && ok; j++)
            if (kiln_node_entry(&own, source->entries[j].key) == NULL)
                ok = put_entry(arena, map, &source->entries[j],
                               kiln_node_copy(arena, source->entries[j].value));
    }
    for (size_t j = 0; j < own.count && ok; j++)
        ok = put_entry(arena, map, &own.entries[j], own.entries[j].value);
    return ok;
}
