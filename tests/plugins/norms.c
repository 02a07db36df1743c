/* A callback that logs what kiln_trainer_gradient_norms gives: the first and the last norm. */
#include "kiln.h"

static KilnStatus on_train_batch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    size_t n = 0;
    const float *norms = kiln_trainer_gradient_norms(trainer, &n);

    (void)self;
    if (norms == NULL || n < 2)
        return kiln_error_set(err, KILN_E_INTERNAL, "no norms");
    kiln_trainer_log(trainer, "first_norm", (double)norms[0], KILN_LOG_STEP);
    kiln_trainer_log(trainer, "last_norm", (double)norms[n - 1], KILN_LOG_STEP);
    return KILN_OK;
}

static const char *const logs[] = { "first_norm", "last_norm", NULL };
static const unsigned log_flags[] = { KILN_LOG_LOWER_IS_BETTER, 0 };

static const KilnCallbackOps ops = {
    .on_train_batch_end = on_train_batch_end,
    .gradient_norms = true,
    .logs = logs,
    .log_flags = log_flags,
};

static const KilnComponent norms = {
    .kind = KILN_KIND_CALLBACK,
    .name = "norms",
    .summary = "Logs the norms of gradients",
    .ops.callback = &ops,
};

static const KilnComponent *const list[] = { &norms, NULL };
KILN_PLUGIN_DEFINE(list)
