/* The one-cycle policy (Smith and Topin, "Super-convergence", 2018): the learning rate rises, then
 * falls far below its start, once over the planned run. As torch's OneCycleLR with
 * cycle_momentum=False, since kiln's schedules do not change the momentum. */
#include "kiln.h"

#include <math.h>

enum { ANNEAL_COS, ANNEAL_LINEAR };

static const KilnChoice strategies[] = { { "cos", ANNEAL_COS },
                                         { "linear", ANNEAL_LINEAR },
                                         { NULL, 0 } };

typedef struct Opts {
    double pct_start, div_factor, final_div_factor;
    int64_t anneal_strategy;
    bool three_phase;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_F64(Opts, pct_start, "0.3", 0.0, 1.0, "fraction of the run in which it rises"),
    KILN_FIELD_ENUM(Opts, anneal_strategy, "cos", strategies, "cosine or linear annealing"),
    KILN_FIELD_F64(Opts, div_factor, "25.0", 1.0, 1e9,
                   "initial value: the learning rate divided by this"),
    KILN_FIELD_F64(Opts, final_div_factor, "1e4", 1.0, 1e12,
                   "final value: the initial value divided by this"),
    KILN_FIELD_BOOL(Opts, three_phase, "false",
                    "fall back to the initial value as fast as it rose, then to the final value"),
    KILN_FIELD_END,
};

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    if (!opts->three_phase || opts->pct_start <= 0.5)
        return KILN_OK;
    *ret_option = "pct_start";
    return kiln_error_set(err, KILN_E_RANGE,
                          "%g: with three_phase the rise can take at most half of the run (0.5)",
                          opts->pct_start);
}

static KilnStatus has_end(const KilnInstance *self, const KilnProgress *at, KilnError *err)
{
    (void)self;
    if (at->total_steps > 0)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_RANGE,
                          "one cycle needs a run with an end: set trainer.max_epochs or "
                          "trainer.max_steps");
}

/* Interpolates from `a` to `b` while `x` goes from `begin` to `end`. */
static double anneal(int64_t strategy, double a, double b, double x, double begin, double end)
{
    const double pi = 3.14159265358979323846;
    double share = end > begin ? (x - begin) / (end - begin) : 1.0;

    if (strategy == ANNEAL_LINEAR)
        return a + (b - a) * share;
    return b + (a - b) * 0.5 * (1.0 + cos(pi * share));
}

static double factor(const KilnInstance *self, const KilnProgress *at)
{
    const Opts *opts = kiln_opts(self);
    double start = 1.0 / opts->div_factor, last = start / opts->final_div_factor;
    double end = (double)at->total_steps - 1.0, step = (double)at->step;
    double top = opts->pct_start * (double)at->total_steps - 1.0;
    double back = opts->three_phase ? 2.0 * opts->pct_start * (double)at->total_steps - 2.0 : top;

    step = step < end ? step : end;
    if (step <= top)
        return anneal(opts->anneal_strategy, start, 1.0, step, 0.0, top);
    if (step <= back)
        return anneal(opts->anneal_strategy, 1.0, start, step, top, back);
    return anneal(opts->anneal_strategy, opts->three_phase ? start : 1.0, last, step, back, end);
}

static const KilnSchedulerOps ops = { .factor = factor, .check = has_end };

const KilnComponent kiln_scheduler_one_cycle = {
    .kind = KILN_KIND_SCHEDULER,
    .name = "one_cycle",
    .summary = "One cycle: up to the learning rate, then far down, once over the whole run",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .check = check,
    .ops.scheduler = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_scheduler_one_cycle, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
