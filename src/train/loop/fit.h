/* The training loop. */
#ifndef KILN_TRAIN_LOOP_FIT_H
#define KILN_TRAIN_LOOP_FIT_H

#include "kiln/trainer.h"

/* Train from trainer->at to the end. Returns early, with success, when a callback or the caller
 * stops the run. */
KILN_NODISCARD KilnStatus kiln_fit_loop(KilnTrainer *trainer, KilnError *err);

#endif
