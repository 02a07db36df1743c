/* Logs learning rates, and optionally momentum and weight decay, of all optimizers and their
 * groups. */
#include "kiln.h"

#include <stdio.h>

enum { EACH_STEP, EACH_EPOCH };

typedef struct Opts {
    int64_t *logging_interval;
    bool log_momentum, log_weight_decay;
} Opts;

static const KilnChoice intervals[] = { { "step", EACH_STEP },
                                        { "epoch", EACH_EPOCH },
                                        { NULL, 0 } };

static const KilnField fields[] = {
    KILN_FIELD_ENUM_OPT(Opts, logging_interval, "null", intervals,
                        "when to log; null: at the end of each epoch if the schedule changes only "
                        "with epochs, else at "
                        "each step"),
    KILN_FIELD_BOOL(Opts, log_momentum, "false", "also log momentum, or the first of betas"),
    KILN_FIELD_BOOL(Opts, log_weight_decay, "false", "log weight decay, too"),
    KILN_FIELD_END,
};

/* "lr", "lr-generator", "lr/head": a value of an optimizer, or of one of its groups. */
static void log_value(KilnTrainer *trainer, const KilnOptimizerUse *use, const char *group,
                      const char *what, double value, unsigned flags)
{
    char name[256];

    snprintf(name, sizeof(name), "lr%s%s%s%s%s", use->name != NULL ? "-" : "",
             use->name != NULL ? use->name : "", group != NULL ? "/" : "",
             group != NULL ? group : "", what);
    kiln_trainer_log(trainer, name, value, flags);
}

static void log_group(const Opts *opts, KilnTrainer *trainer, const KilnOptimizerUse *use,
                      const KilnOptimizerCommon *common, const KilnNamedGroup *group, double lr,
                      unsigned flags)
{
    const char *name = group != NULL ? group->key : NULL;
    const double scale = group != NULL ? group->value.lr_scale : 1.0;
    const bool own = group != NULL && group->value.weight_decay != NULL;

    log_value(trainer, use, name, "", lr * scale, flags);
    if (opts->log_momentum)
        log_value(trainer, use, name, "-momentum", common->momentum, flags);
    if (opts->log_weight_decay)
        log_value(trainer, use, name, "-weight_decay",
                  own ? *group->value.weight_decay : common->weight_decay, flags);
}

static int64_t interval_of(const Opts *opts, const KilnOptimizerUse *use)
{
    const KilnInstance *scheduler = use->scheduler;

    if (opts->logging_interval != NULL)
        return *opts->logging_interval;
    if (scheduler == NULL)
        return EACH_STEP;
    const KilnSchedulerOps *ops = kiln_instance_component(scheduler)->ops.scheduler;
    return ops->by_epoch != NULL && ops->by_epoch(scheduler) ? EACH_EPOCH : EACH_STEP;
}

static void log_all(const KilnInstance *self, KilnTrainer *trainer, int64_t interval,
                    unsigned flags)
{
    const Opts *opts = kiln_opts(self);
    const KilnOptimizerUse *use;

    for (size_t i = 0; (use = kiln_trainer_optimizer(trainer, i)) != NULL; i++) {
        const KilnOptimizerCommon *common = kiln_trainer_optimizer_common(trainer, i);
        const double lr = kiln_trainer_optimizer_rate(trainer, i);

        if (interval_of(opts, use) != interval)
            continue;
        log_group(opts, trainer, use, common, NULL, lr, flags);
        for (size_t g = 0; g < common->groups_count; g++)
            log_group(opts, trainer, use, common, &common->groups[g], lr, flags);
    }
}

static KilnStatus on_train_batch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    (void)err;
    log_all(self, trainer, EACH_STEP, KILN_LOG_STEP);
    return KILN_OK;
}

static KilnStatus on_train_epoch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    (void)err;
    log_all(self, trainer, EACH_EPOCH, KILN_LOG_EPOCH);
    return KILN_OK;
}

static const char *const logs[] = { "lr", NULL };

static const KilnCallbackOps ops = {
    .on_train_batch_end = on_train_batch_end,
    .on_train_epoch_end = on_train_epoch_end,
    .logs = logs,
};

const KilnComponent kiln_callback_learning_rate_monitor = {
    .kind = KILN_KIND_CALLBACK,
    .name = "learning_rate_monitor",
    .summary = "Log the learning rate as \"lr\"",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.callback = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_callback_learning_rate_monitor, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
