/* What the caller requests of a running run: to stop, or to save a checkpoint and continue. */
#ifndef KILN_TRAIN_LOOP_SIGNALS_H
#define KILN_TRAIN_LOOP_SIGNALS_H

#include "kiln/trainer.h"
#include "train/loader/loader.h"

/* A checkpoint that the caller requested (KilnRunEnv.save). */
typedef struct KilnSaveSignal {
    bool pending;  /* requested, not saved yet */
    bool deferred; /* the state is not whole now: save later */
} KilnSaveSignal;

/* "SIGTERM"; NULL for a number that is no signal to stop. */
const char *kiln_signal_name(int number);
/* True when the caller wants the run to stop. */
bool kiln_trainer_interrupted(KilnTrainer *trainer);
/* Save a checkpoint if the caller requested one. Call it between batches, where the state is
 * whole. */
void kiln_trainer_poll_save(KilnTrainer *trainer);
/* Whether this run saved a checkpoint of the current position. With `to_resume`, one of weights
 * alone does not count. */
bool kiln_trainer_is_saved(const KilnTrainer *trainer, bool to_resume);
/* Make checkpoints/last the current position, on disk; saves a checkpoint unless it is saved. */
KILN_NODISCARD KilnStatus kiln_trainer_save_here(KilnTrainer *trainer, bool to_resume,
                                                 KilnError *err);
/* kiln_loader_next for loops: polls for requests to save, and returns KILN_E_INTERRUPTED only
 * when the run has to stop. */
KILN_NODISCARD KilnStatus kiln_trainer_next_batch(KilnTrainer *trainer, KilnLoader *loader,
                                                  KilnBatch *ret, KilnError *err);

#endif
