/* Former names of options (KILN_FIELD_RENAMED). */
#ifndef KILN_REGISTRY_RENAME_H
#define KILN_REGISTRY_RENAME_H

#include "config/tree/node.h"

/* Move values of `map`, and of structs in it, from former names to the present ones, with a warning
 * each. A value of a later layer replaces one under the present name; else both names are an error
 * (KILN_E_KEY). False when there was one. */
KILN_NODISCARD bool kiln_rename_options(const KilnConfig *config, KilnConfigNode *map,
                                        const KilnField *fields, KilnErrors *errors);
/* Warn that `origin` uses a former name, that of `row`, for an option of `map`. */
void kiln_rename_warn(const KilnConfig *config, const KilnConfigNode *map, const KilnField *row,
                      const KilnOrigin *origin, KilnErrors *errors);

#endif
