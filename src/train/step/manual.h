/* Manual optimization: batches of a module with manual_step, which drives its own steps. */
#ifndef KILN_TRAIN_STEP_MANUAL_H
#define KILN_TRAIN_STEP_MANUAL_H

#include "kiln/trainer.h"
#include "train/loader/loader.h"

bool kiln_trainer_is_manual(const KilnTrainer *trainer);
/* Have the module train one batch. */
KILN_NODISCARD KilnStatus kiln_manual_batch(KilnTrainer *trainer, const KilnBatch *batch,
                                            KilnError *err);
/* The same for a batch without data: the steps are recorded and planned, not run. */
KILN_NODISCARD KilnStatus kiln_manual_plan(KilnTrainer *trainer, const KilnBatch *batch,
                                           KilnError *err);

#endif
