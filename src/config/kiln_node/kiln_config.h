/* Config files of kiln's own node, `kiln`: below everything else. */
#ifndef KILN_CONFIG_KILN_NODE_KILN_CONFIG_H
#define KILN_CONFIG_KILN_NODE_KILN_CONFIG_H

#include "config/defaults/shipped.h"

/* Closed by a NULL path. */
extern const KilnShippedFile kiln_builtin_conf[];

#endif
