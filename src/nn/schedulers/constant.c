/* A learning rate that stays, after an optional warmup. */
#include "kiln.h"

typedef struct Opts {
    int64_t warmup_steps;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, warmup_steps, "0", 0, 1000000000,
                   "steps over which the learning rate rises in a straight line from 0"),
    KILN_FIELD_END,
};

static double factor(const KilnInstance *self, const KilnProgress *at)
{
    const Opts *opts = kiln_opts(self);

    if (at->step < opts->warmup_steps)
        return (double)(at->step + 1) / (double)opts->warmup_steps;
    return 1.0;
}

static const KilnSchedulerOps ops = { .factor = factor };

const KilnComponent kiln_scheduler_constant = {
    .kind = KILN_KIND_SCHEDULER,
    .name = "constant",
    .summary = "The learning rate stays as it is, after an optional warmup",
    .fields = fields,
    .opts_size = sizeof(Opts),
    .ops.scheduler = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_scheduler_constant, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
