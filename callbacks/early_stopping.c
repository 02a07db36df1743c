/* Stops training when a metric no longer improves or crosses a threshold. Lightning's options;
 * docs/lightning.md lists the differences. */
#include "kiln.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct Opts {
    char *monitor;
    double min_delta, *stopping_threshold, *divergence_threshold;
    int64_t patience, mode;
    bool *check_on_train_epoch_end;
    bool strict, check_finite, verbose;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_STR_OPT(Opts, monitor, "val/loss",
                       "metric to watch; null is refused, with what the run logs"),
    KILN_FIELD_F64(Opts, min_delta, "0.0", 0.0, INFINITY,
                   "smallest change that counts as an improvement"),
    KILN_FIELD_I64(Opts, patience, "3", 0, 1e9, "checks without improvement before training stops"),
    KILN_FIELD_MODE(Opts),
    KILN_FIELD_BOOL(Opts, strict, "true",
                    "refuse a metric that this run does not log; false: warn only"),
    KILN_FIELD_BOOL(Opts, check_finite, "true", "stop when the metric is NaN or infinite"),
    KILN_FIELD_F64_OPT(Opts, stopping_threshold, "null", -INFINITY, INFINITY,
                       "stop when the metric is better than this; null: never"),
    KILN_FIELD_F64_OPT(Opts, divergence_threshold, "null", -INFINITY, INFINITY,
                       "stop when the metric is worse than this; null: never"),
    KILN_FIELD_BOOL_OPT(
        Opts, check_on_train_epoch_end, "null",
        "true: check at the end of an epoch; false: after validation; null: when the metric has a "
        "new value"),
    KILN_FIELD_BOOL(Opts, verbose, "false", "print the result of each check"),
    KILN_FIELD_END,
};

typedef struct State {
    bool watches; /* the run logs the metric */
    bool higher;  /* values of it are better */
    bool started; /* best has a value */
    double best;
    int64_t waited;       /* checks since then */
    int64_t checked_step; /* of the last check */
} State;

static KilnStatus setup(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);

    if (strcmp(kiln_trainer_phase(trainer), "fit") != 0)
        return KILN_OK;
    if (opts->monitor == NULL) /* of a task that names no metric */
        return kiln_trainer_unknown_monitor(trainer, self, NULL, err);
    state->watches = kiln_trainer_logs(trainer, opts->monitor);
    if (!state->watches && opts->strict)
        return kiln_trainer_unknown_monitor(trainer, self, opts->monitor, err);
    if (!state->watches)
        kiln_trainer_print(trainer,
                           "warning: early_stopping: this run logs no %s; training is not stopped",
                           opts->monitor);
    return state->watches
               ? kiln_trainer_mode(trainer, self, opts->monitor, opts->mode, &state->higher, err)
               : KILN_OK;
}

/* ---- A check ------------------------------------------------------------------------ */

static bool better(const State *state, double a, double b)
{
    return state->higher ? a > b : a < b;
}

/* Add a value; true if it is an improvement. */
static bool improve(const Opts *opts, State *state, double value)
{
    const double least = state->higher ? value - opts->min_delta : value + opts->min_delta;

    if (isnan(value) || (state->started && !better(state, least, state->best))) {
        state->waited++;
        return false;
    }
    state->started = true;
    state->best = value;
    state->waited = 0;
    return true;
}

/* Why training stops at this value; "": it continues. */
static void judge(const Opts *opts, const State *state, double value, char *reason, size_t size)
{
    const double *enough = opts->stopping_threshold, *hopeless = opts->divergence_threshold;

    reason[0] = '\0';
    if (opts->check_finite && !isfinite(value))
        snprintf(reason, size, "%s is %s", opts->monitor, isnan(value) ? "NaN" : "infinite");
    else if (enough != NULL && better(state, value, *enough))
        snprintf(reason, size, "%s is %.6g, better than stopping_threshold=%g", opts->monitor,
                 value, *enough);
    else if (hopeless != NULL && better(state, *hopeless, value))
        snprintf(reason, size, "%s is %.6g, worse than divergence_threshold=%g", opts->monitor,
                 value, *hopeless);
    else if (state->waited > 0 && state->waited >= opts->patience)
        snprintf(reason, size, "%s has not improved on %.6g for %lld check%s", opts->monitor,
                 state->best, (long long)state->waited, state->waited == 1 ? "" : "s");
}

static void tell(const Opts *opts, const State *state, KilnTrainer *trainer, double value,
                 bool progress)
{
    if (!opts->verbose)
        return;
    if (progress)
        kiln_trainer_print(trainer, "early_stopping: %s is %.6g, the best so far", opts->monitor,
                           value);
    else
        kiln_trainer_print(
            trainer, "early_stopping: %s is %.6g, no better than %.6g: %lld of %lld checks",
            opts->monitor, value, state->best, (long long)state->waited, (long long)opts->patience);
}

/* Check each value once, at its own step; epochs without validation do not count. */
static void check(KilnInstance *self, KilnTrainer *trainer)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const int64_t step = kiln_trainer_global_step(trainer);
    char reason[256], full[320];
    double value;

    if (!state->watches || state->checked_step == step ||
        !kiln_trainer_step_metric(trainer, opts->monitor, &value))
        return;
    state->checked_step = step;
    tell(opts, state, trainer, value, improve(opts, state, value));
    judge(opts, state, value, reason, sizeof(reason));
    snprintf(full, sizeof(full), "early_stopping: %s", reason);
    if (reason[0] != '\0')
        kiln_trainer_stop(trainer, full);
}

static KilnStatus on_validation_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const bool *at_epoch_end = opts->check_on_train_epoch_end;

    (void)err;
    if (strcmp(kiln_trainer_phase(trainer), "validate") == 0 &&
        (at_epoch_end == NULL || !*at_epoch_end))
        check(self, trainer);
    return KILN_OK;
}

static KilnStatus on_train_epoch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const bool *at_epoch_end = opts->check_on_train_epoch_end;

    (void)err;
    if (at_epoch_end == NULL || *at_epoch_end)
        check(self, trainer);
    return KILN_OK;
}

/* ---- In a checkpoint ------------------------------------------------------------------ */

static void state_dict(KilnInstance *self, KilnState *saved)
{
    const State *state = kiln_state(self);

    kiln_state_set_i64(saved, "started", state->started ? 1 : 0);
    kiln_state_set_f64(saved, "best", state->best);
    kiln_state_set_i64(saved, "waited", state->waited);
    kiln_state_set_i64(saved, "checked_step", state->checked_step);
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
    (void)kiln_state_get_i64(saved, "checked_step", &state->checked_step); /* not in format 2 */
    state->started = started != 0;
    return KILN_OK;
}

static const KilnCallbackOps ops = {
    .setup = setup,
    .on_validation_end = on_validation_end,
    .on_train_epoch_end = on_train_epoch_end,
    .state_dict = state_dict,
    .load_state_dict = load_state_dict,
    .rank = KILN_RANK_MONITOR,
};

const KilnComponent kiln_callback_early_stopping = {
    .kind = KILN_KIND_CALLBACK,
    .name = "early_stopping",
    .summary = "Stop training when a metric no longer improves",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .ops.callback = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_callback_early_stopping, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
