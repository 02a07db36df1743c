/* Cosine annealing, as torch's CosineAnnealingLR: half a cosine from the learning rate down to a
 * fraction of it, step by step over the planned run, after an optional warmup (Loshchilov and
 * Hutter, "SGDR", 2017, without restarts). A run without a planned end keeps factor 1. */
#include "kiln.h"

#include <math.h>

typedef struct Opts {
    KILN_WARMUP_OPTIONS;
    double min_factor;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_F64(Opts, min_factor, "0.0", 0.0, 1.0,
                   "final value, as a fraction of the learning rate"),
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
    double cosine = 0.5 * (1.0 + cos(pi * kiln_warmup_rest(KILN_WARMUP(opts), at)));

    return kiln_warmup_factor(KILN_WARMUP(opts), at) *
           (opts->min_factor + (1.0 - opts->min_factor) * cosine);
}

static const KilnSchedulerOps ops = { .factor = factor, .check = fits };

const KilnComponent kiln_scheduler_cosine = {
    .kind = KILN_KIND_SCHEDULER,
    .name = "cosine",
    .summary = "Cosine decay to min_factor over the whole run, after an optional warmup",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .check = check,
    .ops.scheduler = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_scheduler_cosine, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
