/* The merge key <<. */
#include "config/yaml/merge_key.h"

#include <string.h>

KilnStatus kiln_merge_key_add(const KilnMaker *maker, KilnConfigNode **merged,
                              const KilnConfigNode *key, KilnConfigNode *value, KilnError *err)
{
    const KilnEntry alone = { .value = value };
    const bool list = value->kind == KILN_NODE_LIST;
    const KilnEntry *maps = list ? value->entries : &alone;

    if (*merged == NULL)
        *merged = kiln_node_new(maker, KILN_NODE_LIST);
    for (size_t i = 0; i < (list ? value->count : 1); i++) {
        if (maps[i].value->kind != KILN_NODE_MAP) {
            kiln_error_set(err, KILN_E_TYPE,
                           "<< takes a mapping or a list of mappings (usually an alias)");
            return kiln_error_at(err, &key->origin);
        }
        (void)kiln_node_append(maker->arena, *merged, NULL, maps[i].value->origin, maps[i].value);
    }
    return KILN_OK;
}

static void put_entry(KilnArena *arena, KilnConfigNode *map, const KilnEntry *from,
                      KilnConfigNode *value)
{
    KilnEntry *entry = kiln_node_entry(map, from->key);

    if (entry == NULL)
        entry = kiln_node_append(arena, map, from->key, from->key_origin, value);
    if (entry == NULL || value == NULL)
        return;
    value->parent = map;
    entry->value = value;
    entry->key_origin = from->key_origin;
    entry->key_typed = from->key_typed;
}

void kiln_merge_key_apply(KilnArena *arena, KilnConfigNode *map, const KilnConfigNode *merged)
{
    const KilnConfigNode own = *map;

    map->entries = NULL;
    map->count = map->capacity = 0;
    /* Last to first gives PyYAML's order of keys. */
    for (size_t i = merged->count; i-- > 0;) {
        const KilnConfigNode *source = merged->entries[i].value;

        for (size_t j = 0; j < source->count; j++)
            if (kiln_node_entry(&own, source->entries[j].key) == NULL)
                put_entry(arena, map, &source->entries[j],
                          kiln_node_copy(arena, source->entries[j].value));
    }
    for (size_t j = 0; j < own.count; j++)
        put_entry(arena, map, &own.entries[j], own.entries[j].value);
}
