/* Weights that a new run starts from. */
#ifndef KILN_TRAIN_CHECKPOINT_INITIAL_WEIGHTS_H
#define KILN_TRAIN_CHECKPOINT_INITIAL_WEIGHTS_H

#include "kiln/trainer.h"
#include "tensor/safetensors.h"

/* Load the weights that the option `weights` names, if it is set. */
KILN_NODISCARD KilnStatus kiln_weights_load(KilnTrainer *trainer, KilnError *err);
/* Load the weights that the option `weights_of` names into parts of the network (part_weights.c).
 */
KILN_NODISCARD KilnStatus kiln_part_weights_load(KilnTrainer *trainer, KilnError *err);
/* Read them for one parameter again, if it is of such a part. */
KILN_NODISCARD KilnStatus kiln_part_weights_read_param(KilnTrainer *trainer, KilnParam *param,
                                                       KilnError *err);
/* The file that a path names: itself, or the model of a run or checkpoint; owned by the caller.
 * Errors begin with `option`. */
KILN_NODISCARD KilnStatus kiln_weights_find_file(const char *option, const char *weights,
                                                 char **ret, KilnError *err);
/* Read the value of one parameter from an open file, if it is there under its own name or under
 * those of other programs (kiln_param_foreign). */
KILN_NODISCARD KilnStatus kiln_weights_read_param(const KilnSafetensors *file, KilnParam *param,
                                                  KilnError *err);

#endif
