/* A timing run: a few real training steps that predict how long the whole run takes. */
#ifndef KILN_TRAIN_ANALYSIS_TIMING_RUN_H
#define KILN_TRAIN_ANALYSIS_TIMING_RUN_H

#include "kiln/embed/run.h"
#include "kiln/trainer.h"

typedef struct KilnTimingRun {
    int64_t steps;     /* timed; the first is not, unless it takes very long */
    double step_s;     /* a training step with its data */
    double eval_s;     /* a validation batch with its data; 0: there is no validation */
    double epoch_s;    /* training and validation */
    double run_s;      /* all epochs; INFINITY: the run has no set end */
    int64_t run_steps; /* steps of the whole run; -1: the run has no set end */
} KilnTimingRun;

/* Train for about so many seconds, two steps at least (one where it takes ten times as long). The
 * trainer is of no use for a run afterwards. */
KILN_NODISCARD KilnStatus kiln_trainer_timing_run(KilnTrainer *trainer, double seconds,
                                                  KilnTimingRun *ret, KilnError *err);
/* Build a trainer, call `ready` once it can train, and train for about so many seconds: *ret, steps
 * per second. Nothing is written. */
KILN_NODISCARD KilnStatus kiln_timing_run_speed(KilnConfig *config, const KilnRunEnv *env,
                                                double seconds, void (*ready)(void *ctx), void *ctx,
                                                double *ret, KilnError *err);

#endif
