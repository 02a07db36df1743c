/* The generated table of components that are part of the program. */
#ifndef KILN_REGISTRY_BUILTIN_H
#define KILN_REGISTRY_BUILTIN_H

#include "kiln/component.h"

/* NULL-terminated; made by tools/gen_builtin.sh. */
extern const KilnComponent *const kiln_builtin_components[];

#endif
