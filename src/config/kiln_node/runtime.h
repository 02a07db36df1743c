/* What a run is told about itself: the node `kiln`. */
#ifndef KILN_CONFIG_KILN_NODE_RUNTIME_H
#define KILN_CONFIG_KILN_NODE_RUNTIME_H

#include "config/override/override.h"
#include "config/composed.h"

/* Fill in kiln.job, kiln.runtime and kiln.overrides, and check what was set there.
 * What is wrong goes to `errors`; the first one's status. */
KilnStatus kiln_runtime_fill(KilnConfig *config, const KilnOverride *overrides, size_t n_overrides,
                             KilnErrors *errors);

#endif
