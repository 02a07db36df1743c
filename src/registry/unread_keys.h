/* Keys that nothing reads, where free ones are allowed. */
#ifndef KILN_REGISTRY_UNREAD_KEYS_H
#define KILN_REGISTRY_UNREAD_KEYS_H

#include "schema/validate.h"

/* Report every key of the root that a file has and that can have no effect: it is no option, names
 * no component, no note of the user's (`name`, `tags`, `notes`) and no ${...} reads it. In a tree
 * made for Hydra such keys are warnings, in `errors`: there a program of the user's read them. In
 * other open sections (`kiln.sweeper`), report keys that look like a misspelled option. */
void kiln_unread_keys_check(const KilnCheck *check, KilnErrors *errors);

#endif
