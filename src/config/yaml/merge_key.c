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
        if (*merged == NULL || kiln_node_append(maker->arena, *merged, NULL, maps[i].value->origin,
                                                maps[i].value) == NULL)
            return kiln_error_nomem(err, sizeof(*value));
    }
    return KILN_OK;
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
