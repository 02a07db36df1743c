/* Saves the best checkpoints by a metric, and the newest. Lightning's options; docs/lightning.md
 * lists the differences. It makes requests; src/train/checkpoint/save_requests.c carries them out.
 */
#include "kiln.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* File systems allow 255 bytes; "-v12" must fit, too. */
enum { NAME_SIZE = 240, VERSION_SIZE = 16 };

typedef struct Opts {
    char *monitor, *filename;
    int64_t mode, save_top_k;
    int64_t *every_n_epochs, *every_n_train_steps;
    double *train_time_interval;
    bool *save_on_train_epoch_end;
    bool save_last, save_weights_only, save_on_exception, verbose;
    bool auto_insert_metric_name, enable_version_counter;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_STR_OPT(Opts, monitor, "null",
                       "metric that ranks checkpoints; null: the newest is the best"),
    KILN_FIELD_MODE(Opts),
    KILN_FIELD_I64(Opts, save_top_k, "1", -1, 1e6, "number of best checkpoints to keep; -1: all"),
    KILN_FIELD_BOOL(Opts, save_last, "true", "also keep the newest checkpoint, whatever its rank"),
    KILN_FIELD_I64_OPT(Opts, every_n_epochs, "null", 0, 1e9,
                       "epochs between checkpoints; null: 1, or none if steps or a time are set"),
    KILN_FIELD_I64_OPT(Opts, every_n_train_steps, "null", 0, 1e15,
                       "optimizer steps between checkpoints; null: not by steps"),
    KILN_FIELD_DURATION_OPT(Opts, train_time_interval, "null", 0, 1e9,
                            "training time between checkpoints: 30m; null: not by time"),
    KILN_FIELD_BOOL_OPT(Opts, save_on_train_epoch_end, "null",
                        "with every_n_epochs: true: save at the end of the epoch; false: after "
                        "each of its validations; "
                        "null: true if these coincide"),
    KILN_FIELD_STR(
        Opts, filename, "'{epoch:03d}-{step}'",
        "name of a checkpoint; {KEY} or {KEY:FORMAT} inserts epoch, step, monitor or a metric: "
        "{epoch}-{val/loss:.3f}"),
    KILN_FIELD_BOOL(Opts, auto_insert_metric_name, "true",
                    "write KEY= before each value: epoch=3-val_loss=0.123"),
    KILN_FIELD_BOOL(Opts, enable_version_counter, "true",
                    "append -v1 if another kept checkpoint has the name; false: replace that one"),
    KILN_FIELD_BOOL(Opts, save_weights_only, "false",
                    "leave out what only resuming needs, such as the optimizer's state"),
    KILN_FIELD_BOOL(Opts, save_on_exception, "false",
                    "also save under this callback's name if the run fails or is interrupted with "
                    "valid weights; the "
                    "run itself always saves checkpoints/last then"),
    KILN_FIELD_BOOL(Opts, verbose, "false", "print why each checkpoint is kept or not"),
    KILN_FIELD_END,
};

typedef struct Entry {
    char name[NAME_SIZE + VERSION_SIZE];
    double score;
    int64_t step;
} Entry;

typedef struct State {
    bool higher;    /* scores are better */
    Entry *entries; /* the best, worst last; of equal ones the older is better */
    size_t count, capacity;
    int64_t last_step; /* of the newest checkpoint; 0: there is none */
    int64_t due_step;  /* step of the last save by every_n_train_steps */
    bool waits;        /* a save is due, but the metric has no value yet */
    double checked;    /* start of train_time_interval */
} State;

/* ---- The best ones -------------------------------------------------------------------- */

/* NaN is worse than any number. */
static bool better(const State *state, double a, double b)
{
    if (isnan(a) || isnan(b))
        return !isnan(a);
    return state->higher ? a > b : a < b;
}

static Entry drop(State *state, size_t i)
{
    Entry dropped = state->entries[i];

    memmove(&state->entries[i], &state->entries[i + 1],
            (state->count - i - 1) * sizeof(*state->entries));
    state->count--;
    return dropped;
}

/* The index of that name; count if there is none. */
static size_t find(const State *state, const char *name)
{
    size_t i = 0;

    while (i < state->count && strcmp(state->entries[i].name, name) != 0)
        i++;
    return i;
}

static size_t find_step(const State *state, int64_t step)
{
    size_t i = 0;

    while (i < state->count && state->entries[i].step != step)
        i++;
    return i;
}

static KilnStatus reserve(State *state, KilnError *err)
{
    return KILN_RESERVE(state->entries, state->capacity, state->count + 1)
               ? KILN_OK
               : kiln_error_nomem(err, (state->count + 1) * sizeof(*state->entries));
}

/* Insert `entry` among the best, which have room for one more. */
static void insert(State *state, const Entry *entry)
{
    size_t at = state->count++;

    while (at > 0 && better(state, entry->score, state->entries[at - 1].score)) {
        state->entries[at] = state->entries[at - 1];
        at--;
    }
    state->entries[at] = *entry;
}

static bool is_among_best(const Opts *opts, const State *state, double score)
{
    if (opts->save_top_k <= 0)
        return opts->save_top_k < 0;
    return (int64_t)state->count < opts->save_top_k ||
           better(state, score, state->entries[state->count - 1].score);
}

/* The monitored value, only if it is of this step: another step's would rank other weights. */
static bool has_score(const Opts *opts, const KilnTrainer *trainer, double *ret)
{
    *ret = (double)kiln_trainer_global_step(trainer);
    return opts->monitor == NULL || kiln_trainer_step_metric(trainer, opts->monitor, ret);
}

/* ---- Names ------------------------------------------------------------------------------ */

static KilnNameFormat format_of(const Opts *opts)
{
    return (KilnNameFormat) {
        .text = opts->filename,
        .monitor = opts->monitor,
        .inserts = opts->auto_insert_metric_name,
    };
}

/* Whether another kept checkpoint has that name, of this callback or another model_checkpoint. */
static bool is_taken(KilnInstance *self, const KilnTrainer *trainer, const char *name,
                     const Entry *evicted)
{
    const State *state = kiln_state(self);

    return (find(state, name) < state->count && strcmp(name, evicted->name) != 0) ||
           kiln_trainer_would_replace(trainer, self, name);
}

static void name_entry(KilnInstance *self, const KilnTrainer *trainer, const Entry *evicted,
                       Entry *entry)
{
    const Opts *opts = kiln_opts(self);
    const KilnNameFormat format = format_of(opts);
    char name[NAME_SIZE];

    kiln_trainer_format(trainer, &format, name, sizeof(name));
    snprintf(entry->name, sizeof(entry->name), "%s", name);
    for (int i = 1; opts->enable_version_counter && is_taken(self, trainer, entry->name, evicted);
         i++)
        snprintf(entry->name, sizeof(entry->name), "%s-v%d", name, i);
}

/* ---- Saving ------------------------------------------------------------------------------ */

static KilnStatus link_best(const State *state, KilnTrainer *trainer, KilnError *err)
{
    if (state->count == 0)
        return KILN_OK;
    return kiln_trainer_link(trainer, "best", state->entries[0].name, err);
}

/* What a save changes. */
typedef struct Change {
    Entry entry;            /* what is saved */
    bool kept;              /* among the best */
    Entry evicted, earlier; /* to delete: the worst of the previous best, and one of this step. Name
                               "": none */
} Change;

/* Update the list. */
static void rank(KilnInstance *self, const KilnTrainer *trainer, bool ranked, Change *change)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    size_t earlier = find_step(state, change->entry.step);

    if (earlier < state->count)
        change->earlier = drop(state, earlier);
    change->kept = ranked && is_among_best(opts, state, change->entry.score);
    if (!change->kept && !opts->save_last)
        return;
    if (change->kept && opts->save_top_k > 0 && (int64_t)state->count == opts->save_top_k)
        change->evicted = drop(state, state->count - 1);
    name_entry(self, trainer, &change->evicted, &change->entry);
    if (find(state, change->entry.name) < state->count)
        (void)drop(state, find(state, change->entry.name));
    if (change->kept)
        insert(state, &change->entry);
    state->last_step = change->entry.step;
}

/* Stop keeping it, unless another checkpoint has its name now. */
static KilnStatus let_go(KilnInstance *self, KilnTrainer *trainer, const char *name, KilnError *err)
{
    const State *state = kiln_state(self);

    if (name[0] == '\0' || find(state, name) < state->count)
        return KILN_OK;
    return kiln_trainer_delete(trainer, self, name, err);
}

static void tell(const Opts *opts, const State *state, KilnTrainer *trainer, const Change *change)
{
    const long long epoch = (long long)kiln_trainer_epoch(trainer);
    const long long step = (long long)change->entry.step;
    char among[32] = "all";

    if (!opts->verbose)
        return;
    if (opts->save_top_k >= 0)
        snprintf(among, sizeof(among), "the best %lld", (long long)opts->save_top_k);
    if (opts->monitor == NULL)
        kiln_trainer_print(trainer, "epoch %lld, step %lld: saved %s", epoch, step,
                           change->entry.name);
    else if (change->kept)
        kiln_trainer_print(trainer,
                           "epoch %lld, step %lld: %s is %.5g (best %.5g): saved %s, one of %s",
                           epoch, step, opts->monitor, change->entry.score, state->entries[0].score,
                           change->entry.name, among);
    else
        kiln_trainer_print(
            trainer, "epoch %lld, step %lld: %s is not among %s%s%s", epoch, step, opts->monitor,
            among, change->entry.name[0] != '\0' ? ": saved as last, " : "", change->entry.name);
}

/* A checkpoint that is only the newest has no owner: it is deleted when the link moves. */
static KilnStatus save(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    Change change = { .entry.step = kiln_trainer_global_step(trainer) };
    KilnStatus status = reserve(state, err);

    if (status < 0)
        return status;
    const bool ranked = has_score(opts, trainer, &change.entry.score);
    state->waits = !ranked;
    rank(self, trainer, ranked, &change);
    tell(opts, state, trainer, &change);
    if (change.entry.name[0] == '\0')
        return KILN_OK;
    status = kiln_trainer_save(trainer, change.kept ? self : NULL, change.entry.name,
                               opts->save_weights_only ? KILN_SAVE_WEIGHTS : 0, err);
    if (status >= 0)
        status = kiln_trainer_link(trainer, "last", change.entry.name, err);
    if (status >= 0)
        status = link_best(state, trainer, err);
    if (status >= 0)
        status = let_go(self, trainer, change.evicted.name, err);
    return status >= 0 ? let_go(self, trainer, change.earlier.name, err) : status;
}

/* ---- When -------------------------------------------------------------------------------- */

static int64_t epochs_between(const Opts *opts)
{
    const bool others = opts->every_n_train_steps != NULL || opts->train_time_interval != NULL;

    return opts->every_n_epochs != NULL ? *opts->every_n_epochs : others ? 0 : 1;
}

static bool epoch_is_due(const Opts *opts, const KilnTrainer *trainer)
{
    const int64_t n = epochs_between(opts);

    return n > 0 && (kiln_trainer_epoch(trainer) + 1) % n == 0;
}

static bool saves_at_epoch_end(const Opts *opts, const KilnTrainer *trainer)
{
    if (opts->save_on_train_epoch_end != NULL)
        return *opts->save_on_train_epoch_end;
    return !kiln_trainer_validates(trainer) || kiln_trainer_validates_epochs(trainer);
}

/* Once a step, however many batches make one. */
static bool step_is_due(const Opts *opts, State *state, const KilnTrainer *trainer)
{
    const int64_t step = kiln_trainer_global_step(trainer);
    const int64_t n = opts->every_n_train_steps != NULL ? *opts->every_n_train_steps : 0;

    if (n == 0 || step == 0 || step % n != 0 || state->due_step == step)
        return false;
    state->due_step = step;
    return true;
}

static bool time_is_due(const Opts *opts, State *state)
{
    if (opts->train_time_interval == NULL ||
        kiln_clock() - state->checked < *opts->train_time_interval)
        return false;
    state->checked = kiln_clock();
    return true;
}

/* A validation metric has no value at most steps: the next checkpoint that can be ranked is then
 * the one after the next validation. */
static KilnStatus on_train_batch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const bool by_step = step_is_due(opts, state, trainer), by_time = time_is_due(opts, state);
    double score;

    if (!by_step && !by_time)
        return KILN_OK;
    if (has_score(opts, trainer, &score))
        return save(self, trainer, err);
    state->waits = true;
    return opts->save_last && !kiln_trainer_validates_now(trainer) ? save(self, trainer, err)
                                                                   : KILN_OK;
}

static KilnStatus save_if(KilnInstance *self, KilnTrainer *trainer, bool due, KilnError *err)
{
    const State *state = kiln_state(self);
    double score;

    if (due || (state->waits && has_score(kiln_opts(self), trainer, &score)))
        return save(self, trainer, err);
    return KILN_OK;
}

static KilnStatus on_validation_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    if (strcmp(kiln_trainer_phase(trainer), "validate") != 0)
        return KILN_OK;
    return save_if(self, trainer, !saves_at_epoch_end(opts, trainer) && epoch_is_due(opts, trainer),
                   err);
}

static KilnStatus on_train_epoch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    return save_if(self, trainer, saves_at_epoch_end(opts, trainer) && epoch_is_due(opts, trainer),
                   err);
}

/* The weights are those of the last complete step, unless the error is about them. */
static void on_exception(KilnInstance *self, KilnTrainer *trainer, const KilnError *why)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    KilnError err = { 0 };

    if (!opts->save_on_exception || why->status == KILN_E_NUMERIC || why->status == KILN_E_NOMEM ||
        kiln_trainer_global_step(trainer) == state->last_step)
        return;
    if (save(self, trainer, &err) < 0)
        kiln_trainer_print(
            trainer, "warning: the run failed, and saving a checkpoint failed, too: %s", err.text);
    else
        kiln_trainer_print(trainer, "the run failed; saved a checkpoint");
}

/* ---- Beginning and end ------------------------------------------------------------------- */

static KilnStatus check_name(const Opts *opts, const KilnTrainer *trainer, KilnError *err)
{
    const KilnNameFormat format = format_of(opts);
    char name[NAME_SIZE];
    KilnStatus status = kiln_trainer_check_format(trainer, "filename", &format, err);

    if (status < 0)
        return status;
    kiln_trainer_format(trainer, &format, name, sizeof(name));
    if (name[0] == '\0' || name[0] == '.' || strcmp(name, "best") == 0 || strcmp(name, "last") == 0)
        return kiln_error_set(err, KILN_E_RANGE,
                              "filename=%s: the name must not begin with a dot, and must not be "
                              "best or last, which are links",
                              opts->filename);
    return KILN_OK;
}

static KilnStatus setup_monitor(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);

    state->higher = true;
    if (opts->monitor == NULL)
        return KILN_OK;
    if (kiln_trainer_logs(trainer, opts->monitor))
        return kiln_trainer_mode(trainer, self, opts->monitor, opts->mode, &state->higher, err);
    if (kiln_trainer_validates(trainer))
        return kiln_trainer_unknown_monitor(trainer, self, opts->monitor, err);
    kiln_trainer_print(trainer,
                       "warning: this run does not validate, so there is no %s to rank "
                       "checkpoints; only the last is kept",
                       opts->monitor);
    return KILN_OK;
}

static KilnStatus setup(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    if (strcmp(kiln_trainer_phase(trainer), "fit") != 0)
        return KILN_OK;
    KilnStatus status = setup_monitor(self, trainer, err);
    return status >= 0 ? check_name(opts, trainer, err) : status;
}

/* After a resume: the best so far. */
static KilnStatus on_fit_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    State *state = kiln_state(self);

    for (size_t i = state->count; i-- > 0;)
        if (!kiln_trainer_claim(trainer, self, state->entries[i].name))
            (void)drop(state, i);
    KilnStatus status = kiln_trainer_prune(trainer, self, err);
    return status >= 0 ? link_best(state, trainer, err) : status;
}

static KilnStatus on_train_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    State *state = kiln_state(self);

    (void)trainer;
    (void)err;
    state->checked = kiln_clock();
    return KILN_OK;
}

/* ---- In a checkpoint ---------------------------------------------------------------------- */

static const char *numbered(char key[32], const char *what, size_t i)
{
    snprintf(key, 32, "%s_%zu", what, i);
    return key;
}

static void state_dict(KilnInstance *self, KilnState *saved)
{
    const State *state = kiln_state(self);
    char key[32];

    kiln_state_set_i64(saved, "count", (int64_t)state->count);
    for (size_t i = 0; i < state->count; i++) {
        kiln_state_set_str(saved, numbered(key, "name", i), state->entries[i].name);
        kiln_state_set_f64(saved, numbered(key, "score", i), state->entries[i].score);
        kiln_state_set_i64(saved, numbered(key, "step", i), state->entries[i].step);
    }
    kiln_state_set_i64(saved, "last_step", state->last_step);
    kiln_state_set_i64(saved, "due_step", state->due_step);
    kiln_state_set_i64(saved, "waits", state->waits ? 1 : 0);
}

static bool get_name(const KilnState *saved, const char *key, char *ret, size_t size)
{
    const char *name = NULL;

    if (!kiln_state_get_str(saved, key, &name) || name == NULL || strlen(name) >= size)
        return false;
    memcpy(ret, name, strlen(name) + 1);
    return true;
}

static KilnStatus load_entry(State *state, const KilnState *saved, size_t i, KilnError *err)
{
    Entry entry = { .name = "" };
    char key[32];
    KilnStatus status = reserve(state, err);

    if (status < 0)
        return status;
    if (!get_name(saved, numbered(key, "name", i), entry.name, sizeof(entry.name)) ||
        !kiln_state_get_f64(saved, numbered(key, "score", i), &entry.score))
        return kiln_error_set(err, KILN_E_FORMAT, "the checkpoint's state has no complete %s", key);
    (void)kiln_state_get_i64(saved, numbered(key, "step", i), &entry.step);
    insert(state, &entry);
    return KILN_OK;
}

static KilnStatus load_state_dict(KilnInstance *self, const KilnState *saved, KilnError *err)
{
    State *state = kiln_state(self);
    int64_t count = 0, waits = 0;
    KilnStatus status = KILN_OK;

    (void)kiln_state_get_i64(saved, "count", &count);
    /* Not in checkpoints of formats 1 and 2. */
    (void)kiln_state_get_i64(saved, "last_step", &state->last_step);
    (void)kiln_state_get_i64(saved, "due_step", &state->due_step);
    (void)kiln_state_get_i64(saved, "waits", &waits);
    state->waits = waits != 0;
    for (int64_t i = 0; i < count && status >= 0; i++)
        status = load_entry(state, saved, (size_t)i, err);
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
    .on_train_start = on_train_start,
    .on_train_batch_end = on_train_batch_end,
    .on_validation_end = on_validation_end,
    .on_train_epoch_end = on_train_epoch_end,
    .on_exception = on_exception,
    .state_dict = state_dict,
    .load_state_dict = load_state_dict,
    .rank = KILN_RANK_SAVES,
};

const KilnComponent kiln_callback_model_checkpoint = {
    .kind = KILN_KIND_CALLBACK,
    .name = "model_checkpoint",
    .summary = "Save the best checkpoints by a metric, and the newest",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .release = release,
    .ops.callback = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_callback_model_checkpoint, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
