/* Misspelled keys where free ones are allowed. */
#ifndef KILN_REGISTRY_STRAY_H
#define KILN_REGISTRY_STRAY_H

#include "schema/check.h"

/* Report every key of an open section (the root, `kiln`) that a file wrote, that is no
 * option, that no interpolation in the tree names, and that looks like an option
 * (`trainr`, `sed`). All others are variables of the user's own. */
void kiln_stray_check(const KilnCheck *check);

#endif
