/* The keys of the node `kiln`. */
#ifndef KILN_CONFIG_KILN_NODE_KILN_KEYS_H
#define KILN_CONFIG_KILN_NODE_KILN_KEYS_H

#include "config/tree/node.h"

/* Report every key of the node `kiln` that a file adds and that does not exist there. All keys of
 * Hydra 1.3's own node exist, also those that mean nothing here; so do options that the sections of
 * the request declare. Returns the status of the first error. */
KILN_NODISCARD KilnStatus kiln_own_check(const KilnConfig *config, KilnErrors *errors);
/* Are the keys of the mapping at `path` ("kiln.sweep") checked by that? */
bool kiln_own_checks(const char *path);

#endif
