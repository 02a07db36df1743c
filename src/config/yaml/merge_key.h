/* The key << of YAML 1.1: a mapping takes over what others have. */
#ifndef KILN_CONFIG_YAML_MERGE_KEY_H
#define KILN_CONFIG_YAML_MERGE_KEY_H

#include "config/tree/tree.h"

/* Remember a value of << (a mapping or a list of mappings) in *merged, a list.
 * KILN_E_TYPE, without a message, for anything else. */
KILN_NODISCARD KilnStatus kiln_merge_key_add(const KilnMaker *maker, KilnConfigNode **merged,
                                             KilnConfigNode *value, KilnError *err);
/* Put what the remembered mappings have in front of the map's own keys, which
 * win; of the remembered the first wins. False when memory is out. */
bool kiln_merge_key_apply(KilnArena *arena, KilnConfigNode *map, const KilnConfigNode *merged);

#endif
