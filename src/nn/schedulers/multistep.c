/* The learning rate falls by a factor at given epochs, as torch's MultiStepLR. */
#include "kiln.h"

#include <math.h>

typedef struct Opts {
    KILN_WARMUP_OPTIONS;
    int64_t interval;
    int64_t *milestones;
    size_t milestones_count;
    double gamma;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_I64_LIST(Opts, milestones, NULL, 1, 1e15, "epochs (or steps) after which it falls"),
    KILN_FIELD_F64(Opts, gamma, "0.1", 0.0, 1e3, "factor at each fall"),
    KILN_FIELD_ENUM(Opts, interval, "epoch", kiln_intervals, "unit: epochs or steps"),
    KILN_WARMUP_FIELDS(Opts),
    KILN_FIELD_END,
};

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    for (size_t i = 1; i < opts->milestones_count; i++)
        if (opts->milestones[i] <= opts->milestones[i - 1]) {
            *ret_option = "milestones";
            return kiln_error_set(
                err, KILN_E_RANGE, "expected increasing numbers, got %lld after %lld",
                (long long)opts->milestones[i], (long long)opts->milestones[i - 1]);
        }
    return kiln_warmup_check(KILN_WARMUP(opts), ret_option, err);
}

static KilnStatus fits(const KilnInstance *self, const KilnProgress *at, KilnError *err)
{
    return kiln_warmup_fits(KILN_WARMUP((const Opts *)kiln_opts(self)), at, err);
}

static double factor(const KilnInstance *self, const KilnProgress *at)
{
    const Opts *opts = kiln_opts(self);
    int64_t count = kiln_interval_count(opts->interval, at), falls = 0;

    for (size_t i = 0; i < opts->milestones_count; i++)
        falls += count >= opts->milestones[i];
    return kiln_warmup_factor(KILN_WARMUP(opts), at) * pow(opts->gamma, (double)falls);
}

static bool by_epoch(const KilnInstance *self)
{
    const Opts *opts = kiln_opts(self);

    return opts->interval == KILN_INTERVAL_EPOCH && opts->warmup_steps == 0 &&
           opts->warmup_epochs <= 0.0;
}

static const KilnSchedulerOps ops = { .factor = factor, .by_epoch = by_epoch, .check = fits };

const KilnComponent kiln_scheduler_multistep = {
    .kind = KILN_KIND_SCHEDULER,
    .name = "multistep",
    .summary = "Multiplies the learning rate by gamma at each milestone",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .check = check,
    .ops.scheduler = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_scheduler_multistep, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
