/* The key << of YAML 1.1: a mapping inherits the keys of others. */
#ifndef KILN_CONFIG_YAML_MERGE_KEY_H
#define KILN_CONFIG_YAML_MERGE_KEY_H

#include "config/tree/tree.h"

/* Add a value of << (a mapping or a list of mappings) to *merged, a list. KILN_E_TYPE, at the key,
 * for anything else. Neither function fails when memory is out: the arena remembers it. */
KILN_NODISCARD KilnStatus kiln_merge_key_add(const KilnMaker *maker, KilnConfigNode **merged,
                                             const KilnConfigNode *key, KilnConfigNode *value,
                                             KilnError *err);
/* Insert the entries of the merged mappings before the map's own, which win; of the merged ones
 * the first wins. */
void kiln_merge_key_apply(KilnArena *arena, KilnConfigNode *map, const KilnConfigNode *merged);

#endif
