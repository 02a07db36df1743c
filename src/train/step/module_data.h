/* The data against what the datamodule and the module declare of them; the module's setup. */
#ifndef KILN_TRAIN_STEP_MODULE_DATA_H
#define KILN_TRAIN_STEP_MODULE_DATA_H

#include "kiln/module.h"

/* The features have what the datamodule declares (KilnDataModuleOps.features); KILN_E_SHAPE. */
KILN_NODISCARD KilnStatus kiln_datamodule_check_spec(const KilnInstance *datamodule,
                                                     const KilnDataSpec *spec, KilnError *err);
/* Run the module's setup, if the features that it reads are there (KilnModuleOps.features); else
 * KILN_E_SHAPE. */
KILN_NODISCARD KilnStatus kiln_module_setup(KilnInstance *module, const KilnScope *scope,
                                            const KilnDataSpec *spec, KilnError *err);

#endif
