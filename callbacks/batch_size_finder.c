/* Finds the largest batch that fits the memory, before training begins. Lightning's BatchSizeFinder
 * runs out of memory to find it; here the memory estimate says what fits, and a few steps confirm
 * it. Smaller batches are timed, too, since the largest is not always the fastest. */
#include "kiln.h"
#include "kiln/tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODE_POWER, MODE_BINSEARCH };
enum { PREFER_LARGEST, PREFER_FASTEST };

typedef struct Opts {
    int64_t mode, steps_per_trial, init_val, max_trials, max_val, prefer;
    double margin;
    char *batch_arg_name;
} Opts;

static const KilnChoice modes[] = {
    { "power", MODE_POWER },
    { "binsearch", MODE_BINSEARCH },
    { NULL, 0 },
};
static const KilnChoice prefers[] = {
    { "largest", PREFER_LARGEST },
    { "fastest", PREFER_FASTEST },
    { NULL, 0 },
};

static const KilnField fields[] = {
    KILN_FIELD_ENUM(Opts, mode, "power", modes,
                    "power: double the size as long as it fits; binsearch: then halve the steps, "
                    "to the last sample that fits"),
    KILN_FIELD_I64(Opts, steps_per_trial, "3", 1, 100000, "steps to train with each size"),
    KILN_FIELD_I64(Opts, init_val, "2", 1, 1000000, "size to begin with"),
    KILN_FIELD_I64(Opts, max_trials, "25", 1, 1000, "maximum number of sizes to try"),
    KILN_FIELD_STR_OPT(Opts, batch_arg_name, "null",
                       "key of the batch size; null: datamodule.batch_size"),
    KILN_FIELD_F64(Opts, margin, "0.05", 0.0, 0.99,
                   "binsearch: reduce the result by this fraction"),
    KILN_FIELD_I64(Opts, max_val, "8192", 1, 1000000000, "largest size to try"),
    KILN_FIELD_ENUM(Opts, prefer, "largest", prefers,
                    "train with the largest size, or the one with the most samples per second"),
    KILN_FIELD_END,
};

enum { TEXT = 32 };

typedef struct State {
    KilnTune *tune;
    const Opts *opts;
    const char *key;  /* the option to set */
    char value[TEXT]; /* its value */
    int64_t trials;
    int64_t largest, fastest; /* sizes */
    double rate;              /* samples per second of the fastest */
    KilnTuneNeeds needs;      /* of the largest */
    bool searched;            /* found when the run began; this is a resumed run */
} State;

static KilnStatus check(const void *opts, const char **ret_option, KilnError *err)
{
    const Opts *all = opts;

    if (all->init_val <= all->max_val)
        return KILN_OK;
    *ret_option = "init_val";
    return kiln_error_set(err, KILN_E_RANGE, "must be at most max_val, which is %lld",
                          (long long)all->max_val);
}

/* ---- What fits ----------------------------------------------------------------------------- */

static KilnTuneOption option_of(const State *state, int64_t size, char text[TEXT])
{
    snprintf(text, TEXT, "%lld", (long long)size);
    return (KilnTuneOption) { state->key, text };
}

static KilnStatus look(State *state, int64_t size, KilnTuneNeeds *ret, KilnError *err)
{
    char text[TEXT], line[96];

    state->trials++;
    snprintf(line, sizeof(line), "finding a batch size: %lld samples", (long long)size);
    kiln_tune_status(state->tune, line);
    return kiln_tune_estimate(state->tune, option_of(state, size, text), ret, err);
}

static KilnStatus nothing_fits(const State *state, const KilnTuneNeeds *needs, KilnError *err)
{
    const double mib = 1 << 20;

    return kiln_error_set(err, KILN_E_NOMEM,
                          "a batch of init_val=%lld samples needs %.0f MiB more memory than the "
                          "%.0f MiB available; lower "
                          "init_val, or use a smaller network",
                          (long long)state->opts->init_val,
                          ((double)needs->needed - (double)needs->available) / mib,
                          (double)needs->available / mib);
}

/* Stop at a size that the run refuses; the first size is the user's own. */
static bool fits(State *state, int64_t size, KilnTuneNeeds *ret)
{
    KilnTuneNeeds needs;

    if (look(state, size, &needs, NULL) < 0 || !needs.fits)
        return false;
    *ret = needs;
    return true;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static KilnStatus no_size(const State *state, KilnError *err)
{
    return kiln_error_set(err, KILN_E_RANGE,
                          "batch_arg_name=%s does not change the memory that the run needs, so it "
                          "is not the batch size",
                          state->key);
}

/* Double it, up to all samples of an epoch; *ret_refused is the first that does not fit,
 * or a size above all. */
static KilnStatus double_up(State *state, int64_t *ret_refused, KilnError *err)
{
    const Opts *opts = state->opts;
    KilnStatus status = look(state, opts->init_val, &state->needs, err);

    if (status >= 0 && !state->needs.fits)
        status = nothing_fits(state, &state->needs, err);
    if (status < 0)
        return status;
    state->largest = opts->init_val;
    const int64_t most = least(opts->max_val, state->needs.samples);
    const int64_t first = state->needs.needed;
    *ret_refused = most + 1;
    while (state->largest < most && state->trials < opts->max_trials) {
        const int64_t next = least(2 * state->largest, most);

        if (!fits(state, next, &state->needs)) {
            *ret_refused = next;
            return KILN_OK;
        }
        if (state->needs.needed == first)
            return no_size(state, err);
        state->largest = next;
    }
    return KILN_OK;
}

/* Between a size that fits and one that does not. */
static void narrow_down(State *state, int64_t refused)
{
    while (refused - state->largest > 1 && state->trials < state->opts->max_trials) {
        const int64_t middle = state->largest + (refused - state->largest) / 2;

        if (fits(state, middle, &state->needs))
            state->largest = middle;
        else
            refused = middle;
    }
}

static void lower(State *state)
{
    const int64_t size = (int64_t)((double)state->largest * (1.0 - state->opts->margin));

    state->largest = size > 1 ? size : 1;
}

/* ---- Trying -------------------------------------------------------------------------------- */

/* Train a few steps, plus one, since the first batch is not timed. */
static KilnStatus try_size(State *state, int64_t size, double *ret_rate, KilnError *err)
{
    char text[TEXT];
    KilnTuneTrial trial = {
        .option = option_of(state, size, text),
        .steps = state->opts->steps_per_trial + 1,
    };
    KilnStatus status = kiln_tune_try(state->tune, &trial, err);

    *ret_rate = trial.seconds > 0.0 ? (double)trial.samples / trial.seconds : 0.0;
    return status;
}

/* The estimate is no guarantee: another program may have taken the memory. */
static KilnStatus try_largest(State *state, double *ret_rate, KilnError *err)
{
    KilnStatus status = try_size(state, state->largest, ret_rate, err);

    while (status == KILN_E_NOMEM && state->largest > 1) {
        state->largest /= 2;
        status = try_size(state, state->largest, ret_rate, err);
    }
    return status;
}

static void take_faster(State *state, int64_t size, double rate)
{
    if (rate > state->rate) {
        state->rate = rate;
        state->fastest = size;
    }
}

/* Time smaller sizes by halving, as long as they get faster. */
static KilnStatus find_fastest(State *state, KilnError *err)
{
    int slower = 0;
    double rate = 0.0;
    KilnStatus status = try_largest(state, &rate, err);

    take_faster(state, state->largest, rate);
    double last = 0.0;
    for (int64_t size = state->opts->init_val; status >= 0 && size < state->largest && slower < 2;
         size *= 2) {
        status = try_size(state, size, &rate, err);
        take_faster(state, size, rate);
        slower = rate > last ? 0 : slower + 1;
        last = rate > last ? rate : last;
    }
    return status;
}

/* ---- Before the run ------------------------------------------------------------------------- */

static KilnStatus search(State *state, KilnError *err)
{
    int64_t refused = 0;
    KilnStatus status = double_up(state, &refused, err);

    if (status >= 0 && state->opts->mode == MODE_BINSEARCH) {
        narrow_down(state, refused);
        lower(state);
    }
    if (status >= 0)
        status = find_fastest(state, err);
    if (status < 0)
        return status;
    const bool fastest = state->opts->prefer == PREFER_FASTEST && state->fastest > 0;
    (void)option_of(state, fastest ? state->fastest : state->largest, state->value);
    return KILN_OK;
}

static void tell(const State *state)
{
    const double mib = 1 << 20;
    char memory[96] = "";

    if (state->needs.available < INT64_MAX)
        snprintf(memory, sizeof(memory), " (%.0f of %.0f MiB available)",
                 (double)state->needs.needed / mib, (double)state->needs.available / mib);
    kiln_tune_print(state->tune,
                    "%s=%s; the largest is %lld%s, the fastest %lld with %.4g samples/s",
                    state->key, state->value, (long long)state->largest, memory,
                    (long long)state->fastest, state->rate);
}

static KilnStatus tune(KilnInstance *self, KilnTune *tune, KilnError *err)
{
    State *state = kiln_state(self);
    KilnStatus status = KILN_OK;

    state->tune = tune;
    state->opts = kiln_opts(self);
    state->key = state->opts->batch_arg_name;
    if (state->key == NULL)
        status = kiln_tune_batch_size_key(tune, "batch_arg_name", &state->key, err);
    if (status >= 0 && !state->searched)
        status = search(state, err);
    if (status < 0)
        return status;
    if (state->searched)
        kiln_tune_print(tune, "%s=%s, as when the run began", state->key, state->value);
    else
        tell(state);
    return kiln_tune_set(tune, (KilnTuneOption) { state->key, state->value }, err);
}

/* ---- State, without measurements --------------------------------------------------------- */

static void state_dict(KilnInstance *self, KilnState *out)
{
    const State *state = kiln_state(self);

    kiln_state_set_str(out, "value", state->value);
}

static KilnStatus load_state_dict(KilnInstance *self, const KilnState *in, KilnError *err)
{
    State *state = kiln_state(self);
    const char *value = "";

    (void)err;
    kiln_state_get_str(in, "value", &value);
    snprintf(state->value, sizeof(state->value), "%s", value != NULL ? value : "");
    state->searched = true;
    return KILN_OK;
}

static const KilnCallbackOps ops = {
    .state_dict = state_dict,
    .load_state_dict = load_state_dict,
    .tune = tune,
};

const KilnComponent kiln_callback_batch_size_finder = {
    .kind = KILN_KIND_CALLBACK,
    .name = "batch_size_finder",
    .summary = "Find the largest batch that fits the memory before training begins",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .check = check,
    .ops.callback = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_callback_batch_size_finder, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
