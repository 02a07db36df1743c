/* The learning rate falls when a metric stops improving, as torch's ReduceLROnPlateau. Checks after
 * each epoch that logged the metric. */
#include "kiln.h"

#include <math.h>

enum { THRESHOLD_REL, THRESHOLD_ABS };

typedef struct Opts {
    KILN_WARMUP_OPTIONS;
    char *monitor;
    int64_t mode, patience, threshold_mode, cooldown;
    double factor, threshold, min_factor;
} Opts;

static const KilnChoice threshold_modes[] = { { "rel", THRESHOLD_REL },
                                              { "abs", THRESHOLD_ABS },
                                              { NULL, 0 } };

static const KilnField fields[] = {
    KILN_FIELD_STR(Opts, monitor, "val/loss", "metric to watch"),
    KILN_FIELD_MODE(Opts),
    KILN_FIELD_F64(Opts, factor, "0.1", 0.0, 1.0, "factor of the learning rate at each fall"),
    KILN_FIELD_I64(Opts, patience, "10", 0, 1e9,
                   "checks without improvement before the learning rate falls"),
    KILN_FIELD_F64(Opts, threshold, "1e-4", 0.0, 1e6, "smallest change that counts"),
    KILN_FIELD_ENUM(Opts, threshold_mode, "rel", threshold_modes,
                    "rel: relative to the best value; abs: absolute"),
    KILN_FIELD_I64(Opts, cooldown, "0", 0, 1e9, "checks to ignore after a fall"),
    KILN_FIELD_F64(Opts, min_factor, "0.0", 0.0, 1.0,
                   "lower bound, as a fraction of the learning rate"),
    KILN_WARMUP_FIELDS(Opts),
    KILN_FIELD_END,
};

typedef struct State {
    double best, share; /* share: current fraction of the learning rate */
    int64_t waited, cooling;
} State;

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    if (opts->factor >= 1.0) {
        *ret_option = "factor";
        return kiln_error_set(err, KILN_E_RANGE, "expected a number below 1, got %g", opts->factor);
    }
    return kiln_warmup_check(KILN_WARMUP(opts), ret_option, err);
}

static KilnStatus init(KilnInstance *self, KilnError *err)
{
    State *state = kiln_state(self);

    (void)err;
    *state = (State) { .best = (double)NAN, .share = 1.0 };
    return KILN_OK;
}

static KilnStatus fits(const KilnInstance *self, const KilnProgress *at, KilnError *err)
{
    return kiln_warmup_fits(KILN_WARMUP((const Opts *)kiln_opts(self)), at, err);
}

static double factor(const KilnInstance *self, const KilnProgress *at)
{
    const State *state = kiln_state((KilnInstance *)self);

    return kiln_warmup_factor(KILN_WARMUP((const Opts *)kiln_opts(self)), at) * state->share;
}

static const char *monitor(const KilnInstance *self, int64_t *ret_mode)
{
    const Opts *opts = kiln_opts(self);

    *ret_mode = opts->mode;
    return opts->monitor;
}

static bool is_better(const Opts *opts, double value, double best, bool higher)
{
    double margin = opts->threshold_mode == THRESHOLD_ABS ? opts->threshold
                                                          : opts->threshold * best;

    if (!isfinite(best)) /* no metric yet */
        return isfinite(value);
    return higher ? value > best + margin : value < best - margin;
}

static void observe(KilnInstance *self, double value, bool higher_is_better)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);

    state->waited++;
    if (is_better(opts, value, state->best, higher_is_better)) {
        state->best = value;
        state->waited = 0;
    }
    if (state->cooling > 0) {
        state->cooling--;
        state->waited = 0;
    }
    if (state->waited > opts->patience) {
        state->share = fmax(state->share * opts->factor, opts->min_factor);
        state->cooling = opts->cooldown;
        state->waited = 0;
    }
}

static void state_dict(KilnInstance *self, KilnState *saved)
{
    const State *state = kiln_state(self);

    kiln_state_set_f64(saved, "best", state->best);
    kiln_state_set_f64(saved, "share", state->share);
    kiln_state_set_i64(saved, "waited", state->waited);
    kiln_state_set_i64(saved, "cooling", state->cooling);
}

static KilnStatus load_state_dict(KilnInstance *self, const KilnState *saved, KilnError *err)
{
    State *state = kiln_state(self);

    if (!kiln_state_get_f64(saved, "best", &state->best) ||
        !kiln_state_get_f64(saved, "share", &state->share) ||
        !kiln_state_get_i64(saved, "waited", &state->waited) ||
        !kiln_state_get_i64(saved, "cooling", &state->cooling))
        return kiln_error_set(err, KILN_E_FORMAT,
                              "the checkpoint's state lacks best, share, waited or cooling");
    return KILN_OK;
}

static bool by_epoch(const KilnInstance *self)
{
    const Opts *opts = kiln_opts(self);

    return opts->warmup_steps == 0 && opts->warmup_epochs <= 0.0;
}

static const KilnSchedulerOps ops = {
    .factor = factor,
    .check = fits,
    .by_epoch = by_epoch,
    .monitor = monitor,
    .observe = observe,
    .state_dict = state_dict,
    .load_state_dict = load_state_dict,
};

const KilnComponent kiln_scheduler_plateau = {
    .kind = KILN_KIND_SCHEDULER,
    .name = "plateau",
    .summary = "The learning rate falls when a metric stops improving",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .check = check,
    .init = init,
    .ops.scheduler = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_scheduler_plateau, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
