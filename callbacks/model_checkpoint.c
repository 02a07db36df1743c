/* Saves checkpoints: the best ones by a metric, and the last. */
#include "kiln.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODE_MIN, MODE_MAX };

typedef struct Opts {
    char *monitor;
    int64_t mode, save_top_k, every_n_epochs, every_n_train_steps;
    bool save_last;
} Opts;

static const KilnChoice modes[] = { { "min", MODE_MIN }, { "max", MODE_MAX }, { NULL, 0 } };

static const KilnField fields[] = {
    KILN_FIELD_STR_OPT(Opts, monitor, "null",
                       "metric that says which checkpoints are the best; null: the newest are"),
    KILN_FIELD_ENUM(Opts, mode, "min", modes, "whether a smaller or a larger value is better"),
    KILN_FIELD_I64(Opts, save_top_k, "1", -1, 1e6, "how many of the best are kept; -1: all"),
    KILN_FIELD_BOOL(Opts, save_last, "true", "save each time, whether or not it is among the best"),
    KILN_FIELD_I64(Opts, every_n_epochs, "1", 0, 1e9, "epochs between two; 0: not by epochs"),
    KILN_FIELD_I64(Opts, every_n_train_steps, "0", 0, 1e15, "steps between two; 0: not by steps"),
    KILN_FIELD_END,
};

typedef struct Entry {
    char name[96];
    double score;
} Entry;

typedef struct State {
    Entry *entries; /* the best ones, worst last; of equals the older is better */
    size_t count, capacity;
} State;

/* ---- The best ones -------------------------------------------------------------------- */

static bool better(const Opts *opts, double a, double b)
{
    return opts->monitor == NULL || opts->mode == MODE_MAX ? a > b : a < b;
}

static void drop(State *state, size_t i)
{
    memmove(&state->entries[i], &state->entries[i + 1],
            (state->count - i - 1) * sizeof(*state->entries));
    state->count--;
}

static size_t find(const State *state, const char *name)
{
    size_t i = 0;

    while (i < state->count && strcmp(state->entries[i].name, name) != 0)
        i++;
    return i;
}

/* Put `entry` in its place among the best. */
static KilnStatus insert(const Opts *opts, State *state, const Entry *entry, KilnError *err)
{
    size_t at = state->count;

    if (state->count == state->capacity) {
        size_t capacity = state->capacity > 0 ? 2 * state->capacity : 4;
        Entry *more = realloc(state->entries, capacity * sizeof(*more));

        if (more == NULL)
            return kiln_error_nomem(err, capacity * sizeof(*more));
        state->entries = more;
        state->capacity = capacity;
    }
    while (at > 0 && better(opts, entry->score, state->entries[at - 1].score)) {
        state->entries[at] = state->entries[at - 1];
        at--;
    }
    state->entries[at] = *entry;
    state->count++;
    return KILN_OK;
}

static bool is_among_best(const Opts *opts, const State *state, double score)
{
    if (isnan(score) || opts->save_top_k == 0)
        return false;
    return opts->save_top_k < 0 || (int64_t)state->count < opts->save_top_k ||
           better(opts, score, state->entries[state->count - 1].score);
}

/* The monitored value if it is of this very step; NaN when it is not. */
static double current_score(const Opts *opts, const KilnTrainer *trainer)
{
    int64_t step = kiln_trainer_global_step(trainer);
    const KilnMetric *metrics;
    size_t n = kiln_trainer_metrics(trainer, &metrics);
    double value = (double)NAN;

    if (opts->monitor == NULL)
        return (double)step;
    for (size_t i = 0; i < n; i++) {
        size_t length = strlen(opts->monitor);
        const char *name = metrics[i].name;
        bool same = strncmp(name, opts->monitor, length) == 0 &&
                    (name[length] == '\0' || strcmp(name + length, "_epoch") == 0);

        if (same && metrics[i].step == step)
            value = metrics[i].value;
    }
    return value;
}

/* ---- Saving ------------------------------------------------------------------------------ */

static KilnStatus link_best(const State *state, KilnTrainer *trainer, KilnError *err)
{
    if (state->count == 0)
        return KILN_OK;
    return kiln_trainer_link(trainer, "best", state->entries[0].name, err);
}

/* The list is brought up to date before saving, so that the checkpoint knows of
 * itself; what fell out of it is removed when the new one and the links are safe. */
static KilnStatus save(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    Entry entry = { .score = current_score(opts, trainer) }, evicted = { .name = "" };
    KilnStatus status = KILN_OK;

    kiln_trainer_checkpoint_name(trainer, entry.name, sizeof(entry.name));
    if (find(state, entry.name) < state->count && !isnan(entry.score))
        drop(state, find(state, entry.name));
    bool kept = is_among_best(opts, state, entry.score);
    if (!kept && !opts->save_last)
        return KILN_OK;
    if (kept)
        status = insert(opts, state, &entry, err);
    if (status >= 0 && opts->save_top_k >= 0 && (int64_t)state->count > opts->save_top_k)
        evicted = state->entries[--state->count];
    if (status >= 0)
        status = kiln_trainer_save(trainer, kept ? self : NULL, entry.name, 0, err);
    if (status >= 0)
        status = kiln_trainer_link(trainer, "last", entry.name, err);
    if (status >= 0)
        status = link_best(state, trainer, err);
    if (status >= 0 && evicted.name[0] != '\0')
        status = kiln_trainer_remove(trainer, self, evicted.name, err);
    return status;
}

/* ---- Hooks --------------------------------------------------------------------------------- */

static KilnStatus setup(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    if (opts->monitor == NULL || strcmp(kiln_trainer_phase(trainer), "fit") != 0 ||
        kiln_trainer_logs(trainer, opts->monitor))
        return KILN_OK;
    if (kiln_trainer_validates(trainer))
        return kiln_trainer_unknown_metric(trainer, "monitor", opts->monitor, err);
    kiln_trainer_print(trainer,
                       "warning: this run does not validate, so there is no %s to choose the best "
                       "checkpoint by; only the last is kept",
                       opts->monitor);
    return KILN_OK;
}

/* After a resume: those that were the best until now. */
static KilnStatus on_fit_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    State *state = kiln_state(self);

    for (size_t i = state->count; i-- > 0;)
        if (!kiln_trainer_adopt(trainer, self, state->entries[i].name))
            drop(state, i);
    KilnStatus status = kiln_trainer_tidy(trainer, self, err);
    return status >= 0 ? link_best(state, trainer, err) : status;
}

static KilnStatus on_train_batch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    if (opts->every_n_train_steps == 0 ||
        kiln_trainer_global_step(trainer) % opts->every_n_train_steps != 0)
        return KILN_OK;
    return save(self, trainer, err);
}

static KilnStatus on_train_epoch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    if (opts->every_n_epochs == 0 || (kiln_trainer_epoch(trainer) + 1) % opts->every_n_epochs != 0)
        return KILN_OK;
    return save(self, trainer, err);
}

static void state_dict(KilnInstance *self, KilnState *saved)
{
    const State *state = kiln_state(self);
    char key[32];

    kiln_state_set_i64(saved, "count", (int64_t)state->count);
    for (size_t i = 0; i < state->count; i++) {
        snprintf(key, sizeof(key), "name_%zu", i);
        kiln_state_set_str(saved, key, state->entries[i].name);
        snprintf(key, sizeof(key), "score_%zu", i);
        kiln_state_set_f64(saved, key, state->entries[i].score);
    }
}

static KilnStatus load_state_dict(KilnInstance *self, const KilnState *saved, KilnError *err)
{
    State *state = kiln_state(self);
    int64_t count = 0;
    KilnStatus status = KILN_OK;

    (void)kiln_state_get_i64(saved, "count", &count);
    for (int64_t i = 0; i < count && status >= 0; i++) {
        Entry entry = { .name = "" };
        const char *name = NULL;
        char key[32];

        snprintf(key, sizeof(key), "score_%lld", (long long)i);
        bool whole = kiln_state_get_f64(saved, key, &entry.score);
        snprintf(key, sizeof(key), "name_%lld", (long long)i);
        whole = whole && kiln_state_get_str(saved, key, &name) && name != NULL &&
                strlen(name) < sizeof(entry.name);
        if (!whole)
            return kiln_error_set(err, KILN_E_FORMAT, "the checkpoint's state has no whole %s",
                                  key);
        memcpy(entry.name, name, strlen(name));
        status = insert(kiln_opts(self), state, &entry, err);
    }
    return status;
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    free(state->entries);
}

static const KilnCallbackOps ops = {
    .setup = setup,
    .on_fit_start = on_fit_start,
    .on_train_batch_end = on_train_batch_end,
    .on_train_epoch_end = on_train_epoch_end,
    .state_dict = state_dict,
    .load_state_dict = load_state_dict,
    .rank = KILN_RANK_SAVES,
};

const KilnComponent kiln_callback_model_checkpoint = {
    .kind = KILN_KIND_CALLBACK,
    .name = "model_checkpoint",
    .summary = "Save the best checkpoints by a metric, and the last",
    .fields = fields,
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .release = release,
    .ops.callback = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_callback_model_checkpoint, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
