/* Ends a run whose loss spikes; when the run resumes from its last checkpoint, skips the batches
 * that caused the spike. */
#include "kiln.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ACTION_STOP, ACTION_SKIP, MOST_WINDOW = 10000 };

typedef struct Opts {
    int64_t window, warmup, action;
    double *atol, *rtol;
    char *exclude_batches_path;
    bool finite_only;
} Opts;

static const KilnChoice actions[] = { { "stop", ACTION_STOP },
                                      { "skip", ACTION_SKIP },
                                      { NULL, 0 } };

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, window, "10", 1, MOST_WINDOW,
                   "number of losses in the mean that a new loss is compared with"),
    KILN_FIELD_I64(Opts, warmup, "1", 0, 1e15, "batches at the start of the run without checks"),
    KILN_FIELD_F64_OPT(Opts, atol, "null", 0.0, INFINITY,
                       "smallest distance from the mean for a spike; null: any"),
    KILN_FIELD_F64_OPT(Opts, rtol, "2.0", 0.0, INFINITY,
                       "smallest distance as a multiple of the mean; null: any"),
    KILN_FIELD_BOOL(Opts, finite_only, "true", "a loss that is NaN or infinite is a spike"),
    KILN_FIELD_ENUM(Opts, action, "skip", actions,
                    "end the run with an error; skip: and leave out the batch and the one before "
                    "it when the run "
                    "resumes from its last checkpoint"),
    KILN_FIELD_OUTPUT_OPT(
        Opts, exclude_batches_path, "null",
        "list of batches to leave out; null: skip_batches.json in the run folder"),
    KILN_FIELD_END,
};

typedef struct Skip {
    int64_t epoch, batch;
} Skip;

typedef struct State {
    double losses[MOST_WINDOW]; /* ring of the last `window` losses without spikes */
    double last;
    int64_t n;    /* losses added */
    int64_t seen; /* losses seen */
    Skip before;  /* the batch before this one; none if `seen` is 0 */
    json_t *list; /* batches to leave out: [{"epoch", "batch", ...}] */
    char path[4096 + 32];
} State;

/* ---- The list ----------------------------------------------------------------------------- */

static KilnStatus read_list(State *state, KilnError *err)
{
    json_error_t why;

    state->list = json_load_file(state->path, 0, &why);
    if (state->list == NULL && json_error_code(&why) == json_error_cannot_open_file) {
        state->list = json_array();
        return state->list != NULL ? KILN_OK : kiln_error_nomem(err, 1);
    }
    for (size_t i = 0; i < json_array_size(state->list); i++) {
        const json_t *item = json_array_get(state->list, i);

        if (!json_is_integer(json_object_get(item, "epoch")) ||
            !json_is_integer(json_object_get(item, "batch")))
            return kiln_error_set(err, KILN_E_FORMAT,
                                  "%s: entry %zu lacks an epoch or a batch, both numbers",
                                  state->path, i);
    }
    if (!json_is_array(state->list))
        return kiln_error_set(err, KILN_E_FORMAT, "%s: expected a JSON list of batches%s%s",
                              state->path, why.text[0] != '\0' ? ": " : "", why.text);
    return KILN_OK;
}

static bool is_listed(const State *state, Skip at)
{
    for (size_t i = 0; i < json_array_size(state->list); i++) {
        const json_t *item = json_array_get(state->list, i);

        if (json_integer_value(json_object_get(item, "epoch")) == at.epoch &&
            json_integer_value(json_object_get(item, "batch")) == at.batch)
            return true;
    }
    return false;
}

static void list(State *state, Skip at)
{
    if (!is_listed(state, at))
        json_array_append_new(state->list, json_pack("{s:I, s:I}", "epoch", (json_int_t)at.epoch,
                                                     "batch", (json_int_t)at.batch));
}

/* Write it whole or not at all. */
static KilnStatus write_list(const State *state, KilnError *err)
{
    char tmp[sizeof(state->path) + 8];

    snprintf(tmp, sizeof(tmp), "%s.tmp", state->path);
    FILE *file = kiln_file_open(tmp, "w");
    bool ok = file != NULL && json_dumpf(state->list, file, JSON_INDENT(1)) == 0;
    if (file != NULL && fclose(file) != 0)
        ok = false;
    return ok && rename(tmp, state->path) == 0 ? KILN_OK : kiln_error_errno(err, state->path);
}

/* Each rank sees the losses of its own batches. */
static KilnStatus setup(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    (void)self;
    if (kiln_trainer_world(trainer) > 1)
        return kiln_error_set(err, KILN_E_RANGE,
                              "watches the batches of one rank, and this run has %d: leave it out, "
                              "or train with trainer.strategy=single",
                              kiln_trainer_world(trainer));
    return KILN_OK;
}

static KilnStatus on_train_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const char *path = opts->exclude_batches_path;

    snprintf(state->path, sizeof(state->path), "%s%s",
             path != NULL ? path : kiln_trainer_run_dir(trainer),
             path != NULL ? "" : "/skip_batches.json");
    KilnStatus status = read_list(state, err);
    if (status >= 0 && json_array_size(state->list) > 0)
        kiln_trainer_print(trainer, "spike_detection: leaving out %zu batches: %s",
                           json_array_size(state->list), state->path);
    return status;
}

/* ---- Spikes --------------------------------------------------------------------------------- */

static double mean_of(const State *state, int64_t window)
{
    const int64_t n = state->n < window ? state->n : window;
    double sum = 0.0;

    for (int64_t i = 0; i < n; i++)
        sum += state->losses[i];
    return n > 0 ? sum / (double)n : (double)NAN;
}

static bool is_spike(const Opts *opts, const State *state, double loss)
{
    if (!isfinite(loss))
        return opts->finite_only;
    if (state->seen < opts->warmup || state->n == 0)
        return false;
    if (loss <= state->last)
        return false;
    const double mean = mean_of(state, opts->window), away = fabs(loss - mean);
    return (opts->atol == NULL || away >= *opts->atol) &&
           (opts->rtol == NULL || away >= fabs(*opts->rtol * mean));
}

static Skip here(const KilnTrainer *trainer, int64_t batches_ago)
{
    return (Skip) { kiln_trainer_epoch(trainer), kiln_trainer_batch(trainer) - batches_ago };
}

/* Either the batch is bad, or the one before it damaged the weights. */
static KilnStatus list_both(const Opts *opts, State *state, Skip at, KilnError *err)
{
    if (opts->action != ACTION_SKIP)
        return KILN_OK;
    if (state->seen > 0)
        list(state, state->before);
    list(state, at);
    return write_list(state, err);
}

static KilnStatus on_train_batch_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);

    (void)err;
    if (opts->action == ACTION_SKIP && is_listed(state, here(trainer, 0)))
        kiln_trainer_skip_batch(trainer);
    return KILN_OK;
}

static KilnStatus on_train_batch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    double loss = 0.0;

    if (!kiln_trainer_loss(trainer, &loss))
        return KILN_OK;
    if (is_spike(opts, state, loss)) {
        const Skip at = here(trainer, 1);
        KilnStatus status = list_both(opts, state, at, err);

        return status < 0
                   ? status
                   : kiln_error_set(err, KILN_E_NUMERIC,
                                    "the loss jumped to %.6g in batch %lld of epoch %lld; "
                                    "the last %lld have a mean of %.6g%s",
                                    loss, (long long)at.batch + 1, (long long)at.epoch,
                                    (long long)(state->n < opts->window ? state->n : opts->window),
                                    mean_of(state, opts->window),
                                    opts->action == ACTION_SKIP
                                        ? "; a run resumed from its last checkpoint leaves out "
                                          "this batch and the one before it"
                                        : "");
    }
    if (isfinite(loss)) {
        state->losses[state->n++ % opts->window] = loss;
        state->last = loss;
    }
    state->seen++;
    state->before = here(trainer, 1);
    return KILN_OK;
}

/* The loop itself ends a run with a non-finite loss, before the end of the batch. */
static void on_exception(KilnInstance *self, KilnTrainer *trainer, const KilnError *why)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    double loss = 0.0;

    if (why->status == KILN_E_NUMERIC && state->list != NULL && opts->finite_only &&
        kiln_trainer_loss(trainer, &loss) && !isfinite(loss))
        (void)!list_both(opts, state, here(trainer, 0), NULL);
}

/* ---- In a checkpoint ---------------------------------------------------------------- */

static void state_dict(KilnInstance *self, KilnState *saved)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    const int64_t n = state->n < opts->window ? state->n : opts->window;
    char name[32];

    kiln_state_set_i64(saved, "n", state->n);
    kiln_state_set_i64(saved, "seen", state->seen);
    kiln_state_set_f64(saved, "last", state->last);
    kiln_state_set_i64(saved, "before_epoch", state->before.epoch);
    kiln_state_set_i64(saved, "before_batch", state->before.batch);
    kiln_state_set_i64(saved, "window", opts->window);
    for (int64_t i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "loss%lld", (long long)i);
        kiln_state_set_f64(saved, name, state->losses[i]);
    }
}

/* A window of another size starts empty. */
static KilnStatus load_state_dict(KilnInstance *self, const KilnState *saved, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    int64_t window = 0;
    char name[32];
    bool ok = kiln_state_get_i64(saved, "window", &window) &&
              kiln_state_get_i64(saved, "n", &state->n) &&
              kiln_state_get_i64(saved, "seen", &state->seen) &&
              kiln_state_get_f64(saved, "last", &state->last) &&
              kiln_state_get_i64(saved, "before_epoch", &state->before.epoch) &&
              kiln_state_get_i64(saved, "before_batch", &state->before.batch);

    if (ok && window != opts->window)
        state->n = 0;
    for (int64_t i = 0; ok && i < window && i < state->n; i++) {
        snprintf(name, sizeof(name), "loss%lld", (long long)i);
        ok = kiln_state_get_f64(saved, name, &state->losses[i]);
    }
    return ok ? KILN_OK
              : kiln_error_set(err, KILN_E_FORMAT,
                               "the checkpoint's state lacks losses, or counts");
}

static void release(KilnInstance *self)
{
    json_decref(((State *)kiln_state(self))->list);
}

static const KilnCallbackOps ops = {
    .setup = setup,
    .on_train_start = on_train_start,
    .on_train_batch_start = on_train_batch_start,
    .on_train_batch_end = on_train_batch_end,
    .on_exception = on_exception,
    .state_dict = state_dict,
    .load_state_dict = load_state_dict,
};

const KilnComponent kiln_callback_spike_detection = {
    .kind = KILN_KIND_CALLBACK,
    .name = "spike_detection",
    .summary = "End a run whose loss spikes, and skip the cause when it resumes",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .release = release,
    .ops.callback = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list_of_all[] = { &kiln_callback_spike_detection, NULL };
KILN_PLUGIN_DEFINE(list_of_all)
#endif
