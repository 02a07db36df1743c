/* Learning rates of single parameters that callbacks scale by epoch (finetuning). */
#ifndef KILN_TRAIN_OPTIM_LR_SCALES_H
#define KILN_TRAIN_OPTIM_LR_SCALES_H

#include "kiln/trainer.h"

/* Whether callbacks scale the rates of parameters by epoch (KilnCallbackOps.lr_scale). */
bool kiln_lr_scales_vary(const KilnTrainer *trainer);
/* Set the rates of an epoch, and freeze the parameters whose rate is 0. KILN_E_RANGE when that
 * leaves nothing to train. */
KILN_NODISCARD KilnStatus kiln_lr_scales_apply(KilnTrainer *trainer, int64_t epoch, KilnError *err);
/* The next epoch in which the set of frozen parameters changes; -1: none of this run. */
int64_t kiln_lr_scales_next(const KilnTrainer *trainer, int64_t epoch);
/* Whether any optimizer trains the parameter in any epoch. */
bool kiln_lr_scales_trained(const KilnTrainer *trainer, const KilnParam *param);

#endif
