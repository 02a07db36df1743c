/* The keys of the node `kiln`. */
#ifndef KILN_CONFIG_KILN_NODE_KILN_KEYS_H
#define KILN_CONFIG_KILN_NODE_KILN_KEYS_H

#include "config/tree/node.h"

/* Report every unknown key that a file adds to the node `kiln`. All keys of Hydra 1.3's node are
 * known, also those without meaning here, and options that the request's sections declare. Returns
 * the status of the first error. */
KILN_NODISCARD KilnStatus kiln_own_check(const KilnConfig *config, KilnErrors *errors);
/* Does that check the keys of the mapping at `path` ("kiln.sweep")? */
bool kiln_own_checks(const char *path);

#endif
