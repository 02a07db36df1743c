/* Compares the gradients of a run's training step with finite differences of its loss. */
#ifndef KILN_TRAIN_ANALYSIS_GRADIENT_CHECK_H
#define KILN_TRAIN_ANALYSIS_GRADIENT_CHECK_H

#include "kiln/trainer.h"

/* The parameter whose gradient is off most: a derivative of the loss along a random direction, by
 * the recorded gradient and by a central difference. */
typedef struct KilnGradientCheck {
    size_t checked;    /* parameters; 0: the step has no loss that can be differentiated */
    const char *param; /* borrowed from the trainer; NULL: none was checked */
    double error;      /* relative */
    double gradient, difference;
    double loss; /* of the batch */
} KilnGradientCheck;

/* Check the first training batch, at the initial weights, for about so many seconds. The trainer is
 * assembled, for a fit in f64 (else the differences are rough), and of no use for a run afterwards.
 */
KILN_NODISCARD KilnStatus kiln_trainer_check_gradients(KilnTrainer *trainer, double seconds,
                                                       KilnGradientCheck *ret, KilnError *err);

#endif
