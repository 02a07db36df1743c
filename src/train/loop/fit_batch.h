/* One training batch: the step is recorded, run and checked. */
#ifndef KILN_TRAIN_LOOP_FIT_BATCH_H
#define KILN_TRAIN_LOOP_FIT_BATCH_H

#include "kiln/trainer.h"
#include "train/loader/loader.h"

/* What a hook asked to leave out. */
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
 * the last batch of a group, the optimizer's update. Returns the loss; NULL: the module leaves
 * the batch out. */
KilnTensor *kiln_fit_batch_record(KilnTrainer *trainer, const KilnBatch *batch);
/* Record and run it, and advance trainer->at. */
KILN_NODISCARD KilnStatus kiln_fit_batch(KilnTrainer *trainer, const KilnBatch *batch,
                                         KilnError *err);
/* The error of a loss that is not finite; the update has made the parameters invalid. */
KilnStatus kiln_fit_not_finite(KilnTrainer *trainer, double loss, KilnError *err);
/* Publish the loss to callbacks and the live status. */
void kiln_fit_publish_loss(KilnTrainer *trainer, double loss);
/* Put the position of training in front of an error of a step. */
KilnStatus kiln_fit_prefix_error(const KilnTrainer *trainer, KilnError *err);
/* An optimizer step without a batch, from the gradients of a group that the epoch's end cut
 * short. */
KILN_NODISCARD KilnStatus kiln_fit_leftover_gradients(KilnTrainer *trainer, KilnError *err);

#endif
