/* Logs the learning rate. */
#include "kiln.h"

enum { EACH_STEP, EACH_EPOCH };

typedef struct Opts {
    int64_t logging_interval;
} Opts;

static const KilnChoice intervals[] = { { "step", EACH_STEP },
                                        { "epoch", EACH_EPOCH },
                                        { NULL, 0 } };

static const KilnField fields[] = {
    KILN_FIELD_ENUM(Opts, logging_interval, "step", intervals, "how often \"lr\" is logged"),
    KILN_FIELD_END,
};

static KilnStatus on_train_batch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    (void)err;
    if (opts->logging_interval == EACH_STEP)
        kiln_trainer_log(trainer, "lr", kiln_trainer_learning_rate(trainer), KILN_LOG_STEP);
    return KILN_OK;
}

static KilnStatus on_train_epoch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    (void)err;
    if (opts->logging_interval == EACH_EPOCH)
        kiln_trainer_log(trainer, "lr", kiln_trainer_learning_rate(trainer), KILN_LOG_EPOCH);
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
    .fields = fields,
    .opts_size = sizeof(Opts),
    .ops.callback = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_callback_learning_rate_monitor, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
