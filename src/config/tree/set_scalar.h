/* Putting a scalar in the place of another in a composed tree, for a while or for good. */
#ifndef KILN_CONFIG_TREE_SET_SCALAR_H
#define KILN_CONFIG_TREE_SET_SCALAR_H

#include "config/tree/node.h"

/* The path of the value that decides `key`: where references lead that stand for the whole
 * value or for a mapping on the way (of optimizer.lr, which is ${lr}, "lr"). In the config's
 * arena; `key` itself when it is not there. */
const char *kiln_config_source(const KilnConfig *config, const char *key);

/* Put `value`, as YAML writes it, in the place of the scalar at `key`, which must be there;
 * `by` is its origin. *ret_before (may be NULL) is what stood there: it is in the history of
 * the value, and put back by kiln_config_change_back. */
KILN_NODISCARD KilnStatus kiln_config_change(KilnConfig *config, const char *key, const char *value,
                                             const char *by, KilnConfigNode **ret_before,
                                             KilnError *err);
/* As if the change at `key` had not been. */
void kiln_config_change_back(KilnConfig *config, const char *key, KilnConfigNode *before);

#endif
