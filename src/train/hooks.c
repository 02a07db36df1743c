/* Calling callbacks and loggers. */
#include <string.h>

#include "train/trainer.h"

static KilnHook *hook_at(const KilnCallbackOps *ops, size_t offset)
{
    KilnHook *hook;

    memcpy(&hook, (const char *)ops + offset, sizeof(hook));
    return hook;
}

KilnStatus kiln_hooks_call(KilnTrainer *trainer, size_t offset, KilnHookWho who, KilnError *err)
{
    for (size_t i = 0; i < trainer->n_callbacks; i++) {
        KilnInstance *callback = trainer->callbacks[i];
        const KilnCallbackOps *ops = kiln_instance_component(callback)->ops.callback;
        KilnHook *hook = hook_at(ops, offset);

        if (hook == NULL || (who != KILN_HOOK_ALL && ops->saves != (who == KILN_HOOK_SAVING)))
            continue;
        KilnStatus status = hook(callback, trainer, err);
        if (status < 0) {
            (void)kiln_error_prefix(err, "%s: ", kiln_instance_path(callback));
            return status;
        }
    }
    return KILN_OK;
}

static const KilnLoggerOps *logger_ops(const KilnInstance *logger)
{
    return kiln_instance_component(logger)->ops.logger;
}

KilnStatus kiln_loggers_open(KilnTrainer *trainer, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < trainer->n_loggers && status >= 0; i++)
        if (logger_ops(trainer->loggers[i])->open != NULL)
            status = logger_ops(trainer->loggers[i])
                         ->open(trainer->loggers[i], trainer->run_dir, trainer->at.step, err);
    return status;
}

KilnStatus kiln_loggers_send(KilnTrainer *trainer, bool epoch_values, KilnError *err)
{
    const KilnMetric *metrics;
    size_t n = kiln_metrics_take(trainer->metrics, epoch_values, trainer->at.step, &metrics);
    KilnStatus status = KILN_OK;

    for (size_t i = 0; n > 0 && i < trainer->n_loggers && status >= 0; i++)
        if (logger_ops(trainer->loggers[i])->log_metrics != NULL)
            status = logger_ops(trainer->loggers[i])
                         ->log_metrics(trainer->loggers[i], metrics, n, trainer->at.epoch,
                                       trainer->at.step, err);
    return status;
}

KilnStatus kiln_loggers_flush(KilnTrainer *trainer, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < trainer->n_loggers && status >= 0; i++)
        if (logger_ops(trainer->loggers[i])->flush != NULL)
            status = logger_ops(trainer->loggers[i])->flush(trainer->loggers[i], err);
    return status;
}

bool kiln_trainer_interrupted(KilnTrainer *trainer)
{
    if (trainer->env->stop != NULL && *trainer->env->stop != 0)
        trainer->interrupted = true;
    return trainer->interrupted;
}
