/* One training batch: the step is recorded, run and checked. */
#ifndef KILN_TRAIN_STEP_FIT_BATCH_H
#define KILN_TRAIN_STEP_FIT_BATCH_H

#include "kiln/trainer.h"
#include "train/loader/loader.h"
#include "train/optim/optimize.h"

/* What a hook requested to skip. */
typedef enum KilnSkipScope { KILN_SKIP_NOTHING, KILN_SKIP_BATCH, KILN_SKIP_EPOCH } KilnSkipScope;

/* The current training batch. */
typedef struct KilnTrainBatch {
    int64_t log_step;   /* global step of values logged now; -1: outside of training batches, where
                         * values belong to the epoch */
    KilnSkipScope skip; /* this batch, or the rest of the epoch */
    double loss;        /* of the newest batch that has one */
    bool has_loss;      /* this batch has run */
    bool stepped;       /* it ended with an optimizer step */
} KilnTrainBatch;

/* Record a training batch: forward, backward (gradients add up over a group of batches) and, on
 * the last batch of a group, the optimizer's update; with several ranks, the update is a step of
 * its own, after the gradients were summed. Returns the loss; NULL: the module leaves
 * the batch out. */
KilnTensor *kiln_fit_batch_record(KilnTrainer *trainer, const KilnBatch *batch);
/* Whether the batch, or the round of ranks that it is in, ends with an optimizer step. */
bool kiln_fit_steps(const KilnTrainer *trainer, const KilnBatch *batch);
/* Batches since the start before this rank's; keys its random numbers. */
int64_t kiln_fit_batch_number(const KilnTrainer *trainer);
/* Record and run it, and advance trainer->at. With several ranks, this trains a round; `batch` has
 * size 0 where this rank adds nothing. */
KILN_NODISCARD KilnStatus kiln_fit_batch(KilnTrainer *trainer, const KilnBatch *batch,
                                         KilnError *err);
/* What automatic and manual optimization share. Record the gradients of `loss`, summed with those
 * of the batches before if it `accumulates`; sets at->gradients. */
void kiln_fit_record_gradients(KilnTrainer *trainer, KilnRecording *at, KilnTensor *loss,
                               bool accumulates);
/* Run the recorded step, and publish its loss (NULL: none) to callbacks and the live status.
 * KILN_E_NUMERIC when a value is not finite: the parameters are invalid then. */
KILN_NODISCARD KilnStatus kiln_fit_run_step(KilnTrainer *trainer, KilnTensor *loss, KilnError *err);
/* Pass the values that the step logged to the metrics, as those of global step `step`. */
KILN_NODISCARD KilnStatus kiln_fit_update_metrics(KilnTrainer *trainer, int64_t step,
                                                  KilnError *err);
/* How the trainer's options limit gradients. */
KilnClipping kiln_fit_clipping(const KilnTrainer *trainer);
/* Advance trainer->at by the batch, or by the round that it is in. */
void kiln_fit_count_batches(KilnTrainer *trainer, const KilnBatch *batch);
/* A step that is only an update from the gradients that are there; record it, or run it and pass
 * what it logged to the metrics. trainer->step.batch stays. */
void kiln_fit_update_record(KilnTrainer *trainer, size_t optimizer, KilnClipping clipping);
KILN_NODISCARD KilnStatus kiln_fit_update(KilnTrainer *trainer, size_t optimizer,
                                          KilnClipping clipping, int64_t step, KilnError *err);
/* An optimizer step without a batch, from the gradients of a group that was cut short. */
KILN_NODISCARD KilnStatus kiln_fit_leftover_gradients(KilnTrainer *trainer, KilnError *err);

#endif
