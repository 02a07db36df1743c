/* Half a cosine from the learning rate down to a share of it, step by step over
 * the planned run, after an optional warmup (Loshchilov and Hutter, "SGDR",
 * 2017, without restarts). */
#include "kiln.h"

#include <math.h>

typedef struct Opts {
    int64_t warmup_steps;
    double warmup_epochs, min_factor;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, warmup_steps, "0", 0, 1000000000,
                   "steps over which the learning rate rises in a straight line from 0"),
    KILN_FIELD_F64(Opts, warmup_epochs, "0.0", 0.0, 1e6, "the same in epochs; give one of both"),
    KILN_FIELD_F64(Opts, min_factor, "0.0", 0.0, 1.0,
                   "where the cosine ends, as a share of the learning rate"),
    KILN_FIELD_END,
};

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    if (opts->warmup_steps == 0 || opts->warmup_epochs <= 0.0)
        return KILN_OK;
    *ret_option = "warmup_epochs";
    return kiln_error_set(err, KILN_E_RANGE, "%g, and warmup_steps is %lld: one of both must be 0",
                          opts->warmup_epochs, (long long)opts->warmup_steps);
}

static double warmup(const Opts *opts, const KilnProgress *at)
{
    if (opts->warmup_epochs > 0.0)
        return floor(opts->warmup_epochs * (double)at->steps_per_epoch + 0.5);
    return (double)opts->warmup_steps;
}

/* A run without a planned end has no half cosine: it stays at 1. */
static double factor(const KilnInstance *self, const KilnProgress *at)
{
    const double pi = 3.14159265358979323846;
    const Opts *opts = kiln_opts(self);
    double rise = warmup(opts, at), step = (double)at->step, end = (double)at->total_steps;

    if (step < rise)
        return (step + 1.0) / rise;
    if (end <= 0.0)
        return 1.0;
    if (step >= end)
        return opts->min_factor;
    double cosine = 0.5 * (1.0 + cos(pi * (step - rise) / (end - rise)));
    return opts->min_factor + (1.0 - opts->min_factor) * cosine;
}

static const KilnSchedulerOps ops = { .factor = factor };

const KilnComponent kiln_scheduler_cosine = {
    .kind = KILN_KIND_SCHEDULER,
    .name = "cosine",
    .summary = "Half a cosine down to min_factor over the whole run, after an optional warmup",
    .fields = fields,
    .opts_size = sizeof(Opts),
    .check = check,
    .ops.scheduler = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_scheduler_cosine, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
