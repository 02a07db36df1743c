/* Stops training when a metric no longer gets better. */
#include "kiln.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MODE_MIN, MODE_MAX };

typedef struct Opts {
    char *monitor;
    double min_delta;
    int64_t patience, mode;
    bool check_finite;
} Opts;

static const KilnChoice modes[] = { { "min", MODE_MIN }, { "max", MODE_MAX }, { NULL, 0 } };

static const KilnField fields[] = {
    KILN_FIELD_STR(Opts, monitor, "val/loss", "metric to watch"),
    KILN_FIELD_F64(Opts, min_delta, "0.0", 0.0, INFINITY, "smallest change that counts"),
    KILN_FIELD_I64(Opts, patience, "3", 0, 1e9, "checks without progress before training stops"),
    KILN_FIELD_ENUM(Opts, mode, "min", modes, "whether a smaller or a larger value is better"),
    KILN_FIELD_BOOL(Opts, check_finite, "true", "stop when the metric is NaN or infinite"),
    KILN_FIELD_END,
};

typedef struct State {
    bool started; /* best is a value that was seen */
    double best;
    int64_t waited; /* checks since then */
} State;

static KilnStatus setup(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    if (strcmp(kiln_trainer_phase(trainer), "fit") != 0 ||
        kiln_trainer_logs(trainer, opts->monitor))
        return KILN_OK;
    return kiln_trainer_unknown_metric(trainer, "monitor", opts->monitor, err);
}

static void stop(KilnTrainer *trainer, const Opts *opts, const State *state, double value)
{
    char reason[256];

    if (!isfinite(value))
        snprintf(reason, sizeof(reason), "early_stopping: %s is %s", opts->monitor,
                 isnan(value) ? "NaN" : "infinite");
    else
        snprintf(reason, sizeof(reason),
                 "early_stopping: %s did not get better than %.6g (patience %lld)", opts->monitor,
                 state->best, (long long)state->waited);
    kiln_trainer_stop(trainer, reason);
}

static KilnStatus on_train_epoch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    double value;

    (void)err;
    /* Epochs without validation don't count. */
    if (!kiln_trainer_fresh_metric(trainer, opts->monitor, &value))
        return KILN_OK;
    double gain = opts->mode == MODE_MAX ? value - state->best : state->best - value;
    if (!isfinite(value) && opts->check_finite) {
        stop(trainer, opts, state, value);
    } else if (!isnan(value) && (!state->started || gain > opts->min_delta)) {
        *state = (State) { .started = true, .best = value };
    } else if (++state->waited >= opts->patience) {
        stop(trainer, opts, state, state->best);
    }
    return KILN_OK;
}

static void state_dict(KilnInstance *self, KilnState *saved)
{
    const State *state = kiln_state(self);

    kiln_state_set_i64(saved, "started", state->started ? 1 : 0);
    kiln_state_set_f64(saved, "best", state->best);
    kiln_state_set_i64(saved, "waited", state->waited);
}

static KilnStatus load_state_dict(KilnInstance *self, const KilnState *saved, KilnError *err)
{
    State *state = kiln_state(self);
    int64_t started = 0;

    if (!kiln_state_get_i64(saved, "started", &started) ||
        !kiln_state_get_f64(saved, "best", &state->best) ||
        !kiln_state_get_i64(saved, "waited", &state->waited))
        return kiln_error_set(err, KILN_E_FORMAT,
                              "the checkpoint's state lacks started, best or waited");
    state->started = started != 0;
    return KILN_OK;
}

static const KilnCallbackOps ops = {
    .setup = setup,
    .on_train_epoch_end = on_train_epoch_end,
    .state_dict = state_dict,
    .load_state_dict = load_state_dict,
    .rank = KILN_RANK_MONITOR,
};

const KilnComponent kiln_callback_early_stopping = {
    .kind = KILN_KIND_CALLBACK,
    .name = "early_stopping",
    .summary = "Stop training when a metric no longer gets better",
    .fields = fields,
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .ops.callback = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_callback_early_stopping, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
