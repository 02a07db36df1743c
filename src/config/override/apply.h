/* Value overrides: applying arguments to the composed tree. */
#ifndef KILN_CONFIG_OVERRIDE_APPLY_H
#define KILN_CONFIG_OVERRIDE_APPLY_H

#include "config/compose.h"
#include "config/override/override.h"

/* Apply a value override. A key that is not there is an error unless the override
 * adds it. *ret_add_defaults is set when component defaults must be laid again: a
 * _target_, a mapping or a new key came. */
KILN_NODISCARD KilnStatus kiln_override_apply(KilnConfig *config, const KilnOverride *override,
                                              bool *ret_add_defaults, KilnError *err);

/* Can laying the bottom after the override bring keys into the mapping that it changed? So does
 * a _target_, and a key of the root section in a config that had none of them. */
bool kiln_override_may_add_keys(const KilnConfig *config, const KilnOverride *override);
/* Can `override` be applied as well before the bottom is laid for `last`? It can in a row of
 * items for one list, or of new keys for one mapping. Laying the bottom for each of them would
 * walk over the whole tree each time. */
bool kiln_override_batches_with(const KilnConfig *config, const KilnOverride *override,
                                const KilnOverride *last);

#endif
