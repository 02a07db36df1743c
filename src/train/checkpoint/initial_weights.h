/* Weights that a new run starts from. */
#ifndef KILN_TRAIN_CHECKPOINT_INITIAL_WEIGHTS_H
#define KILN_TRAIN_CHECKPOINT_INITIAL_WEIGHTS_H

#include "kiln/trainer.h"

/* Load the weights that the option `weights` names, if it is set. */
KILN_NODISCARD KilnStatus kiln_weights_load(KilnTrainer *trainer, KilnError *err);

#endif
