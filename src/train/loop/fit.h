/* The training loop, one batch at a time. */
#ifndef KILN_TRAIN_LOOP_FIT_H
#define KILN_TRAIN_LOOP_FIT_H

#include "kiln/trainer.h"

typedef struct KilnLoader KilnLoader;

/* Where the loop is between two batches, besides trainer->at. */
typedef struct KilnFitLoop {
    KilnLoader *loader; /* of the running epoch, borrowed; NULL: between two epochs */
    bool trains;        /* there is something to train: on_train_start was called */
} KilnFitLoop;

/* Begin where trainer->at is: hooks and the sanity check, before the first epoch. */
KILN_NODISCARD KilnStatus kiln_fit_loop_begin(KilnTrainer *trainer, KilnError *err);
/* Train the next batch, with all that is due before it (an epoch begins) and after it (a
 * validation, the end of the epoch). Does nothing when the loop is over. */
KILN_NODISCARD KilnStatus kiln_fit_loop_step(KilnTrainer *trainer, KilnError *err);
/* Whether no batch is left, or a callback or the caller stopped the run. */
bool kiln_fit_loop_is_over(const KilnTrainer *trainer);
/* End it; before it is over, as an interrupt would. */
KILN_NODISCARD KilnStatus kiln_fit_loop_end(KilnTrainer *trainer, KilnError *err);

#endif
