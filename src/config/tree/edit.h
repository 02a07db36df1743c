/* Changing what is there instead of laying something over it: appending to a list,
 * removing from it, replacing, deleting. Files say it by tags (!append), arguments
 * by operators. */
#ifndef KILN_CONFIG_TREE_EDIT_H
#define KILN_CONFIG_TREE_EDIT_H

#include "config/tree/tree.h"

/* "!append" of a mark; "" of KILN_EDIT_NONE. */
const char *kiln_edit_tag(KilnEdit mark);
/* The mark of a YAML tag; KILN_EDIT_NONE for any other text. */
KilnEdit kiln_edit_find(const char *tag);

/* In all of these `entry` is `parent`'s, both live in the config's arena, what stood
 * in the entry becomes history, and messages have no origin in front. */

/* A list in the entry's place: the items there, then `more`'s (or `more` itself when
 * it is no list). Null, ??? and an entry without a list below it count as empty; an
 * interpolation to a list is copied. KILN_E_TYPE when something else is there. */
KILN_NODISCARD KilnStatus kiln_list_append(KilnConfig *config, KilnConfigNode *parent,
                                           KilnEntry *entry, KilnConfigNode *more, KilnError *err);
/* The same without the items that equal one of `less`'s (or `less` itself). KILN_E_KEY
 * for one that is not there, with the nearest. */
KILN_NODISCARD KilnStatus kiln_list_remove(KilnConfig *config, KilnConfigNode *parent,
                                           KilnEntry *entry, KilnConfigNode *less, KilnError *err);
/* `value`, a default, comes to lie below `node` (not yet in its history): put the
 * default's items in front where only !append built the list. */
KILN_NODISCARD KilnStatus kiln_list_underlay(KilnConfig *config, KilnConfigNode *node,
                                             const KilnConfigNode *value, KilnError *err);
/* Take the entry out, and remember who did: `why` is NULL when it was asked for. */
KILN_NODISCARD KilnStatus kiln_entry_delete(KilnConfig *config, KilnConfigNode *parent,
                                            KilnEntry *entry, KilnOrigin origin, const char *why,
                                            KilnError *err);
/* Do what value->mark says (not KILN_EDIT_NONE) to `key` of the mapping. */
KILN_NODISCARD KilnStatus kiln_edit_apply(KilnConfig *config, KilnConfigNode *map, const char *key,
                                          KilnOrigin key_origin, KilnConfigNode *value,
                                          KilnError *err);
/* A new value stands where nothing was: marks inside it find nothing to change.
 * KILN_E_KEY, with the origin, for one that needs something (!remove, !delete). */
KILN_NODISCARD KilnStatus kiln_edit_settle(const KilnConfig *config, const KilnConfigNode *value,
                                           KilnError *err);

#endif
