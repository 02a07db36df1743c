/* Edits of values instead of merging over them: append to a list, remove from it, replace, delete.
 * Files use tags (!append), arguments operators. */
#ifndef KILN_CONFIG_TREE_EDIT_H
#define KILN_CONFIG_TREE_EDIT_H

#include "config/tree/tree.h"

/* "!append" of a mark; "" of KILN_EDIT_NONE. */
const char *kiln_edit_tag(KilnEdit mark);
/* The mark of a YAML tag; KILN_EDIT_NONE for any other text. */
KilnEdit kiln_edit_find(const char *tag);

/* In all of these `entry` belongs to `parent`, both live in the config's arena, the old value
 * becomes history, and messages have no origin in front. */

/* Replace the entry by a list: its items, then those of `more` (or `more` itself when it is not a
 * list). Null, ??? and entries without a list count as empty; an interpolation to a list is copied.
 * KILN_E_TYPE for any other value. */
KILN_NODISCARD KilnStatus kiln_list_append(KilnConfig *config, KilnConfigNode *parent,
                                           KilnEntry *entry, KilnConfigNode *more, KilnError *err);
/* Replace the entry by a list without the items that equal one of `less` (or `less` itself).
 * KILN_E_KEY, with the nearest item, when there is no such item. */
KILN_NODISCARD KilnStatus kiln_list_remove(KilnConfig *config, KilnConfigNode *parent,
                                           KilnEntry *entry, KilnConfigNode *less, KilnError *err);
/* `value` becomes the default of `node` (and is not yet in its history): where only !append made
 * the list, the default's items go first. */
KILN_NODISCARD KilnStatus kiln_list_add_default(KilnConfig *config, KilnConfigNode *node,
                                                const KilnConfigNode *value, KilnError *err);
/* Delete the entry and record its removal by `origin`; `why` is NULL when it was requested. */
KILN_NODISCARD KilnStatus kiln_entry_delete(KilnConfig *config, KilnConfigNode *parent,
                                            KilnEntry *entry, KilnOrigin origin, const char *why,
                                            KilnError *err);
/* Apply value->mark (not KILN_EDIT_NONE) to `key` of the mapping. */
KILN_NODISCARD KilnStatus kiln_edit_apply(KilnConfig *config, KilnConfigNode *map, const char *key,
                                          KilnOrigin key_origin, KilnConfigNode *value,
                                          KilnError *err);
/* Check a new value, which replaced nothing: KILN_E_KEY, with the origin, for a mark in it that
 * needs an old value (!remove, !delete). */
KILN_NODISCARD KilnStatus kiln_edit_settle(const KilnConfig *config, const KilnConfigNode *value,
                                           KilnError *err);

/* The path of the value that determines `key`, through references (for optimizer.lr, which is
 * ${lr}: "lr"). In the config's arena; `key` itself when there is no such value. */
const char *kiln_config_source(const KilnConfig *config, const char *key);

/* Replace the scalar at `key` by `value`, which is YAML, with the origin `by`. *ret_before (may be
 * NULL) is the old value: it is in the new one's history, and kiln_config_change_back restores it.
 */
KILN_NODISCARD KilnStatus kiln_config_change(KilnConfig *config, const char *key, const char *value,
                                             const char *by, KilnConfigNode **ret_before,
                                             KilnError *err);
/* Undo the change at `key`. */
void kiln_config_change_back(KilnConfig *config, const char *key, KilnConfigNode *before);
/* Set `key`, one part, of the mapping at `path` to `value`, which is YAML, with the origin `by`.
 * Interpolations on the way to the mapping are replaced by copies of what they stand for, so that
 * nothing else changes. KILN_E_KEY: there is no such mapping. */
KILN_NODISCARD KilnStatus kiln_config_put(KilnConfig *config, const char *path, const char *key,
                                          const char *value, const char *by, KilnError *err);

#endif
