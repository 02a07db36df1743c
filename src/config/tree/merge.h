/* Merges one tree into another. */
#ifndef KILN_CONFIG_TREE_MERGE_H
#define KILN_CONFIG_TREE_MERGE_H

#include "config/tree/tree.h"

/* Merge `src` into `dest`, both mappings: mappings merge key by key, other values override and
 * keep the old value in their history; ??? overrides nothing. A list over a mapping, or the other
 * way round, is an error. A value with a mark does what the mark says (edit.h). Takes over `src`'s
 * nodes. Errors go to `errors`; returns the first one's status. */
KilnStatus kiln_merge(KilnConfig *config, KilnConfigNode *dest, KilnConfigNode *src,
                      KilnErrors *errors);
/* The mapping's _target_ becomes `to` (a node with its origin, not yet in the mapping). If that is
 * another component, both known to the hooks, drop the mapping's options except those that an
 * argument gave, and those in `src` (the mapping to be merged next; may be NULL), which become
 * history of src's. */
KILN_NODISCARD KilnStatus kiln_merge_retarget(KilnConfig *config, KilnConfigNode *map,
                                              const KilnConfigNode *to, const KilnConfigNode *src,
                                              KilnError *err);
/* Does `to` make it another component? */
bool kiln_merge_is_retarget(const KilnConfig *config, const KilnConfigNode *map,
                            const KilnConfigNode *to);
/* KILN_OK, or the error, without src's origin, of a mapping that meets a list. */
KILN_NODISCARD KilnStatus kiln_merge_fits(const KilnConfig *config, const KilnConfigNode *dest,
                                          const KilnConfigNode *src, const char *key,
                                          KilnError *err);

#endif
