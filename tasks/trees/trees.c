/* Gradient-boosted trees by XGBoost: classification, regression and ranking of rows. A boosting
 * round is a training step. */
#include "kiln.h"
#include "kiln/tools/boost_task.h"
#include "kiln/tools/row_results.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct Opts {
    KILN_BOOST_OPTIONS;
    int64_t rounds_per_epoch;
    char *init_model, *monitor;
    KilnInstance **metrics;
    size_t metrics_count;
    bool train_metrics, contributions, importance;
} Opts;

static const KilnField fields[] = {
    KILN_BOOST_FIELDS(Opts),
    KILN_FIELD_I64(Opts, rounds_per_epoch, "1", 1, 1000000,
                   "boosting rounds in an epoch; validation and checkpoints come after each epoch"),
    KILN_FIELD_PATH_OPT(Opts, init_model, "null",
                        "a model of XGBoost's (.json, .ubj) that training continues from"),
    KILN_FIELD_COMPONENT_MAP(Opts, metrics, KILN_KIND_METRIC, "{}",
                             "more metrics by name, logged as val/NAME and test/NAME"),
    KILN_FIELD_MONITOR(Opts, "null"),
    KILN_FIELD_BOOL(Opts, train_metrics, "true",
                    "compute eval_metric for the training data, too, after each epoch"),
    KILN_FIELD_BOOL(Opts, contributions, "false",
                    "predictions have what each column adds to the score (SHAP values)"),
    KILN_FIELD_BOOL(Opts, importance, "true",
                    "write importance.csv and plots/importance.png: how much each column matters"),
    KILN_FIELD_END,
};

typedef struct State {
    const KilnDataSpec *spec;
    KilnBoostColumns columns;
    const KilnBoostObjective *objective;
    int64_t width; /* scores per row */
    KilnBoostSetup set_up;
    char metric[KILN_BOOST_METRICS][KILN_BOOST_NAME];
    size_t n_metrics;
    KilnBooster *booster;
    int64_t rounds;  /* of the booster */
    bool ends_epoch; /* the round that comes */
    KilnBoostSet train;
    KilnBoostSet sets[KILN_SPLIT_COUNT][KILN_MAX_SETS];
    /* Of the set that is evaluated, as steps read them. */
    const KilnBoostSet *set;
    float values[KILN_BOOST_METRICS];
    size_t n_values;
    const float *scores;
    float *zeros; /* the scores before the first round */
    KilnBoostOp predict, contribute;
    pthread_mutex_t mutex; /* for `failure`, the error of a prediction */
    bool has_mutex;
    KilnError failure;
} State;

/* The options begin with these. */
static const KilnBoostOptions *boost_options(const KilnInstance *self)
{
    return kiln_opts(self);
}

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    return kiln_boost_options_check(options, ret_option, err);
}

static KilnStatus init(KilnInstance *self, KilnError *err)
{
    State *state = kiln_state(self);

    state->has_mutex = pthread_mutex_init(&state->mutex, NULL) == 0;
    return state->has_mutex ? KILN_OK : kiln_error_nomem(err, sizeof(state->mutex));
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        for (size_t i = 0; i < KILN_MAX_SETS; i++)
            kiln_boost_set_release(&state->sets[split][i]);
    kiln_booster_free(state->booster);
    kiln_boost_set_release(&state->train);
    kiln_boost_columns_release(&state->columns);
    free(state->zeros);
    if (state->has_mutex)
        pthread_mutex_destroy(&state->mutex);
}

static KilnStatus check_inputs(const KilnDataSpec *spec, KilnError *err)
{
    size_t n = 0;

    for (size_t f = 0; f < spec->n_features; f++)
        n += (spec->features[f].content & (KILN_VECTOR | KILN_ROW)) != 0;
    if (n <= KILN_CUSTOM_INPUTS)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_SHAPE,
                          "the data has %zu vectors and rows; task trees reads at most %d", n,
                          KILN_CUSTOM_INPUTS);
}

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnDataSpec *data,
                        KilnError *err)
{
    const KilnBoostOptions *options = boost_options(self);
    State *state = kiln_state(self);
    KilnStatus status = kiln_boost_supported(err);

    (void)scope; /* no parameters */
    state->spec = data;
    if (status >= 0)
        status = kiln_boost_columns_init(data, &state->columns, err);
    if (status >= 0)
        status = check_inputs(data, err);
    if (status >= 0)
        status = kiln_boost_objective(options->objective, data, &state->objective, &state->width,
                                      err);
    if (status >= 0)
        status = kiln_boost_options_fit(options, &state->columns, err);
    if (status < 0)
        return status;
    state->n_metrics = kiln_boost_metric_list(options, state->objective, state->metric);
    return KILN_OK;
}

/* ---- The booster -------------------------------------------------------------------------- */

/* Refuse a model of other data. */
static KilnStatus check_model(State *state, const char *path, KilnError *err)
{
    int64_t columns = 0;
    KilnStatus status = kiln_booster_columns(state->booster, &columns, err);

    if (status >= 0 && columns != state->columns.n)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "%s: the model splits %lld columns, but the data has %lld", path,
                              (long long)columns, (long long)state->columns.n);
    return status >= 0 ? kiln_booster_rounds(state->booster, &state->rounds, err) : status;
}

/* A booster from a file; NULL: an empty one for the training data. */
static KilnStatus make_booster(KilnInstance *self, const KilnTrainer *trainer, const char *path,
                               KilnError *err)
{
    State *state = kiln_state(self);

    state->set_up = (KilnBoostSetup) {
        .options = boost_options(self),
        .objective = state->objective,
        .columns = &state->columns,
        .width = state->width,
        .seed = (int64_t)(kiln_trainer_seed(trainer) & INT32_MAX),
        .threads = kiln_trainer_threads(trainer),
    };
    kiln_booster_free(state->booster);
    state->booster = NULL;
    state->rounds = 0;
    KilnStatus status = kiln_booster_new(path == NULL ? state->train.data : NULL, &state->booster,
                                         err);
    if (status >= 0 && path != NULL)
        status = kiln_booster_read(state->booster, path, err);
    if (status >= 0)
        status = kiln_boost_set_up(&state->set_up, state->booster, err);
    return status >= 0 && path != NULL ? check_model(state, path, err) : status;
}

static char *model_path(const char *dir)
{
    KilnText path = { 0 };

    kiln_text_printf(&path, "%s/model.ubj", dir);
    return kiln_text_take(&path);
}

/* Before the first round there is nothing to save. */
static KilnStatus on_save_checkpoint(KilnInstance *self, KilnTrainer *trainer, const char *dir,
                                     KilnError *err)
{
    State *state = kiln_state(self);
    char *path = state->rounds > 0 ? model_path(dir) : NULL;

    (void)trainer;
    if (path == NULL)
        return state->rounds > 0 ? kiln_error_nomem(err, strlen(dir)) : KILN_OK;
    KilnStatus status = kiln_booster_write(state->booster, path, err);
    free(path);
    return status;
}

static KilnStatus on_load_checkpoint(KilnInstance *self, KilnTrainer *trainer, const char *dir,
                                     KilnError *err)
{
    char *path = model_path(dir);
    struct stat st;
    KilnStatus status = path != NULL ? KILN_OK : kiln_error_nomem(err, strlen(dir));

    if (status >= 0 && stat(path, &st) == 0)
        status = make_booster(self, trainer, path, err);
    else if (status >= 0 && strcmp(kiln_trainer_phase(trainer), "fit") != 0)
        status = kiln_error_set(err, KILN_E_MISSING,
                                "%s: no such file: the checkpoint was saved before the first round",
                                path);
    free(path);
    return status;
}

/* ---- Training ----------------------------------------------------------------------------- */

/* Such queries train nothing, and any model ranks them well. */
static void warn_of_single_documents(const KilnBoostRows *rows, KilnTrainer *trainer)
{
    int64_t n = 0;

    for (int64_t i = 0; i < rows->n_groups; i++)
        n += rows->groups[i] == 1;
    if (n > 0)
        kiln_trainer_print(
            trainer,
            "warning: %lld of %lld training queries have a single document: there is "
            "nothing to rank in them, and metrics count them as perfect",
            (long long)n, (long long)rows->n_groups);
}

static KilnStatus on_fit_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    KilnStatus status = kiln_boost_set_read(trainer, KILN_TRAIN, 0, &state->columns,
                                            state->objective->kind, &state->train, err);

    if (status >= 0)
        warn_of_single_documents(&state->train.rows, trainer);
    if (status >= 0 && state->booster == NULL)
        status = make_booster(self, trainer, opts->init_model, err);
    return status;
}

static void log_name(const State *state, const char *phase, size_t i, char *ret, size_t size)
{
    snprintf(ret, size, "%s/%s", phase, state->metric[i]);
}

static unsigned flags_of(const State *state, size_t i)
{
    bool higher = false;

    (void)kiln_boost_metric(state->metric[i], &higher);
    return (unsigned)KILN_LOG_EPOCH | (i == 0 ? KILN_LOG_PROG_BAR : 0u) |
           (higher ? KILN_LOG_HIGHER_IS_BETTER : KILN_LOG_LOWER_IS_BETTER);
}

/* Values come in the order of eval_metric. */
static void take_value(void *ctx, const char *name, double value)
{
    State *state = ctx;

    (void)name;
    if (state->n_values < KILN_BOOST_METRICS)
        state->values[state->n_values++] = (float)value;
}

static KilnStatus evaluate(State *state, KilnBoostData *data, KilnError *err)
{
    state->n_values = 0;
    return kiln_booster_evaluate(state->booster, data, take_value, state, err);
}

static void log_training(const State *state, KilnManual *manual)
{
    char name[KILN_BOOST_NAME + 16];

    for (size_t i = 0; i < state->n_metrics; i++) {
        log_name(state, "train", i, name, sizeof(name));
        kiln_manual_log(manual, name, (double)state->values[i], flags_of(state, i));
    }
}

static KilnStatus boost(State *state, KilnError *err)
{
    KilnStatus status = kiln_boost_begin_round(&state->set_up, state->booster, err);

    if (status >= 0)
        status = kiln_booster_update(state->booster, state->rounds, state->train.data, err);
    state->rounds += status >= 0;
    return status;
}

static KilnStatus on_train_batch_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    State *state = kiln_state(self);

    (void)err;
    state->ends_epoch = kiln_trainer_batch(trainer) + 1 >= kiln_trainer_batches(trainer);
    return KILN_OK;
}

/* A round, and the metrics of the training data after the last of an epoch. */
static KilnStatus manual_step(KilnInstance *self, KilnManual *manual, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);

    if (kiln_manual_planning(manual)) {
        if (opts->train_metrics)
            log_training(state, manual);
        return KILN_OK;
    }
    if (state->train.data == NULL || state->booster == NULL)
        return kiln_error_set(err, KILN_E_MISSING,
                              "boosting rounds need a run: they can't be timed before it");
    KilnStatus status = boost(state, err);
    if (status < 0 || !opts->train_metrics || !state->ends_epoch)
        return status;
    status = evaluate(state, state->train.data, err);
    if (status >= 0)
        log_training(state, manual);
    return status;
}

static int64_t whole_sets(const KilnInstance *self)
{
    return ((const Opts *)kiln_opts(self))->rounds_per_epoch;
}

/* ---- Evaluation ----------------------------------------------------------------------------- */

/* Before the first round there are no scores. */
static KilnStatus use_zeros(State *state, int64_t n, KilnError *err)
{
    const size_t count = (size_t)(n * state->width);

    free(state->zeros);
    state->zeros = calloc(count + 1, sizeof(*state->zeros));
    memset(state->values, 0, sizeof(state->values));
    state->scores = state->zeros;
    return state->zeros != NULL ? KILN_OK : kiln_error_nomem(err, count * sizeof(float));
}

static KilnStatus compute_scores(State *state, KilnError *err)
{
    int64_t width = 0;
    KilnStatus status = kiln_booster_scores(state->booster, state->set->data,
                                            state->objective->kind != KILN_BOOST_CLASSES,
                                            &state->scores, &width, err);

    if (status < 0 || width == state->width)
        return status;
    return kiln_error_set(err, KILN_E_SHAPE,
                          "the model gives %lld scores per row; the data needs %lld",
                          (long long)width, (long long)state->width);
}

/* Evaluate the set as a whole; the step that follows only reads the results. */
static KilnStatus begin_evaluation(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const KilnSplit split = kiln_trainer_split(trainer);
    const size_t number = (size_t)kiln_trainer_dataloader(trainer);
    KilnBoostSet *set = &state->sets[split][number];
    KilnStatus status = KILN_OK;

    if (set->data == NULL)
        status = kiln_boost_set_read(trainer, split, number, &state->columns,
                                     state->objective->kind, set, err);
    if (status < 0)
        return status;
    state->set = set;
    if (state->rounds == 0)
        return use_zeros(state, set->rows.n, err);
    status = evaluate(state, set->data, err);
    return status >= 0 && opts->metrics_count > 0 ? compute_scores(state, err) : status;
}

static bool takes_rankings(const KilnInstance *metric)
{
    return kiln_instance_component(metric)->ops.metric->takes == KILN_METRIC_RANKINGS;
}

/* Scores and targets of the set are inputs of the step, for metrics that read tensors. */
static void log_metrics(KilnInstance *self, KilnStep *step)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    const KilnBoostSet *set = state->set;
    KilnGraph *graph = kiln_step_graph(step);
    const int64_t n = kiln_step_batch_size(step);
    KilnTensor *scores = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(n, state->width),
                                          state->scores);
    KilnTensor *truth = state->objective->kind == KILN_BOOST_CLASSES
                            ? kiln_graph_input(graph, KILN_I32, KILN_SHAPE(n),
                                               set != NULL ? set->labels : NULL)
                            : kiln_graph_input(graph, KILN_F32, KILN_SHAPE(n, 1),
                                               set != NULL ? set->rows.targets : NULL);

    for (size_t i = 0; i < opts->metrics_count; i++) {
        if (takes_rankings(opts->metrics[i]))
            kiln_step_sequence_metric(step, opts->metrics[i], KILN_LOG_PROG_BAR);
        else
            kiln_step_metric(step, opts->metrics[i], scores, truth, KILN_LOG_PROG_BAR);
    }
}

static void log_evaluation(KilnInstance *self, KilnStep *step, const char *phase)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    char name[KILN_BOOST_NAME + 16];

    for (size_t i = 0; i < state->n_metrics; i++) {
        log_name(state, phase, i, name, sizeof(name));
        kiln_step_log(step, name,
                      kiln_graph_input(kiln_step_graph(step), KILN_F32, (KilnShape) { .rank = 0 },
                                       &state->values[i]),
                      flags_of(state, i));
    }
    if (opts->metrics_count > 0)
        log_metrics(self, step);
}

static void validation_step(KilnInstance *self, KilnStep *step)
{
    log_evaluation(self, step, "val");
}

static void test_step(KilnInstance *self, KilnStep *step)
{
    log_evaluation(self, step, "test");
}

static KilnStatus add_rankings(const Opts *opts, const State *state, KilnResults *results,
                               KilnError *err)
{
    const KilnBoostRows *rows = &state->set->rows;
    const KilnMetricRows ranked = { .count = rows->n,
                                    .scores = state->scores,
                                    .targets = rows->targets,
                                    .group_sizes = rows->groups,
                                    .n_groups = rows->n_groups };
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < opts->metrics_count && status >= 0; i++)
        if (takes_rankings(opts->metrics[i]))
            status = kiln_results_metric(results, opts->metrics[i], &ranked, err);
    return status;
}

/* Metrics of queries; of a prediction, XGBoost's error if there was one. */
static KilnStatus finish_step(KilnInstance *self, KilnResults *results, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    KilnStatus status = KILN_OK;

    if (strcmp(kiln_results_phase(results), "predict") != 0)
        return state->set != NULL && state->set->rows.groups != NULL
                   ? add_rankings(opts, state, results, err)
                   : KILN_OK;
    pthread_mutex_lock(&state->mutex);
    if (state->failure.status < 0)
        status = kiln_error_set(err, state->failure.status, "%s", state->failure.text);
    pthread_mutex_unlock(&state->mutex);
    return status;
}

/* ---- Prediction -------------------------------------------------------------------------- */

static void report(void *ctx, const KilnError *why)
{
    State *state = ctx;

    pthread_mutex_lock(&state->mutex);
    state->failure = *why;
    pthread_mutex_unlock(&state->mutex);
}

/* Describe the booster to its operations. */
static void set_up_operations(State *state)
{
    const KilnBoostKind kind = state->objective->kind;

    state->predict = (KilnBoostOp) { .booster = state->booster,
                                     .spec = state->spec,
                                     .columns = state->columns.n,
                                     .width = state->width,
                                     .binary = kind == KILN_BOOST_CLASSES && state->width == 1,
                                     .report = report,
                                     .ctx = state };
    state->contribute = state->predict;
    state->contribute.contributions = true;
}

static void contributions_step(KilnInstance *self, KilnStep *step)
{
    State *state = kiln_state(self);

    set_up_operations(state);
    kiln_step_output(step, "contributions", kiln_boost_record(step, &state->contribute));
}

static void predict_step(KilnInstance *self, KilnStep *step)
{
    static const char *const names[] = { [KILN_BOOST_VALUES] = "value",
                                         [KILN_BOOST_CLASSES] = "probabilities",
                                         [KILN_BOOST_RANKINGS] = "score" };
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);

    set_up_operations(state);
    kiln_step_output(step, names[state->objective->kind], kiln_boost_record(step, &state->predict));
    if (opts->contributions)
        kiln_step_output(step, "contributions", kiln_boost_record(step, &state->contribute));
}

/* ---- Importance ---------------------------------------------------------------------------- */

static KilnStatus on_fit_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const char *dir = kiln_trainer_run_dir(trainer);

    return opts->importance && dir[0] != '\0' && state->rounds > 0
               ? kiln_boost_write_importance(state->booster, &state->columns, dir, err)
               : KILN_OK;
}

static const KilnCallbackOps hooks = {
    .on_fit_start = on_fit_start,
    .on_train_batch_start = on_train_batch_start,
    .on_validation_batch_start = begin_evaluation,
    .on_test_batch_start = begin_evaluation,
    .on_fit_end = on_fit_end,
    .on_save_checkpoint = on_save_checkpoint,
    .on_load_checkpoint = on_load_checkpoint,
};

static const KilnModuleOps ops = {
    .setup = setup,
    .manual_step = manual_step,
    .validation_step = validation_step,
    .test_step = test_step,
    .predict_step = predict_step,
    .hooks = &hooks,
    .finish_step = finish_step,
    .whole_sets = whole_sets,
    .contributions_step = contributions_step,
};

const KilnComponent kiln_module_trees = {
    .kind = KILN_KIND_MODULE,
    .name = "trees",
    .summary = "Gradient-boosted trees by XGBoost: classes, numbers or rankings of rows",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .check = check,
    .init = init,
    .release = release,
    .ops.module = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_module_trees, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
