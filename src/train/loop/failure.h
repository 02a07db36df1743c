/* The end of a run that failed. */
#ifndef KILN_TRAIN_LOOP_FAILURE_H
#define KILN_TRAIN_LOOP_FAILURE_H

#include "kiln/trainer.h"

/* End a run that failed by *why: call on_exception and teardown, save what can be saved, and
 * append to the message which checkpoint is good and how to resume. */
void kiln_failure_close(KilnTrainer *trainer, KilnError *why);

#endif
