/* The validation, test and sanity loops. */
#ifndef KILN_TRAIN_LOOP_EVALUATE_H
#define KILN_TRAIN_LOOP_EVALUATE_H

#include "kiln/trainer.h"
#include "train/loader/loader.h"
#include "train/metrics/metrics.h"

/* The position within an evaluation or prediction. */
typedef struct KilnEvalPosition {
    size_t set;             /* the current one */
    int64_t batch, batches; /* done, and in all; over all sets */
} KilnEvalPosition;

/* Record the module's validation or test step over `batch`. */
void kiln_eval_record(KilnTrainer *trainer, KilnPhase phase, const KilnBatch *batch);
/* Validate or test over the whole split, or the first batches of validation (SANITY). */
KILN_NODISCARD KilnStatus kiln_eval_loop(KilnTrainer *trainer, KilnPhase phase, KilnError *err);

/* Compute the values of a phase that ends, from the steps of all ranks, and reset its sums and
 * states. */
KILN_NODISCARD KilnStatus kiln_trainer_end_metrics(KilnTrainer *trainer, KilnPhase phase,
                                                   KilnError *err);

#endif
