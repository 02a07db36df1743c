/* Weights that a new run starts from. */
#ifndef KILN_TRAIN_CHECKPOINT_INITIAL_WEIGHTS_H
#define KILN_TRAIN_CHECKPOINT_INITIAL_WEIGHTS_H

#include "kiln/trainer.h"
#include "tensor/safetensors.h"

/* Load the weights that the option `weights` names, if it is set. */
KILN_NODISCARD KilnStatus kiln_weights_load(KilnTrainer *trainer, KilnError *err);
/* Read the value of one parameter from an open file, if it is there under its own name or under
 * those of other programs (kiln_param_foreign). */
KILN_NODISCARD KilnStatus kiln_weights_read_param(const KilnSafetensors *file, KilnParam *param,
                                                  KilnError *err);

#endif
