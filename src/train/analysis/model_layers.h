/* The layers of the network, as a recorded step shows them. */
#ifndef KILN_TRAIN_ANALYSIS_MODEL_LAYERS_H
#define KILN_TRAIN_ANALYSIS_MODEL_LAYERS_H

#include "kiln/trainer.h"

/* Fill trainer->layers from the step that was recorded last. */
KILN_NODISCARD KilnStatus kiln_trainer_read_layers(KilnTrainer *trainer, KilnError *err);

#endif
