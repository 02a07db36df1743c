/* Applies value overrides to the composed tree. */
#ifndef KILN_CONFIG_OVERRIDE_APPLY_H
#define KILN_CONFIG_OVERRIDE_APPLY_H

#include "config/compose.h"
#include "config/override/override.h"

/* Apply a value override. Sets *ret_add_defaults when component defaults must be added again,
 * because of a new _target_, mapping or key. */
KILN_NODISCARD KilnStatus kiln_override_apply(KilnConfig *config, const KilnOverride *override,
                                              bool *ret_add_defaults, KilnError *err);

/* Can adding defaults after the override bring keys into the mapping that it changed? Yes for a
 * _target_, and for a key of the root section in a config that had none of them. */
bool kiln_override_may_add_keys(const KilnConfig *config, const KilnOverride *override);
/* Can `override` be applied before defaults are added for `last`? Yes for items of one list in a
 * row, and for new keys of one mapping; adding defaults walks over the whole tree. */
bool kiln_override_batches_with(const KilnConfig *config, const KilnOverride *override,
                                const KilnOverride *last);

#endif
