/* Former names of options (KILN_FIELD_RENAMED). */
#ifndef KILN_REGISTRY_RENAME_H
#define KILN_REGISTRY_RENAME_H

#include "config/tree/node.h"

/* Move what `map` and the structs in it have under former names to the new names, with
 * a warning each; both names given is an error (KILN_E_KEY), the first one's status
 * comes back. A value of a later layer replaces one under the new name. */
KILN_NODISCARD KilnStatus kiln_rename_options(const KilnConfig *config, KilnConfigNode *map,
                                              const KilnField *fields, KilnErrors *errors);
/* Warn that the key of `row`, a former name, stands at `origin` for an option of `map`. */
void kiln_rename_warn(const KilnConfig *config, const KilnConfigNode *map, const KilnField *row,
                      const KilnOrigin *origin, KilnErrors *errors);

#endif
