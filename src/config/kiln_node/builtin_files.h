/* The built-in config files of the node `kiln`, which all others override. */
#ifndef KILN_CONFIG_KILN_NODE_BUILTIN_FILES_H
#define KILN_CONFIG_KILN_NODE_BUILTIN_FILES_H

#include "config/defaults/shipped.h"

/* Ends with a NULL path. */
extern const KilnShippedFile kiln_builtin_conf[];

#endif
