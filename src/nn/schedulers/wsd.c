/* Warmup, stable, decay (Hu et al., "MiniCPM", 2024): the learning rate rises, stays constant, and
 * falls in the last part of the planned run. A run without a planned end keeps factor 1 after the
 * warmup. */
#include "kiln.h"

#include <math.h>

enum { DECAY_LINEAR, DECAY_COSINE, DECAY_SQRT };

static const KilnChoice shapes[] = {
    { "linear", DECAY_LINEAR }, { "cosine", DECAY_COSINE }, { "sqrt", DECAY_SQRT }, { NULL, 0 }
};

typedef struct Opts {
    KILN_WARMUP_OPTIONS;
    double decay_fraction, min_factor;
    int64_t decay_shape;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_F64(Opts, decay_fraction, "0.1", 0.0, 1.0,
                   "fraction of the whole run in which it falls"),
    KILN_FIELD_ENUM(Opts, decay_shape, "linear", shapes,
                    "shape of the decay; sqrt: 1 - sqrt(t) (Haegele et al. 2024)"),
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
    const Opts *opts = kiln_opts(self);
    double warmup = kiln_warmup_steps(KILN_WARMUP(opts), at);
    double fall = floor(opts->decay_fraction * (double)at->total_steps + 0.5);

    if (at->total_steps > 0 && warmup + fall > (double)at->total_steps)
        return kiln_error_set(err, KILN_E_RANGE,
                              "warmup of %.0f and decay_fraction of %.0f steps are more than the "
                              "whole run, %lld",
                              warmup, fall, (long long)at->total_steps);
    return kiln_warmup_fits(KILN_WARMUP(opts), at, err);
}

static double fall(int64_t shape, double share)
{
    const double pi = 3.14159265358979323846;

    return shape == DECAY_LINEAR   ? 1.0 - share
           : shape == DECAY_COSINE ? 0.5 * (1.0 + cos(pi * share))
                                   : 1.0 - sqrt(share);
}

static double factor(const KilnInstance *self, const KilnProgress *at)
{
    const Opts *opts = kiln_opts(self);
    double total = (double)at->total_steps,
           begin = total - floor(opts->decay_fraction * total + 0.5);
    double warmup = kiln_warmup_factor(KILN_WARMUP(opts), at), step = (double)at->step;

    if (at->total_steps < 1 || step < begin)
        return warmup;
    double share = step < total && begin < total ? (step - begin) / (total - begin) : 1.0;
    return warmup * (opts->min_factor + (1.0 - opts->min_factor) * fall(opts->decay_shape, share));
}

static const KilnSchedulerOps ops = { .factor = factor, .check = fits };

const KilnComponent kiln_scheduler_wsd = {
    .kind = KILN_KIND_SCHEDULER,
    .name = "wsd",
    .summary = "The learning rate rises, stays, and falls in the last part of the run",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .check = check,
    .ops.scheduler = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_scheduler_wsd, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
