/* Regression: a number, or several, for each sample. With `standardize` the network learns them
 * with mean 0 and deviation 1 of the training samples; metrics and predictions are in the data's
 * units. */
#include "kiln.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Opts {
    KilnInstance *model, *loss, *optimizer, *scheduler;
    KilnInstance **metrics;
    size_t metrics_count;
    char *monitor;
    bool standardize;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_COMPONENT(Opts, model, KILN_KIND_MODEL, "${model}", "the network"),
    KILN_FIELD_COMPONENT(Opts, optimizer, KILN_KIND_OPTIMIZER, "${optimizer}", "the optimizer"),
    KILN_FIELD_COMPONENT_OPT(Opts, scheduler, KILN_KIND_SCHEDULER, "${scheduler}",
                             "the learning rate schedule; null: constant"),
    KILN_FIELD_COMPONENT(Opts, loss, KILN_KIND_LOSS, "mse", "what training minimizes"),
    KILN_FIELD_COMPONENT_MAP(Opts, metrics, KILN_KIND_METRIC, "{mae: metric/mae}",
                             "metrics by name, logged as train/NAME, val/NAME, test/NAME"),
    KILN_FIELD_MONITOR(Opts, "val/mae"),
    KILN_FIELD_BOOL(Opts, standardize, "true",
                    "the loss is of targets scaled to mean 0 and deviation 1 of the training "
                    "samples; metrics and predictions are in the data's units"),
    KILN_FIELD_END,
};

/* ---- What it reads, feeds and needs ---------------------------------------------------------- */

static const KilnTensorSpec reads[] = {
    { .name = "target", .content = KILN_LABEL, .dtype = KILN_F32 },
};
static const KilnTensorSpec feeds[] = {
    { .name = "x",
      .content = KILN_VECTOR | KILN_ROW | KILN_IMAGE | KILN_MAP | KILN_SEQUENCE,
      .dtype = KILN_F32 },
    { .name = "sequence", .content = KILN_SEQUENCE, .dtype = KILN_F32, .varies = true },
    { .name = "ids", .content = KILN_TOKENS | KILN_ROW, .dtype = KILN_I32 },
    { .name = "tokens", .content = KILN_TOKENS, .dtype = KILN_I32, .varies = true },
};
static const KilnTensorSpec needs[] = {
    { .name = "logits", .content = KILN_VECTOR, .dtype = KILN_F32, .axes = "values" },
};

static const KilnModelUse models[] = {
    { .option = "model",
      .feeds = feeds,
      .n_feeds = KILN_COUNT(feeds),
      .needs = needs,
      .n_needs = KILN_COUNT(needs) },
};

/* ---- Setup ----------------------------------------------------------------------------------- */

typedef struct State {
    int64_t width;           /* numbers of a target */
    float *mean, *deviation; /* [width] */
} State;

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnDataSpec *data,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);

    state->width = kiln_shape_count(&kiln_spec_feature(data, "target")->shape);
    state->mean = calloc((size_t)state->width + 1, sizeof(*state->mean));
    state->deviation = calloc((size_t)state->width + 1, sizeof(*state->deviation));
    if (state->mean == NULL || state->deviation == NULL)
        return kiln_error_nomem(err, (size_t)state->width * sizeof(*state->mean));
    for (int64_t i = 0; i < state->width; i++)
        state->deviation[i] = 1.0f;
    if (kiln_loss_setup(opts->loss, data, err) < 0)
        return err->status;
    return kiln_model_setup(opts->model, scope, models, data->features, data->n_features,
                            &state->width, err);
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    free(state->mean);
    free(state->deviation);
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

/* ---- The scale of targets -------------------------------------------------------------------- */

/* Number i of the targets of all training samples; NULL: the table has none. */
static const float *find_targets(const KilnTable *table, const State *state, int64_t i)
{
    char name[40];

    snprintf(name, sizeof(name), "target.%lld", (long long)i);
    for (size_t c = 0; c < table->n_columns; c++)
        if (table->columns[c].dtype == KILN_F32 && table->columns[c].data != NULL &&
            (strcmp(table->columns[c].name, name) == 0 ||
             (state->width == 1 && strcmp(table->columns[c].name, "target") == 0)))
            return table->columns[c].data;
    return NULL;
}

/* Mean and deviation of the population, in two passes. A constant keeps its scale. */
static void measure(const float *values, int64_t n, float *ret_mean, float *ret_deviation)
{
    double sum = 0.0, squares = 0.0;

    for (int64_t i = 0; i < n; i++)
        sum += (double)values[i];
    const double mean = n > 0 ? sum / (double)n : 0.0;
    for (int64_t i = 0; i < n; i++)
        squares += ((double)values[i] - mean) * ((double)values[i] - mean);
    *ret_mean = (float)mean;
    *ret_deviation = squares > 0.0 ? (float)sqrt(squares / (double)n) : 1.0f;
}

/* A resumed run has the scale of its checkpoint. */
static KilnStatus on_fit_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const KilnTable *table = NULL;

    if (!opts->standardize || kiln_trainer_global_step(trainer) > 0)
        return KILN_OK;
    KilnStatus status = kiln_trainer_table(trainer, KILN_TRAIN, 0, &table, err);
    if (status < 0)
        return kiln_error_prefix(err, "task.standardize: ");
    for (int64_t i = 0; i < state->width; i++) {
        const float *targets = find_targets(table, state, i);

        if (targets == NULL)
            return kiln_error_set(err, KILN_E_MISSING,
                                  "task.standardize: the training samples have no targets");
        measure(targets, table->n_rows, &state->mean[i], &state->deviation[i]);
    }
    return KILN_OK;
}

static void state_dict(KilnInstance *self, KilnState *saved)
{
    const State *state = kiln_state(self);

    kiln_state_set_tensor(saved, "target_mean", KILN_F32, &KILN_SHAPE(state->width), state->mean);
    kiln_state_set_tensor(saved, "target_deviation", KILN_F32, &KILN_SHAPE(state->width),
                          state->deviation);
}

static KilnStatus load_state_dict(KilnInstance *self, const KilnState *saved, KilnError *err)
{
    State *state = kiln_state(self);
    const KilnShape shape = KILN_SHAPE(state->width);

    if (kiln_state_get_tensor(saved, "target_mean", KILN_F32, &shape, state->mean) &&
        kiln_state_get_tensor(saved, "target_deviation", KILN_F32, &shape, state->deviation))
        return KILN_OK;
    return kiln_error_set(err, KILN_E_FORMAT, "has no target_mean and target_deviation of %lld",
                          (long long)state->width);
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static KilnTensor *scale_of(KilnStep *step, const State *state, const float *values)
{
    return kiln_graph_input(kiln_step_graph(step), KILN_F32, KILN_SHAPE(state->width), values);
}

/* The batch's targets [batch, width]; NULL: it has none. */
static KilnTensor *targets_of(KilnStep *step, const State *state)
{
    if (!kiln_step_has(step, "target"))
        return NULL;
    return kiln_reshape(kiln_step_input(step, "target"),
                        KILN_SHAPE(kiln_step_batch_size(step), state->width));
}

/* What the network says, as it learns it and in the data's units. */
static KilnTensor *predict(KilnInstance *self, KilnStep *step, KilnTensor **ret_output)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    KilnModelValue value;

    kiln_model_forward(opts->model, step, NULL, &value);
    *ret_output = value.tensor;
    if (!opts->standardize)
        return value.tensor;
    return kiln_add(kiln_mul(value.tensor, scale_of(step, state, state->deviation)),
                    scale_of(step, state, state->mean));
}

static KilnTensor *loss_of(KilnInstance *self, KilnStep *step, KilnTensor *output,
                           KilnTensor *target)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);

    if (opts->standardize)
        target = kiln_div(kiln_sub(target, scale_of(step, state, state->mean)),
                          scale_of(step, state, state->deviation));
    return kiln_loss(opts->loss, step, output, target);
}

static void count(const Opts *opts, KilnStep *step, KilnTensor *values, KilnTensor *target)
{
    const unsigned flags = kiln_step_training(step) ? 0 : KILN_LOG_PROG_BAR;

    for (size_t i = 0; i < opts->metrics_count; i++)
        kiln_step_metric(step, opts->metrics[i], values, target, flags);
}

static KilnTensor *training_step(KilnInstance *self, KilnStep *step)
{
    KilnTensor *target = targets_of(step, kiln_state(self)), *output;
    KilnTensor *values = predict(self, step, &output);
    KilnTensor *loss = loss_of(self, step, output, target);

    kiln_step_log(step, "train/loss", loss,
                  KILN_LOG_STEP | KILN_LOG_EPOCH | KILN_LOG_PROG_BAR | KILN_LOG_LOWER_IS_BETTER);
    count(kiln_opts(self), step, values, target);
    return loss;
}

static void evaluate(KilnInstance *self, KilnStep *step, const char *loss_name)
{
    KilnTensor *target = targets_of(step, kiln_state(self)), *output;
    KilnTensor *values = predict(self, step, &output);

    if (target != NULL) {
        kiln_step_log(step, loss_name, loss_of(self, step, output, target),
                      KILN_LOG_EPOCH | KILN_LOG_PROG_BAR | KILN_LOG_LOWER_IS_BETTER);
        count(kiln_opts(self), step, values, target);
    }
    kiln_step_output(step, "value", values);
}

static void validation_step(KilnInstance *self, KilnStep *step)
{
    evaluate(self, step, "val/loss");
}

static void test_step(KilnInstance *self, KilnStep *step)
{
    evaluate(self, step, "test/loss");
}

static void predict_step(KilnInstance *self, KilnStep *step)
{
    KilnTensor *output;

    kiln_step_output(step, "value", predict(self, step, &output));
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
    .configure_optimizers = configure_optimizers,
    .hooks = &hooks,
};

const KilnComponent kiln_module_regression = {
    .kind = KILN_KIND_MODULE,
    .name = "regression",
    .summary = "Regression: numbers for vectors, rows, sequences, tokens or images",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .release = release,
    .ops.module = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_module_regression, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
