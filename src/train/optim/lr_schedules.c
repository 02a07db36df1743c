/* Learning rate schedules: the rate of each optimizer's next step, from its scheduler and the
 * position of training. */
#include "train/optim/lr_schedules.h"

#include <stdio.h>

#include "base/call.h"
#include "train/trainer.h"

/* NULL: no scheduler. */
static const KilnSchedulerOps *scheduler_ops(const KilnOptimizerState *optimizer)
{
    const KilnInstance *scheduler = optimizer->use.scheduler;

    return scheduler != NULL ? kiln_instance_component(scheduler)->ops.scheduler : NULL;
}

/* Every schedule follows the steps of the run, and so ends with it. */
static KilnProgress progress_of(const KilnTrainer *trainer)
{
    return kiln_loop_progress(&trainer->schedule, &trainer->at);
}

/* The scheduler's factor for the next step. */
static double factor(const KilnTrainer *trainer, const KilnOptimizerState *optimizer)
{
    KilnProgress at = progress_of(trainer);
    const KilnSchedulerOps *ops = scheduler_ops(optimizer);

    if (ops == NULL)
        return 1.0;
    kiln_call_enter(optimizer->use.scheduler, "factor");
    const double value = ops->factor(optimizer->use.scheduler, &at);
    kiln_call_leave();
    return value;
}

double kiln_lr_schedule_rate(const KilnTrainer *trainer, const KilnOptimizerState *optimizer)
{
    return optimizer->common.lr * factor(trainer, optimizer);
}

KilnStatus kiln_lr_schedule_check(const KilnTrainer *trainer, const KilnOptimizerState *optimizer,
                                  KilnError *err)
{
    KilnProgress at = progress_of(trainer);
    const KilnSchedulerOps *ops = scheduler_ops(optimizer);
    KilnStatus status = KILN_OK;

    if (ops != NULL && ops->check != NULL)
        status = KILN_CALLED(optimizer->use.scheduler, "check",
                             ops->check(optimizer->use.scheduler, &at, err), err);
    if (status < 0)
        (void)kiln_error_prefix(err, "%s: ", kiln_instance_path(optimizer->use.scheduler));
    return status;
}

static KilnStatus check_monitor(KilnTrainer *trainer, KilnOptimizerState *optimizer, KilnError *err)
{
    const KilnSchedulerOps *ops = scheduler_ops(optimizer);
    char option[256];
    int64_t mode;

    if (ops == NULL || ops->monitor == NULL)
        return KILN_OK;
    const KilnInstance *scheduler = optimizer->use.scheduler;
    const char *name = ops->monitor(scheduler, &mode);
    if (kiln_trainer_logs(trainer, name)) {
        KilnStatus status = kiln_trainer_mode(trainer, scheduler, name, mode,
                                              &optimizer->monitors_higher, err);

        return status >= 0 ? status : kiln_error_prefix(err, "%s: ", kiln_instance_path(scheduler));
    }
    snprintf(option, sizeof(option), "%s.monitor", kiln_instance_path(scheduler));
    return kiln_trainer_unknown_metric(trainer, option, name, err);
}

KilnStatus kiln_lr_schedules_check_metrics(KilnTrainer *trainer, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < trainer->n_optimizers && status >= 0; i++)
        status = check_monitor(trainer, &trainer->optimizers[i], err);
    return status;
}

void kiln_lr_schedules_observe(KilnTrainer *trainer)
{
    for (size_t i = 0; i < trainer->n_optimizers; i++) {
        const KilnOptimizerState *optimizer = &trainer->optimizers[i];
        const KilnSchedulerOps *ops = scheduler_ops(optimizer);
        int64_t mode;
        double value;

        if (ops == NULL || ops->monitor == NULL ||
            !kiln_trainer_step_metric(trainer, ops->monitor(optimizer->use.scheduler, &mode),
                                      &value))
            continue;
        kiln_call_enter(optimizer->use.scheduler, "observe");
        ops->observe(optimizer->use.scheduler, value, optimizer->monitors_higher);
        kiln_call_leave();
    }
}
