/* Exponential decay, as torch's ExponentialLR: the learning rate falls by a factor after every
 * epoch. */
#include "kiln.h"

#include <math.h>

typedef struct Opts {
    KILN_WARMUP_OPTIONS;
    int64_t interval;
    double gamma;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_F64(Opts, gamma, "0.95", 0.0, 1e3, "factor after each epoch (or step)"),
    KILN_FIELD_ENUM(Opts, interval, "epoch", kiln_intervals, "unit: epochs or steps"),
    KILN_WARMUP_FIELDS(Opts),
    KILN_FIELD_END,
};

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    return kiln_warmup_check(KILN_WARMUP((const Opts *)options), ret_option, err);
}

static KilnStatus fits(const KilnInstance *self, const KilnProgress *at, KilnError *err)
{
    return kiln_warmup_fits(KILN_WARMUP((const Opts *)kiln_opts(self)), at, err);
}

static double factor(const KilnInstance *self, const KilnProgress *at)
{
    const Opts *opts = kiln_opts(self);
    double count = (double)kiln_interval_count(opts->interval, at);

    return kiln_warmup_factor(KILN_WARMUP(opts), at) * pow(opts->gamma, count);
}

static bool by_epoch(const KilnInstance *self)
{
    const Opts *opts = kiln_opts(self);

    return opts->interval == KILN_INTERVAL_EPOCH && opts->warmup_steps == 0 &&
           opts->warmup_epochs <= 0.0;
}

static const KilnSchedulerOps ops = { .factor = factor, .by_epoch = by_epoch, .check = fits };

const KilnComponent kiln_scheduler_exponential = {
    .kind = KILN_KIND_SCHEDULER,
    .name = "exponential",
    .summary = "Multiplies the learning rate by gamma after every epoch",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .check = check,
    .ops.scheduler = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_scheduler_exponential, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
