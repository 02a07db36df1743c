/* Replaces one scalar of a composed tree, for a while or for good. */
#ifndef KILN_CONFIG_TREE_SET_SCALAR_H
#define KILN_CONFIG_TREE_SET_SCALAR_H

#include "config/tree/node.h"

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

#endif
