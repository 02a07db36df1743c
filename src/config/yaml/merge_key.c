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

bool kiln_merge_key_apply(KilnArena *arena, KilnConfigNode *map, const KilnConfigNode *merged)
{
    KilnConfigNode own = *map;

    map->entries = NULL;
    map->count = map->capacity = 0;
    /* From the last to the first: the order of keys that PyYAML gives. */
    for (size_t i = merged->count; i-- > 0;) {
        const KilnConfigNode *source = merged->entries[i].value;

        for (size_t j = 0; j < source->count; j++) {
            const KilnEntry *from = &source->entries[j];
            KilnEntry *entry = kiln_node_entry(map, from->key);
            KilnConfigNode *value = kiln_node_copy(arena, from->value);

            if (kiln_node_entry(&own, from->key) != NULL)
                continue;
            if (entry == NULL)
                entry = kiln_node_append(arena, map, from->key, from->key_origin, value);
            if (entry == NULL || value == NULL)
                return false;
            value->parent = map;
            entry->value = value;
            entry->key_origin = from->key_origin;
            entry->key_typed = from->key_typed;
        }
    }
    for (size_t j = 0; j < own.count; j++) {
        KilnEntry *entry = kiln_node_append(arena, map, own.entries[j].key,
                                            own.entries[j].key_origin, own.entries[j].value);

        if (entry == NULL)
            return false;
        entry->key_typed = own.entries[j].key_typed;
    }
    return true;
}
