/* Cosine annealing with restarts, as torch's CosineAnnealingWarmRestarts: half cosines, each t_mult
 * times as long as the last (Loshchilov and Hutter, "SGDR", 2017). */
#include "kiln.h"

#include <math.h>

typedef struct Opts {
    KILN_WARMUP_OPTIONS;
    int64_t t_0, t_mult, interval;
    double min_factor;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, t_0, "10", 1, 1000000000, "epochs (or steps) until the first restart"),
    KILN_FIELD_I64(Opts, t_mult, "1", 1, 1000, "factor of the length of each following period"),
    KILN_FIELD_F64(Opts, min_factor, "0.0", 0.0, 1.0,
                   "end of each cosine, as a fraction of the learning rate"),
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
    const double pi = 3.14159265358979323846;
    const Opts *opts = kiln_opts(self);
    int64_t count = kiln_interval_count(opts->interval, at), length = opts->t_0;

    if (opts->t_mult == 1)
        count %= length;
    for (; count >= length; length *= opts->t_mult)
        count -= length;
    double cosine = 0.5 * (1.0 + cos(pi * (double)count / (double)length));
    return kiln_warmup_factor(KILN_WARMUP(opts), at) *
           (opts->min_factor + (1.0 - opts->min_factor) * cosine);
}

static bool by_epoch(const KilnInstance *self)
{
    const Opts *opts = kiln_opts(self);

    return opts->interval == KILN_INTERVAL_EPOCH && opts->warmup_steps == 0 &&
           opts->warmup_epochs <= 0.0;
}

static const KilnSchedulerOps ops = { .factor = factor, .by_epoch = by_epoch, .check = fits };

const KilnComponent kiln_scheduler_cosine_restarts = {
    .kind = KILN_KIND_SCHEDULER,
    .name = "cosine_restarts",
    .summary = "Cosine decay with restarts, each period t_mult times as long as the last",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .check = check,
    .ops.scheduler = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_scheduler_cosine_restarts, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
