/* The learning rate falls by a factor every few epochs, as torch's StepLR. */
#include "kiln.h"

#include <math.h>

typedef struct Opts {
    int64_t step_size;
    double gamma;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, step_size, "10", 1, 1000000000, "epochs between two falls"),
    KILN_FIELD_F64(Opts, gamma, "0.1", 0.0, 1e3, "factor at each fall"),
    KILN_FIELD_END,
};

static double factor(const KilnInstance *self, const KilnProgress *at)
{
    const Opts *opts = kiln_opts(self);

    return pow(opts->gamma, (double)(at->epoch / opts->step_size));
}

static const KilnSchedulerOps ops = { .factor = factor };

const KilnComponent kiln_scheduler_step = {
    .kind = KILN_KIND_SCHEDULER,
    .name = "step",
    .summary = "The learning rate is multiplied by gamma every step_size epochs",
    .fields = fields,
    .opts_size = sizeof(Opts),
    .ops.scheduler = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_scheduler_step, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
