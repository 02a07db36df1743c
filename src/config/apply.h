/* Value overrides: applying arguments to the composed tree. */
#ifndef KILN_CONFIG_APPLY_H
#define KILN_CONFIG_APPLY_H

#include "config/compose.h"
#include "config/override.h"

/* Apply a value override. A key that is not there is an error unless the override
 * adds it. *ret_bottom is set when component defaults must be laid again: a
 * _target_, a mapping or a new key came. */
KILN_NODISCARD KilnStatus kiln_override_apply(KilnConfig *config, const KilnOverride *override,
                                              bool *ret_bottom, KilnError *err);

#endif
