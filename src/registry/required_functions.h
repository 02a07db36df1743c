/* The functions that each kind of component must have. */
#ifndef KILN_REGISTRY_REQUIRED_FUNCTIONS_H
#define KILN_REGISTRY_REQUIRED_FUNCTIONS_H

#include "kiln/component.h"

/* KILN_E_PLUGIN, with its name: the component's table lacks one. */
KILN_NODISCARD KilnStatus kiln_required_functions_check(const KilnComponent *component,
                                                        KilnError *err);

#endif
