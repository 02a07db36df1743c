/* Facts about the run, in the node `kiln`. */
#ifndef KILN_CONFIG_KILN_NODE_RUNTIME_H
#define KILN_CONFIG_KILN_NODE_RUNTIME_H

#include "config/composed.h"

/* Check the node `kiln`, then fill in kiln.job, kiln.runtime and kiln.overrides. Errors go to
 * `errors`; returns the first one's status. */
KilnStatus kiln_runtime_fill(KilnConfig *config, KilnErrors *errors);

#endif
