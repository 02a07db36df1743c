/* Retrieval: which of all items belongs to a query, such as the next film of a user. A sample is a
 * row of a table that has the item in one column of categories; its other columns are the query.
 * One of them may be the user, whose items of training are then no candidates.
 * Two models, the towers, make a vector of each, and an item's score is the product of both.
 * In training the other items of a batch are the wrong ones (Yi et al., "Sampling-bias-corrected
 * neural modeling for large corpus item recommendations", 2019); evaluation ranks all items
 * that training has seen. */
#include "kiln.h"
#include "kiln/tools/item_history.h"
#include "kiln/tools/row_results.h"
#include "kiln/tools/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Opts {
    KilnInstance *query_model, *item_model, *optimizer, *scheduler;
    char *item, *user, *monitor;
    double temperature;
    bool correct_sampling;
    int64_t *k;
    size_t k_count;
    int64_t results;
} Opts;

typedef struct State {
    KilnRowColumn *columns; /* of "ids", without the item's, which is the last one here */
    int64_t place, width;   /* of the item in "ids", and its columns */
    int64_t user;           /* the place of the user; -1: none is named */
    int64_t n_items, n_users;
    const char *const *names; /* of items; NULL: numbers */
    KilnItemHistory history;
    KilnParam *seen; /* how often training saw each item, f32 [n_items] */
    bool has_numbers;
} State;

static const KilnField fields[] = {
    KILN_FIELD_COMPONENT(Opts, query_model, KILN_KIND_MODEL, "${model}",
                         "makes the vector of a query"),
    KILN_FIELD_COMPONENT(Opts, item_model, KILN_KIND_MODEL, "${model}",
                         "makes the vector of an item, with parameters of its own"),
    KILN_FIELD_COMPONENT(Opts, optimizer, KILN_KIND_OPTIMIZER, "${optimizer}", "the optimizer"),
    KILN_FIELD_COMPONENT_OPT(Opts, scheduler, KILN_KIND_SCHEDULER, "${scheduler}",
                             "the learning rate schedule; null: constant"),
    KILN_FIELD_STR(Opts, item, NULL, "the column of the item; the other columns are the query"),
    KILN_FIELD_STR_OPT(Opts, user, "null",
                       "the column of the user: evaluation and predictions leave out the items "
                       "that the training data have for the same user; null: none"),
    KILN_FIELD_F64(Opts, temperature, "0.05", 1e-6, 1e6,
                   "scores are divided by this before the softmax"),
    KILN_FIELD_BOOL(Opts, correct_sampling, "true",
                    "scores of training are less by the logarithm of the item's share of the "
                    "samples so far, since frequent items are wrong ones more often"),
    KILN_FIELD_I64_LIST(Opts, k, "[10]", 1, 1000000,
                        "numbers of best items among which hit_rate@K and ndcg@K look for the "
                        "right one"),
    KILN_FIELD_I64(Opts, results, "10", 1, 1000, "best items that a prediction lists"),
    KILN_FIELD_MONITOR(Opts, "val/mrr"),
    KILN_FIELD_END,
};

static const KilnTensorSpec reads[] = {
    { .name = "ids", .content = KILN_ROW, .dtype = KILN_I32, .axes = "categories" },
    { .name = "x", .content = KILN_ROW, .dtype = KILN_F32, .axes = "numbers", .optional = true },
};

enum { CATEGORIES, NUMBERS, FEEDS };
static const KilnTensorSpec feeds[FEEDS] = {
    [CATEGORIES] = { .name = "ids", .content = KILN_ROW, .dtype = KILN_I32, .axes = "categories" },
    [NUMBERS] = { .name = "x",
                  .content = KILN_ROW | KILN_VECTOR,
                  .dtype = KILN_F32,
                  .axes = "numbers",
                  .optional = true },
};

static const KilnTensorSpec vector = {
    .name = "vector", .content = KILN_VECTOR, .dtype = KILN_F32, .axes = "features"
};

enum { QUERY, ITEM };
static const KilnModelUse models[] = {
    [QUERY] = { .option = "query_model",
                .feeds = feeds,
                .n_feeds = FEEDS,
                .own = true,
                .needs = &vector,
                .n_needs = 1 },
    [ITEM] = { .option = "item_model",
               .feeds = &feeds[CATEGORIES],
               .n_feeds = 1,
               .own = true,
               .needs = &vector,
               .n_needs = 1 },
};

/* ---- Setup ----------------------------------------------------------------------------------- */

/* The place of a column in "ids". */
static KilnStatus find_column(const KilnFeature *ids, const char *option, const char *name,
                              int64_t *ret, KilnError *err)
{
    for (int64_t i = 0; i < ids->shape.dim[0] && ids->columns != NULL; i++)
        if (strcmp(ids->columns[i].name, name) == 0) {
            *ret = i;
            return KILN_OK;
        }
    return kiln_error_set(err, KILN_E_MISSING,
                          "task.%s: the data have no column of categories \"%s\"", option, name);
}

static KilnStatus find_user(State *state, const Opts *opts, const KilnFeature *ids, KilnError *err)
{
    state->user = -1;
    if (opts->user == NULL)
        return KILN_OK;
    KilnStatus status = find_column(ids, "user", opts->user, &state->user, err);
    if (status >= 0 && state->user == state->place)
        status = kiln_error_set(err, KILN_E_RANGE, "task.user: \"%s\" is the item's column",
                                opts->user);
    if (status >= 0)
        state->n_users = ids->columns[state->user].n_ids;
    return status;
}

/* Find the item's column, and put it after the others. */
static KilnStatus find_item(State *state, const Opts *opts, const KilnFeature *ids, KilnError *err)
{
    const int64_t n = ids->shape.dim[0];
    int64_t place = 0;
    KilnStatus status = find_column(ids, "item", opts->item, &place, err);

    if (status < 0)
        return status;
    if (n < 2)
        return kiln_error_set(
            err, KILN_E_SHAPE,
            "task retrieval needs another column of categories beside the item's, "
            "for the query");
    state->columns = malloc((size_t)n * sizeof(*state->columns));
    if (state->columns == NULL)
        return kiln_error_nomem(err, (size_t)n * sizeof(*state->columns));
    for (int64_t i = 0, at = 0; i < n; i++)
        state->columns[i == place ? n - 1 : at++] = ids->columns[i];
    state->place = place;
    state->width = n;
    state->n_items = ids->columns[place].n_ids;
    state->names = ids->columns[place].id_names;
    return KILN_OK;
}

/* A part of the columns of "ids". */
static KilnFeature part_of(const State *state, const KilnFeature *ids, int64_t first, int64_t n)
{
    KilnFeature part = *ids;

    part.name = feeds[CATEGORIES].name;
    part.shape = KILN_SHAPE(n);
    part.columns = state->columns + first;
    return part;
}

static KilnStatus set_up_towers(const Opts *opts, State *state, const KilnScope *scope,
                                const KilnDataSpec *data, KilnError *err)
{
    const KilnFeature *ids = kiln_spec_feature(data, "ids"), *x = kiln_spec_feature(data, "x");
    const KilnScope query = kiln_scope(scope, "query"), item = kiln_scope(scope, "item");
    KilnFeature of_query[FEEDS] = { part_of(state, ids, 0, state->width - 1) };
    const KilnFeature of_item = part_of(state, ids, state->width - 1, 1);

    state->has_numbers = x != NULL;
    if (x != NULL)
        of_query[NUMBERS] = *x;
    of_query[NUMBERS].name = feeds[NUMBERS].name;
    KilnStatus status = kiln_model_setup(opts->query_model, &query, &models[QUERY], of_query,
                                         state->has_numbers ? FEEDS : NUMBERS, NULL, err);
    if (status >= 0)
        status = kiln_model_setup(opts->item_model, &item, &models[ITEM], &of_item, 1, NULL, err);
    if (status < 0)
        return status;
    const int64_t width[] = { kiln_model_need_shape(opts->query_model, 0).dim[0],
                              kiln_model_need_shape(opts->item_model, 0).dim[0] };
    return width[0] == width[1]
               ? KILN_OK
               : kiln_error_set(err, KILN_E_SHAPE,
                                "the vectors of task.query_model have %lld features and those of "
                                "task.item_model %lld; they must have as many",
                                (long long)width[0], (long long)width[1]);
}

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnDataSpec *data,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const KilnFeature *ids = kiln_spec_feature(data, "ids");
    KilnStatus status = find_item(state, opts, ids, err);

    if (status >= 0)
        status = find_user(state, opts, ids, err);
    if (status >= 0)
        status = set_up_towers(opts, state, scope, data, err);
    return status < 0 ? status
                      : kiln_register_buffer(scope, "seen", KILN_F32, KILN_SHAPE(state->n_items),
                                             0.0, &state->seen, err);
}

/* ---- Items of training ----------------------------------------------------------------------- */

/* A resumed run has those of its checkpoint. */
static KilnStatus on_fit_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const KilnTable *table = NULL;

    if (opts->user == NULL || kiln_trainer_global_step(trainer) > 0)
        return KILN_OK;
    KilnStatus status = kiln_trainer_table(trainer, KILN_TRAIN, 0, &table, err);
    if (status >= 0)
        status = kiln_item_history_fit(&state->history, table, opts->user, opts->item,
                                       state->n_users, state->n_items, err);
    return status < 0 ? kiln_error_prefix(err, "task.user: ") : KILN_OK;
}

static void state_dict(KilnInstance *self, KilnState *saved)
{
    kiln_item_history_save(&((const State *)kiln_state(self))->history, saved);
}

static KilnStatus load_state_dict(KilnInstance *self, const KilnState *saved, KilnError *err)
{
    State *state = kiln_state(self);

    return state->user < 0 ? KILN_OK
                           : kiln_item_history_load(&state->history, saved, state->n_users,
                                                    state->n_items, err);
}

/* ---- Scores ---------------------------------------------------------------------------------- */

/* The batch's items, i32 [batch, 1]. */
static KilnTensor *items_of(const State *state, KilnStep *step)
{
    return kiln_narrow(kiln_step_input(step, "ids"), 1, state->place, 1);
}

/* The columns of the query, i32 [batch, width - 1]. */
static KilnTensor *query_of(const State *state, KilnStep *step)
{
    KilnTensor *ids = kiln_step_input(step, "ids");
    const int64_t after = state->width - 1 - state->place;

    if (state->place == 0 || after == 0)
        return kiln_narrow(ids, 1, state->place == 0 ? 1 : 0, state->width - 1);
    KilnTensor *parts[] = { kiln_narrow(ids, 1, 0, state->place),
                            kiln_narrow(ids, 1, state->place + 1, after) };
    return kiln_concat(parts, 2, 1);
}

/* The scores of `items` i32 [n, 1] for each query, [batch, n]. */
static KilnTensor *score(KilnInstance *self, KilnStep *step, KilnTensor *items)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    KilnModelValue of_query[FEEDS] = { { .tensor = query_of(state, step) } }, query = { 0 };
    const KilnModelValue of_item = { .tensor = items };
    KilnModelValue item = { 0 };

    if (state->has_numbers)
        of_query[NUMBERS].tensor = kiln_step_input(step, "x");
    kiln_model_forward(opts->query_model, step, of_query, &query);
    kiln_model_forward(opts->item_model, step, &of_item, &item);
    return kiln_scale(kiln_matmul(query.tensor, item.tensor, false, true), 1.0 / opts->temperature);
}

/* Count the items of a batch. */
static KilnTensor *count_items(const State *state, KilnStep *step, KilnTensor *items)
{
    KilnTensor *seen = kiln_param_tensor(state->seen, kiln_step_graph(step));
    KilnTensor *ones = kiln_shift(kiln_scale(kiln_to_float(items), 0.0), 1.0);
    KilnTensor *counts = kiln_scatter_add(seen, 0, items, ones);

    kiln_store(seen, counts);
    return counts;
}

/* log(share of the samples so far) of the batch's items, [1, batch]. */
static KilnTensor *log_shares(const State *state, KilnStep *step, KilnTensor *items)
{
    const int64_t batch = kiln_step_batch_size(step);
    KilnTensor *flat = kiln_reshape(items, KILN_SHAPE(batch));
    KilnTensor *counts = count_items(state, step, flat);
    KilnTensor *share = kiln_div(kiln_gather(counts, 0, flat), kiln_sum(counts));

    return kiln_reshape(kiln_log(share), KILN_SHAPE(1, batch));
}

/* 1 where two rows of the batch have the same item, and are not the same row. */
static KilnTensor *same_items(KilnStep *step, KilnTensor *items)
{
    const int64_t batch = kiln_step_batch_size(step);
    KilnTensor *ids = kiln_to_float(items);
    KilnTensor *row = kiln_arange(kiln_step_graph(step), kiln_tensor_dtype(ids), 0.0, 1.0, batch);
    KilnTensor *same = kiln_eq(ids, kiln_reshape(ids, KILN_SHAPE(1, batch)));

    return kiln_mul(same, kiln_ne(kiln_reshape(row, KILN_SHAPE(batch, 1)), row));
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static KilnTensor *training_step(KilnInstance *self, KilnStep *step)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    KilnTensor *items = items_of(state, step);
    KilnTensor *scores = score(self, step, items);

    if (kiln_tensor_poisoned(items) || kiln_tensor_poisoned(scores))
        return kiln_sum(scores);
    KilnTensor *shares = log_shares(state, step, items);
    if (opts->correct_sampling)
        scores = kiln_sub(scores, shares);
    scores = kiln_masked_fill(scores, same_items(step, items), -1e9);
    KilnTensor *right = kiln_arange(kiln_step_graph(step), KILN_I32, 0.0, 1.0,
                                    kiln_step_batch_size(step));
    KilnTensor *loss = kiln_cross_entropy(scores, right, (KilnCrossEntropy) { 0 });

    kiln_step_log(step, "train/loss", loss,
                  KILN_LOG_STEP | KILN_LOG_EPOCH | KILN_LOG_PROG_BAR | KILN_LOG_LOWER_IS_BETTER);
    return loss;
}

static KilnTensor *all_items(const State *state, KilnStep *step)
{
    return kiln_reshape(kiln_arange(kiln_step_graph(step), KILN_I32, 0.0, 1.0, state->n_items),
                        KILN_SHAPE(state->n_items, 1));
}

/* Scores of all items without those that training has not seen, whose vectors mean nothing. */
static KilnTensor *only_seen(const State *state, KilnStep *step, KilnTensor *scores)
{
    KilnGraph *graph = kiln_step_graph(step);
    KilnTensor *seen = kiln_param_tensor(state->seen, graph);

    return kiln_masked_fill(scores, kiln_lt(seen, kiln_graph_scalar(graph, 0.5)), -1e9);
}

/* And without those that the user has. */
static KilnTensor *only_new(const State *state, KilnStep *step, KilnTensor *scores)
{
    if (state->user < 0)
        return scores;
    return kiln_item_history_mask(&state->history, scores,
                                  kiln_narrow(kiln_step_input(step, "ids"), 1, state->user, 1),
                                  -1e9);
}

static void log_ranks(const Opts *opts, KilnStep *step, const char *phase, KilnTensor *ranks)
{
    const unsigned flags = KILN_LOG_EPOCH | KILN_LOG_HIGHER_IS_BETTER;
    KilnTensor *gains = kiln_scale(kiln_reciprocal(kiln_log(kiln_shift(ranks, 2.0))), log(2.0));
    char name[64];

    for (size_t i = 0; i < opts->k_count; i++) {
        KilnTensor *limit = kiln_graph_scalar(kiln_step_graph(step), (double)opts->k[i]);
        KilnTensor *hit = kiln_lt(ranks, limit);

        snprintf(name, sizeof(name), "%s/hit_rate@%lld", phase, (long long)opts->k[i]);
        kiln_step_log(step, name, kiln_mean(hit), flags | (i == 0 ? KILN_LOG_PROG_BAR : 0));
        snprintf(name, sizeof(name), "%s/ndcg@%lld", phase, (long long)opts->k[i]);
        kiln_step_log(step, name, kiln_mean(kiln_mul(hit, gains)), flags);
    }
    snprintf(name, sizeof(name), "%s/mrr", phase);
    kiln_step_log(step, name, kiln_mean(kiln_reciprocal(kiln_shift(ranks, 1.0))), flags);
}

/* The rank of the right item among all: how many have a larger score. */
static void evaluate(KilnInstance *self, KilnStep *step, const char *phase)
{
    const int last[] = { 1 };
    const State *state = kiln_state(self);
    KilnTensor *items = items_of(state, step);
    KilnTensor *scores = score(self, step, all_items(state, step));
    char name[32];

    if (kiln_tensor_poisoned(items) || kiln_tensor_poisoned(scores))
        return;
    KilnTensor *loss =
        kiln_cross_entropy(scores, kiln_reshape(items, KILN_SHAPE(kiln_step_batch_size(step))),
                           (KilnCrossEntropy) { 0 });
    KilnTensor *ranked = only_seen(state, step, scores);
    KilnTensor *right = kiln_gather(ranked, 1, items);
    KilnTensor *above = kiln_gt(only_new(state, step, ranked), right);

    snprintf(name, sizeof(name), "%s/loss", phase);
    kiln_step_log(step, name, loss, KILN_LOG_EPOCH | KILN_LOG_PROG_BAR | KILN_LOG_LOWER_IS_BETTER);
    log_ranks(kiln_opts(self), step, phase, kiln_sum_axes(above, last, 1, false));
}

static void validation_step(KilnInstance *self, KilnStep *step)
{
    evaluate(self, step, "val");
}

static void test_step(KilnInstance *self, KilnStep *step)
{
    evaluate(self, step, "test");
}

/* ---- Predictions ----------------------------------------------------------------------------- */

static void predict_step(KilnInstance *self, KilnStep *step)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    const int64_t n = opts->results < state->n_items ? opts->results : state->n_items;
    KilnTensor *scores = only_seen(state, step, score(self, step, all_items(state, step)));

    scores = only_new(state, step, scores);
    const KilnSorted best = kiln_topk(scores, n, 1, true);

    kiln_step_keep(step, "items", best.indices);
    kiln_step_keep(step, "scores", kiln_scale(best.values, opts->temperature));
}

static KilnStatus set_items(const State *state, KilnResults *results, int64_t row, KilnError *err)
{
    KilnShape shape;
    const int32_t *items = kiln_results_kept(results, "items", &shape);
    const float *scores = kiln_results_kept(results, "scores", &shape);
    KilnText json = { 0 };
    char number[24];

    if (items == NULL || scores == NULL)
        return kiln_error_set(err, KILN_E_MISSING, "the step has no items");
    for (int64_t i = row * shape.dim[1]; i < (row + 1) * shape.dim[1]; i++) {
        snprintf(number, sizeof(number), "%d", (int)items[i]);
        kiln_text_append(&json, json.length == 0 ? "[{\"item\": " : ", {\"item\": ");
        kiln_text_json_string(&json, state->names != NULL ? state->names[items[i]] : number);
        kiln_text_printf(&json, ", \"score\": %.6g}", (double)scores[i]);
    }
    kiln_text_char(&json, ']');
    const KilnStatus status = json.failed ? kiln_error_nomem(err, json.length)
                                          : kiln_results_set(results, "items", row, json.data, err);
    kiln_text_release(&json);
    return status;
}

static KilnStatus finish_step(KilnInstance *self, KilnResults *results, KilnError *err)
{
    KilnStatus status = KILN_OK;

    if (strcmp(kiln_results_phase(results), "predict") != 0)
        return KILN_OK;
    for (int64_t i = 0; i < kiln_results_size(results) && status >= 0; i++)
        status = set_items(kiln_state(self), results, i, err);
    return status;
}

static KilnStatus configure_optimizers(KilnInstance *self, KilnOptimizers *ret, KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    (void)err;
    *ret = (KilnOptimizers) {
        .n = 1, .use = { { .optimizer = opts->optimizer, .scheduler = opts->scheduler } }
    };
    return KILN_OK;
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    free(state->columns);
    kiln_item_history_release(&state->history);
}

static const KilnCallbackOps hooks = { .on_fit_start = on_fit_start,
                                       .state_dict = state_dict,
                                       .load_state_dict = load_state_dict };

static const KilnModuleOps ops = {
    .models = models,
    .n_models = KILN_COUNT(models),
    .features = reads,
    .n_features = KILN_COUNT(reads),
    .setup = setup,
    .training_step = training_step,
    .validation_step = validation_step,
    .test_step = test_step,
    .predict_step = predict_step,
    .finish_step = finish_step,
    .configure_optimizers = configure_optimizers,
    .hooks = &hooks,
};

const KilnComponent kiln_module_retrieval = {
    .kind = KILN_KIND_MODULE,
    .name = "retrieval",
    .summary = "Retrieval: the item of a query, out of all items",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .release = release,
    .ops.module = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_module_retrieval, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
