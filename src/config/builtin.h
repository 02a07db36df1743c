/* Config files of kiln's own node, `kiln`: below everything else. */
#ifndef KILN_CONFIG_BUILTIN_H
#define KILN_CONFIG_BUILTIN_H

#include "config/shipped.h"

/* Closed by a NULL path. */
extern const KilnShippedFile kiln_builtin_conf[];

#endif
