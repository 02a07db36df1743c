/* The steps of a run, recorded and planned before it starts. */
#ifndef KILN_TRAIN_STEP_PLAN_STEPS_H
#define KILN_TRAIN_STEP_PLAN_STEPS_H

#include "kiln/data.h"
#include "kiln/trainer.h"

/* Record all steps that `stage` has, and check their shapes; of a fit, plan them, fill
 * trainer->layers and add the plans to trainer->memory. */
KILN_NODISCARD KilnStatus kiln_trainer_plan_steps(KilnTrainer *trainer, KilnStage stage,
                                                  KilnError *err);

#endif
