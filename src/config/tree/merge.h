/* Laying one tree over another. */
#ifndef KILN_CONFIG_TREE_MERGE_H
#define KILN_CONFIG_TREE_MERGE_H

#include "config/tree/tree.h"

/* Lay `src` over `dest`, both mappings: mappings merge key by key, everything
 * else replaces and keeps what it replaced in its history. ??? replaces nothing.
 * A list over a mapping, or a mapping over a list, is an error. A value with a mark
 * does what the mark says (edit.h) to what is there. Takes `src`'s
 * nodes over. What does not fit goes to `errors`; the first one's status. */
KilnStatus kiln_merge(KilnConfig *config, KilnConfigNode *dest, KilnConfigNode *src,
                      KilnErrors *errors);
/* The _target_ of the mapping becomes `to` (a node that has its origin, and is not in
 * the mapping yet): when that is another component, both known to the hooks, the
 * mapping's options go that no argument gave. Those that `src` (a mapping that is
 * laid over it next; may be NULL) has as well stay, to be its options' history. */
KILN_NODISCARD KilnStatus kiln_merge_retarget(KilnConfig *config, KilnConfigNode *map,
                                              const KilnConfigNode *to, const KilnConfigNode *src,
                                              KilnError *err);
/* Would it? Then keys of the new component are as good as there. */
bool kiln_merge_is_retarget(const KilnConfig *config, const KilnConfigNode *map,
                            const KilnConfigNode *to);
/* The status and message, without src's origin, of a mapping that meets a list;
 * KILN_OK when they fit. */
KILN_NODISCARD KilnStatus kiln_merge_fits(const KilnConfig *config, const KilnConfigNode *dest,
                                          const KilnConfigNode *src, const char *key,
                                          KilnError *err);

#endif
