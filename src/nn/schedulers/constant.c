/* A constant learning rate after an optional warmup. */
#include "kiln.h"

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

static double factor(const KilnInstance *self, const KilnProgress *at)
{
    return kiln_warmup_factor(KILN_WARMUP((const Opts *)kiln_opts(self)), at);
}

static const KilnSchedulerOps ops = { .factor = factor, .check = fits };

const KilnComponent kiln_scheduler_constant = {
    .kind = KILN_KIND_SCHEDULER,
    .name = "constant",
    .summary = "Constant learning rate after an optional warmup",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .check = check,
    .ops.scheduler = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_scheduler_constant, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
