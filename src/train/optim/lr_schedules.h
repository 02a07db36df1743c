/* Learning rate schedules. */
#ifndef KILN_TRAIN_OPTIM_LR_SCHEDULES_H
#define KILN_TRAIN_OPTIM_LR_SCHEDULES_H

#include "train/optim/optimizers.h"

/* The learning rate that the schedule gives the optimizer's next step. */
double kiln_lr_schedule_rate(const KilnTrainer *trainer, const KilnOptimizerState *optimizer);
/* Check the schedule against the length of the run. */
KILN_NODISCARD KilnStatus kiln_lr_schedule_check(const KilnTrainer *trainer,
                                                 const KilnOptimizerState *optimizer,
                                                 KilnError *err);
/* Check that the metrics which schedulers monitor are logged. */
KILN_NODISCARD KilnStatus kiln_lr_schedules_check_metrics(KilnTrainer *trainer, KilnError *err);
/* Pass schedulers the metrics that they monitor, if this step logged them. */
void kiln_lr_schedules_observe(KilnTrainer *trainer);

#endif
