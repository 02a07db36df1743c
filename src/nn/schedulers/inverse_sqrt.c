/* Decay with the inverse square root of the step after a warmup (Vaswani et al. 2017), as fairseq's
 * inverse_sqrt and transformers' get_inverse_sqrt_schedule: the same for runs of any length. */
#include "kiln.h"

#include <math.h>

typedef struct Opts {
    KILN_WARMUP_OPTIONS;
} Opts;

static const KilnField fields[] = {
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

/* Without a warmup the first step has the full rate. */
static double factor(const KilnInstance *self, const KilnProgress *at)
{
    const KilnWarmup warmup = KILN_WARMUP((const Opts *)kiln_opts(self));
    const double full = fmax(kiln_warmup_steps(warmup, at), 1.0), step = (double)at->step + 1.0;

    return step < full ? kiln_warmup_factor(warmup, at) : sqrt(full / step);
}

static const KilnSchedulerOps ops = { .factor = factor, .check = fits };

const KilnComponent kiln_scheduler_inverse_sqrt = {
    .kind = KILN_KIND_SCHEDULER,
    .name = "inverse_sqrt",
    .summary = "Decay with the inverse square root of the step, after a warmup",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .check = check,
    .ops.scheduler = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_scheduler_inverse_sqrt, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
