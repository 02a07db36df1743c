/* Predicts how long a run takes, from a few real steps on its first batches. */
#include "train/analysis/timing_run.h"

#include <math.h>
#include <stdlib.h>

#include "kiln/tools/clock.h"
#include "train/assemble.h"
#include "train/step/manual.h"
#include "train/trainer.h"

/* The fraction of the time that is spent on training steps; the rest is for validation. */
static const double training_fraction = 0.8;
/* A first step that takes so many times the time for all steps is the only one. */
static const double longest_first_step = 10.0;

typedef KilnStatus Step(KilnTrainer *trainer, const KilnBatch *batch, KilnError *err);

static KilnStatus train_step(KilnTrainer *trainer, const KilnBatch *batch, KilnError *err)
{
    const bool steps = kiln_loop_is_step(&trainer->schedule, &trainer->at, batch->index);

    if (kiln_trainer_is_manual(trainer))
        return kiln_manual_batch(trainer, batch, err);
    KilnTensor *loss = kiln_fit_batch_record(trainer, batch);

    trainer->at.in_group = steps ? 0 : trainer->at.in_group + 1;
    return kiln_step_run(&trainer->step, loss, err);
}

static KilnStatus eval_step(KilnTrainer *trainer, const KilnBatch *batch, KilnError *err)
{
    kiln_eval_record(trainer, KILN_PHASE_VALIDATE, batch);
    return kiln_step_run(&trainer->step, NULL, err);
}

/* Measure the seconds of a step with its data. The first step, which faults in memory, does not
 * count unless it takes very long. */
static KilnStatus time_steps(KilnTrainer *trainer, KilnSplit split, Step *step, double seconds,
                             int64_t *ret_steps, double *ret, KilnError *err)
{
    KilnLoader *loader = NULL;
    int64_t steps = -1;
    KilnStatus status = kiln_trainer_loader(trainer, split, 0, &loader, err);
    double start = kiln_clock(), now = start;

    if (status >= 0 && loader != NULL)
        status = kiln_loader_start(loader, 0, 0, err);
    while (status >= 0 && loader != NULL && (steps < 1 || now - start < seconds)) {
        KilnBatch batch;

        status = kiln_loader_next(loader, &batch, err);
        if (status >= 0 && batch.size == 0) { /* the epoch is over: start it again */
            if (steps < 0)
                break;
            status = kiln_loader_start(loader, 0, 0, err);
            continue;
        }
        if (status >= 0)
            status = step(trainer, &batch, err);
        now = kiln_clock();
        if (steps < 0 && now - start < longest_first_step * seconds) {
            steps = 0;
            start = now;
        } else {
            steps = steps < 0 ? 1 : steps + 1;
        }
    }
    *ret_steps = steps > 0 ? steps : 0;
    *ret = steps > 0 ? (now - start) / (double)steps : 0.0;
    return status;
}

static void extrapolate(const KilnTrainer *trainer, KilnTimingRun *timing)
{
    const KilnLoopSchedule *schedule = &trainer->schedule;
    const double batches = (double)schedule->batches,
                 group = (double)kiln_loop_accumulate(schedule, 0);
    const double evals = (double)kiln_trainer_split_batches(trainer, KILN_VAL) *
                         kiln_loop_validations(schedule);
    double epochs = schedule->max_epochs >= 0 ? (double)schedule->max_epochs : (double)INFINITY;

    timing->epoch_s = batches * timing->step_s + evals * timing->eval_s;
    if (schedule->max_steps >= 0 && batches > 0.0)
        epochs = fmin(epochs, (double)schedule->max_steps * group / batches);
    timing->run_s = isfinite(epochs) ? epochs * timing->epoch_s : (double)INFINITY;
    timing->run_steps = isfinite(epochs) ? (int64_t)(epochs * batches / group + 0.5) : -1;
}

KilnStatus kiln_trainer_timing_run(KilnTrainer *trainer, double seconds, KilnTimingRun *ret,
                                   KilnError *err)
{
    KilnTimingRun timing = { 0 };
    int64_t evals = 0;
    KilnStatus status = time_steps(trainer, KILN_TRAIN, train_step, training_fraction * seconds,
                                   &timing.steps, &timing.step_s, err);

    if (status >= 0)
        status = time_steps(trainer, KILN_VAL, eval_step, (1.0 - training_fraction) * seconds,
                            &evals, &timing.eval_s, err);
    if (status < 0)
        return status;
    extrapolate(trainer, &timing);
    *ret = timing;
    return KILN_OK;
}

KilnStatus kiln_timing_run_speed(KilnConfig *config, const KilnRunEnv *env, double seconds,
                                 void (*ready)(void *ctx), void *ctx, double *ret, KilnError *err)
{
    KilnTrainer *trainer = calloc(1, sizeof(*trainer));
    KilnTimingRun timing = { 0 };
    KilnStatus status = trainer != NULL
                            ? kiln_trainer_assemble(trainer, config, env, KILN_STAGE_FIT, NULL, err)
                            : kiln_error_nomem(err, sizeof(*trainer));

    if (status >= 0)
        status = KILN_CALL(trainer, setup, err);
    if (status >= 0) {
        ready(ctx);
        status = kiln_trainer_timing_run(trainer, seconds, &timing, err);
    }
    if (status >= 0 && !(timing.steps > 0 && timing.step_s > 0.0))
        status = kiln_error_set(err, KILN_E_RANGE, "there is no batch to train on");
    if (status >= 0)
        *ret = 1.0 / timing.step_s;
    if (trainer != NULL)
        kiln_trainer_release(trainer);
    free(trainer);
    return status;
}
