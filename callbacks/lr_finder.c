/* Finds a learning rate before training begins: trains some steps with growing rates, smooths their
 * losses and takes a tenth of the last rate whose loss is the least or within the noise of that. A
 * tenth of the rate with the least loss is fastai's rule `minimum`, after Smith ("Cyclical learning
 * rates for training neural networks", 2017); the noise keeps it useful where batches are small
 * and the loss falls little before it blows up. The rates of the steps are Lightning's; its rule,
 * the steepest slope over the rate itself, is decided by noise of the smallest rates. On the
 * runs of docs/tuning.md, on which its constants were chosen, this rule ends better than fastai's
 * steep, valley and minimum. */
#include "kiln.h"
#include "kiln/tune.h"
#include "kiln/plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODE_EXPONENTIAL, MODE_LINEAR };
/* The average of the first losses is over few batches, and so often the smallest by chance. */
enum { WARM_UP = 10, FEWEST_STEPS = 20 };
/* Of the average of losses; fastai's and Lightning's 0.98 sees the least loss too late. */
static const double smoothing = 0.9;
static const double margin = 10.0; /* the suggestion is that rate divided by this */

typedef struct Opts {
    double min_lr, max_lr;
    int64_t num_training_steps, mode;
    double *early_stop_threshold;
    bool update_attr;
    char *attr_name;
} Opts;

static const KilnChoice modes[] = {
    { "exponential", MODE_EXPONENTIAL },
    { "linear", MODE_LINEAR },
    { NULL, 0 },
};
static const KilnField fields[] = {
    KILN_FIELD_F64(Opts, min_lr, "1e-7", 1e-300, 1e6, "learning rate of the first step"),
    KILN_FIELD_F64(Opts, max_lr, "10.0", 1e-300, 1e6, "learning rate of the last step"),
    KILN_FIELD_I64(Opts, num_training_steps, "100", 2, 1000000, "steps that are tried"),
    KILN_FIELD_ENUM(Opts, mode, "exponential", modes, "how the rate grows per step"),
    KILN_FIELD_F64_OPT(
        Opts, early_stop_threshold, "4.0", 1.0, 1e9,
        "stop when the smoothed loss exceeds this multiple of the best; null: never"),
    KILN_FIELD_BOOL(Opts, update_attr, "true",
                    "train with the rate that is found; false: only report it"),
    KILN_FIELD_STR_OPT(Opts, attr_name, "null",
                       "key of the learning rate; null: the optimizer's lr"),
    KILN_FIELD_END,
};

typedef struct State {
    const Opts *opts;
    KilnTune *tune;
    double *lr, *loss; /* of the steps; the loss is smoothed */
    double *change;    /* of the loss, as it is, from the step before */
    int64_t n;
    double average, best; /* of the loss so far */
    double last;          /* loss, as it was */
    int64_t least;        /* the last step with the least loss, but for noise; -1: none */
    int64_t found;        /* the step whose rate is suggested; -1: none */
    const char *key;      /* of the option that is set */
    char value[32];       /* it is set to; "": there is no suggestion */
    char *curve;          /* the points as text, for the state */
    bool searched;
} State;

static KilnStatus check(const void *opts, const char **ret_option, KilnError *err)
{
    const Opts *all = opts;

    if (all->min_lr < all->max_lr)
        return KILN_OK;
    *ret_option = "max_lr";
    return kiln_error_set(err, KILN_E_RANGE, "must be more than min_lr, which is %g", all->min_lr);
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    free(state->lr);
    free(state->loss);
    free(state->change);
    free(state->curve);
}

/* ---- The steps ------------------------------------------------------------------------ */

/* The rate of step i: the smallest for the first; from the second on, steps count from 1. */
static double rate(void *ctx, int64_t i)
{
    const Opts *opts = ((State *)ctx)->opts;
    const double share = (double)(i + 1) / (double)opts->num_training_steps;

    if (i == 0)
        return opts->min_lr;
    if (opts->mode == MODE_LINEAR)
        return opts->min_lr + share * (opts->max_lr - opts->min_lr);
    return opts->min_lr * pow(opts->max_lr / opts->min_lr, share);
}

static void tell(const State *state)
{
    const int64_t every = state->opts->num_training_steps / 100 + 1;
    char text[160];

    if (state->n % every != 0)
        return;
    snprintf(text, sizeof(text), "finding a learning rate: step %lld of %lld, lr %.3g, loss %.4g",
             (long long)state->n, (long long)state->opts->num_training_steps,
             state->lr[state->n - 1], state->loss[state->n - 1]);
    kiln_tune_status(state->tune, text);
}

/* Step i is done. False when the loss has grown too far above the best. */
static bool take(State *state, int64_t i, double loss)
{
    const double *threshold = state->opts->early_stop_threshold;
    const int64_t step = i + 1;

    state->average = smoothing * state->average + (1.0 - smoothing) * loss;
    /* The average began at 0: without this division the first losses would be too small. */
    const double smoothed = state->average / (1.0 - pow(smoothing, (double)step));
    const bool diverges = threshold != NULL && step > 1 && smoothed > *threshold * state->best;
    if (smoothed < state->best || step == 1)
        state->best = smoothed;
    state->lr[state->n] = rate(state, i);
    state->change[state->n] = fabs(loss - state->last);
    state->last = loss;
    state->loss[state->n++] = smoothed;
    return !diverges;
}

static bool report(void *ctx, int64_t i, double loss)
{
    const bool should_continue = take(ctx, i, loss);

    tell(ctx);
    return should_continue;
}

/* ---- The suggestion --------------------------------------------------------------------- */

/* How far a batch's loss is from that of all batches, by the changes from step to step in the first
 * half, with whose rates little moves: the difference of two is the square root of 2 times as far.
 */
static double noise(const State *state)
{
    const int64_t n = state->n / 2 - WARM_UP;
    double sum = 0.0;

    for (int64_t i = WARM_UP; i < WARM_UP + n; i++)
        sum += state->change[i];
    return n > 0 ? sum / (double)n / sqrt(2.0) : 0.0;
}

static void suggest(State *state)
{
    const double *loss = state->loss;
    int64_t least = -1;

    state->found = -1;
    for (int64_t i = WARM_UP; i < state->n; i++)
        if (isfinite(loss[i]) && (least < 0 || loss[i] < loss[least]))
            least = i;
    const double most = least >= 0 ? loss[least] + noise(state) : 0.0;
    for (int64_t i = least + 1; least >= 0 && i < state->n; i++)
        if (loss[i] <= most)
            least = i;
    for (int64_t i = 0; i < least && state->n >= FEWEST_STEPS; i++)
        if (state->lr[i] * margin <= state->lr[least])
            state->found = i;
    state->least = least;
}

/* ---- Before the run ------------------------------------------------------------------------ */

static KilnStatus make_room(State *state, int64_t n, KilnError *err)
{
    state->lr = calloc((size_t)n, sizeof(*state->lr));
    state->loss = calloc((size_t)n, sizeof(*state->loss));
    state->change = calloc((size_t)n, sizeof(*state->change));
    state->n = 0;
    state->found = -1;
    if (state->lr == NULL || state->loss == NULL || state->change == NULL)
        return kiln_error_nomem(err, (size_t)n * sizeof(*state->lr));
    return KILN_OK;
}

static KilnStatus search(State *state, KilnError *err)
{
    KilnTuneTrial trial = {
        .steps = state->opts->num_training_steps,
        .rate = rate,
        .report = report,
        .ctx = state,
    };
    KilnStatus status = make_room(state, trial.steps, err);

    if (status >= 0)
        status = kiln_tune_try(state->tune, &trial, err);
    if (status < 0)
        return status;
    suggest(state);
    if (state->found >= 0) /* more digits would be noise */
        snprintf(state->value, sizeof(state->value), "%.2g", state->lr[state->found]);
    return KILN_OK;
}

static KilnStatus draw(const State *state, const char *dir, KilnError *err)
{
    char path[4160], label[32];
    const KilnPlotLine lines[] = {
        { .x = state->lr, .y = state->loss, .n = (size_t)state->n },
        { .label = label,
          .x = &state->lr[state->found > 0 ? state->found : 0],
          .y = &state->loss[state->found > 0 ? state->found : 0],
          .n = 1 },
    };
    const KilnChart chart = {
        .title = "Learning rate finder",
        .x_label = "learning rate",
        .y_label = "smoothed loss",
        .lines = lines,
        .n_lines = state->found >= 0 ? 2 : 1,
        .log_x = state->opts->mode == MODE_EXPONENTIAL,
    };

    if (kiln_plot_supported(NULL) < 0)
        return KILN_OK;
    snprintf(label, sizeof(label), "%.3g", state->found >= 0 ? state->lr[state->found] : 0.0);
    snprintf(path, sizeof(path), "%s/lr_finder.png", dir);
    return kiln_plot_chart(path, &chart, err);
}

static void tell_missing(const State *state)
{
    if (state->opts->num_training_steps < FEWEST_STEPS)
        kiln_tune_print(state->tune,
                        "num_training_steps=%lld is too small to suggest a learning rate, which "
                        "stays unchanged; use at least %d",
                        (long long)state->opts->num_training_steps, FEWEST_STEPS);
    else
        kiln_tune_print(state->tune,
                        "the loss does not fall from min_lr=%g on, so no learning rate is "
                        "suggested, and it stays unchanged; "
                        "try a lower callbacks.lr_finder.min_lr",
                        state->opts->min_lr);
}

static void tell_found(const State *state)
{
    KilnError why = { 0 };

    if (!state->searched && kiln_plot_supported(&why) < 0)
        kiln_tune_print(state->tune, "no lr_finder.png: %s", why.text);
    if (state->value[0] == '\0') {
        tell_missing(state);
        return;
    }
    kiln_tune_print(state->tune, "%s%s=%s%s", state->opts->update_attr ? "" : "suggests ",
                    state->key, state->value, state->searched ? ", as when the run began" : "");
    if (!state->searched && state->least == state->opts->num_training_steps - 1)
        kiln_tune_print(state->tune,
                        "the loss still falls at max_lr=%g; a higher callbacks.lr_finder.max_lr "
                        "may find a higher rate",
                        state->opts->max_lr);
}

/* Before the search: check that the run has this key. */
static KilnStatus check_key(const State *state, KilnError *err)
{
    char value[32];
    KilnTuneNeeds needs;

    snprintf(value, sizeof(value), "%.17g", state->opts->min_lr);
    KilnStatus status = kiln_tune_estimate(state->tune, (KilnTuneOption) { state->key, value },
                                           &needs, err);
    return status >= 0 ? status : kiln_error_prefix(err, "attr_name: ");
}

static KilnStatus tune(KilnInstance *self, KilnTune *tune, KilnError *err)
{
    State *state = kiln_state(self);
    const Opts *opts = state->opts = kiln_opts(self);
    KilnStatus status = KILN_OK;

    state->tune = tune;
    state->key = opts->attr_name;
    if (state->key == NULL)
        status = kiln_tune_lr_key(tune, "attr_name", &state->key, err);
    else if (!state->searched)
        status = check_key(state, err);
    if (status >= 0 && !state->searched)
        status = search(state, err);
    if (status >= 0 && kiln_tune_dir(tune) != NULL)
        status = draw(state, kiln_tune_dir(tune), err);
    if (status < 0)
        return status;
    tell_found(state);
    if (!opts->update_attr || state->value[0] == '\0')
        return KILN_OK;
    return kiln_tune_set(tune, (KilnTuneOption) { state->key, state->value }, err);
}

/* ---- In the run ----------------------------------------------------------------------------- */

static KilnStatus on_fit_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    State *state = kiln_state(self);
    const char *dir = kiln_trainer_run_dir(trainer);

    state->opts = kiln_opts(self);
    return state->n > 0 && dir[0] != '\0' ? draw(state, dir, err) : KILN_OK;
}

/* ---- State ----------------------------------------------------------------------------------- */

enum { POINT = 52 }; /* two numbers of 17 digits */

static const char *curve_text(State *state)
{
    size_t used = 0, size = (size_t)state->n * POINT + 1;

    free(state->curve);
    state->curve = malloc(size);
    if (state->curve == NULL)
        return NULL;
    state->curve[0] = '\0';
    for (int64_t i = 0; i < state->n; i++)
        used += (size_t)snprintf(state->curve + used, size - used, "%.17g,%.17g\n", state->lr[i],
                                 state->loss[i]);
    return state->curve;
}

static void state_dict(KilnInstance *self, KilnState *out)
{
    State *state = kiln_state(self);

    kiln_state_set_str(out, "value", state->value);
    kiln_state_set_i64(out, "found", state->found);
    kiln_state_set_i64(out, "steps", state->n);
    kiln_state_set_str(out, "curve", curve_text(state));
}

static KilnStatus load_curve(State *state, const char *text, int64_t n, KilnError *err)
{
    free(state->lr);
    free(state->loss);
    free(state->change);
    KilnStatus status = make_room(state, n, err);

    for (; status >= 0 && state->n < n; state->n++) {
        char *end;

        state->lr[state->n] = strtod(text, &end);
        if (end == text || *end != ',')
            break;
        state->loss[state->n] = strtod(end + 1, &end);
        text = end + (*end == '\n');
    }
    return status;
}

static KilnStatus load_state_dict(KilnInstance *self, const KilnState *in, KilnError *err)
{
    State *state = kiln_state(self);
    const char *value = "", *curve = NULL;
    int64_t found = -1, steps = 0;

    kiln_state_get_str(in, "value", &value);
    kiln_state_get_str(in, "curve", &curve);
    kiln_state_get_i64(in, "found", &found);
    kiln_state_get_i64(in, "steps", &steps);
    snprintf(state->value, sizeof(state->value), "%s", value != NULL ? value : "");
    state->searched = true;
    if (curve == NULL || steps < 1 || steps > 1000000)
        return KILN_OK;
    KilnStatus status = load_curve(state, curve, steps, err);
    state->found = found < state->n ? found : -1;
    return status;
}

static const KilnCallbackOps ops = {
    .on_fit_start = on_fit_start,
    .state_dict = state_dict,
    .load_state_dict = load_state_dict,
    .tune = tune,
};

const KilnComponent kiln_callback_lr_finder = {
    .kind = KILN_KIND_CALLBACK,
    .name = "lr_finder",
    .summary = "Find a learning rate before training begins",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .check = check,
    .release = release,
    .ops.callback = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_callback_lr_finder, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
