/* Keys without effect, where keys are free. */
#ifndef KILN_REGISTRY_UNREAD_KEYS_H
#define KILN_REGISTRY_UNREAD_KEYS_H

#include "registry/check.h"

/* Report every key of the root that a file sets and that has no effect: it is no option, names no
 * component, is no note for people (`name`, `tags`, `notes`), and no ${...} reads it. In a tree
 * made for Hydra they are warnings, for there the user's program reads them. In other
 * open sections (`kiln.sweeper`), report keys that look like a misspelled option. */
void kiln_unread_keys_check(KilnCheck *check);

#endif
