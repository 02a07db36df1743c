/* Translation: from a sequence of tokens to another one, such as a sentence in another language.
 * The model learns each token of the target from the source and the tokens before it (teacher
 * forcing). */
#include "kiln.h"
#include "kiln/tools/beam_search.h"

#include <stdlib.h>
#include <string.h>

typedef struct Opts {
    KilnInstance *model, *optimizer, *scheduler;
    KilnInstance **metrics;
    size_t metrics_count;
    char *monitor;
    double label_smoothing;
    int64_t beams, val_beams, val_samples, n_best, max_length;
    double length_penalty, max_length_ratio;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_COMPONENT(Opts, model, KILN_KIND_MODEL, "${model}", "the network"),
    KILN_FIELD_COMPONENT(Opts, optimizer, KILN_KIND_OPTIMIZER, "${optimizer}", "the optimizer"),
    KILN_FIELD_COMPONENT_OPT(Opts, scheduler, KILN_KIND_SCHEDULER, "${scheduler}",
                             "the learning rate schedule; null: constant"),
    KILN_FIELD_F64(Opts, label_smoothing, "0.1", 0.0, 1.0,
                   "in training, this fraction of each token's label is spread over the "
                   "vocabulary"),
    KILN_FIELD_COMPONENT_MAP(Opts, metrics, KILN_KIND_METRIC, "{bleu: metric/bleu}",
                             "metrics of texts by name, logged as val/NAME and test/NAME"),
    KILN_FIELD_MONITOR(Opts, "val/loss"),
    KILN_FIELD_I64(Opts, beams, "5", 1, 100,
                   "width of the beam search in test and prediction; 1: greedy"),
    KILN_FIELD_I64(Opts, val_beams, "1", 1, 100, "the same in validation"),
    KILN_FIELD_I64(Opts, val_samples, "500", 0, 1000000000,
                   "how many samples each validation translates, the first ones; 0: none"),
    KILN_FIELD_I64(Opts, n_best, "1", 1, 100,
                   "translations of each sample in predictions, at most `beams`"),
    KILN_FIELD_F64(Opts, length_penalty, "1.0", -10.0, 10.0,
                   "a translation's score is its log-probability over its length to this power"),
    KILN_FIELD_I64(Opts, max_length, "200", 1, 100000, "the most tokens of a translation"),
    KILN_FIELD_F64(Opts, max_length_ratio, "2.0", 0.0, 1000.0,
                   "a translation has at most 10 tokens more than this times the source's"),
    KILN_FIELD_END,
};

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    *ret_option = "n_best";
    if (opts->n_best > opts->beams)
        return kiln_error_set(err, KILN_E_RANGE, "expected at most the %lld beams, got %lld",
                              (long long)opts->beams, (long long)opts->n_best);
    return KILN_OK;
}

enum { SOURCE, TARGET };

static const KilnTensorSpec feeds[] = {
    [SOURCE] = { .name = "source",
                 .content = KILN_TOKENS,
                 .dtype = KILN_I32,
                 .axes = "time",
                 .varies = true },
    [TARGET] = { .name = "target",
                 .content = KILN_TOKENS,
                 .dtype = KILN_I32,
                 .axes = "time",
                 .varies = true },
};
static const KilnTensorSpec needs[] = {
    { .name = "token_logits",
      .content = KILN_SEQUENCE,
      .dtype = KILN_F32,
      .axes = "time classes",
      .varies = true },
};
static const KilnModelUse models[] = {
    { .option = "model",
      .feeds = feeds,
      .n_feeds = KILN_COUNT(feeds),
      .needs = needs,
      .n_needs = KILN_COUNT(needs) },
};

typedef struct State {
    int64_t pad, n_ids, longest; /* of the target */
} State;

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnDataSpec *data,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const KilnFeature *source = kiln_spec_feature(data, "source");
    const KilnFeature *target = kiln_spec_feature(data, "target");

    if (!kiln_model_decodes(opts->model))
        return kiln_error_set(err, KILN_E_MISSING,
                              "model %s can't write sequences; use encoder_decoder",
                              kiln_instance_name(opts->model));
    state->pad = (int64_t)target->pad;
    state->n_ids = target->n_ids;
    state->longest = target->shape.dim[0];
    return kiln_model_setup(opts->model, scope, models,
                            (const KilnFeature[]) { [SOURCE] = *source, [TARGET] = *target }, 2,
                            &target->n_ids, err);
}

/* The mean loss of the target's tokens. */
static KilnTensor *loss_of(KilnInstance *self, KilnStep *step)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    KilnTensor *target = kiln_step_input(step, "target");
    const int64_t n = kiln_tensor_dim(target, 1) - 1;
    const KilnModelValue inputs[] = {
        [SOURCE] = { kiln_step_input(step, "source"), kiln_step_lengths(step, "source") },
        [TARGET] = { kiln_narrow(target, 1, 0, n), NULL },
    };
    KilnModelValue logits;

    kiln_model_forward(opts->model, step, inputs, &logits);
    return kiln_cross_entropy(
        logits.tensor, kiln_narrow(target, 1, 1, n),
        (KilnCrossEntropy) {
            .label_smoothing = kiln_step_training(step) ? opts->label_smoothing : 0.0,
            .ignore = true,
            .ignore_index = state->pad,
        });
}

static KilnTensor *training_step(KilnInstance *self, KilnStep *step)
{
    KilnTensor *loss = loss_of(self, step);

    kiln_step_log(step, "train/loss", loss,
                  KILN_LOG_STEP | KILN_LOG_EPOCH | KILN_LOG_PROG_BAR | KILN_LOG_LOWER_IS_BETTER);
    return loss;
}

static void evaluate(KilnInstance *self, KilnStep *step, const char *name, bool translates)
{
    const Opts *opts = kiln_opts(self);

    kiln_step_log(step, name, loss_of(self, step),
                  KILN_LOG_EPOCH | KILN_LOG_PROG_BAR | KILN_LOG_LOWER_IS_BETTER);
    for (size_t i = 0; i < opts->metrics_count && translates; i++)
        kiln_step_sequence_metric(step, opts->metrics[i], KILN_LOG_PROG_BAR);
}

static void validation_step(KilnInstance *self, KilnStep *step)
{
    evaluate(self, step, "val/loss", ((const Opts *)kiln_opts(self))->val_samples > 0);
}

static void test_step(KilnInstance *self, KilnStep *step)
{
    evaluate(self, step, "test/loss", true);
}

/* Everything is in finish_step. */
static void predict_step(KilnInstance *self, KilnStep *step)
{
    (void)self;
    (void)step;
}

/* ---- Translating -------------------------------------------------------------------------- */

static size_t encode(void *ctx, KilnStep *step, KilnTensor *ret[KILN_MODEL_MEMORIES])
{
    return kiln_model_encode(ctx, step, ret);
}

static KilnTensor *next(void *ctx, KilnStep *step, KilnTensor *const *memories, KilnTensor *tokens)
{
    return kiln_model_decode(ctx, step, memories, tokens);
}

/* The most tokens of each row's translation; NULL: memory is out. Owned by the caller. */
static int32_t *limits_of(const Opts *opts, const KilnResults *results)
{
    const int64_t n = kiln_results_size(results);
    const int32_t *lengths = kiln_results_lengths(results, "source");
    int32_t *ret = malloc((size_t)n * sizeof(*ret));

    for (int64_t row = 0; ret != NULL && row < n; row++) {
        const double limit = opts->max_length_ratio * (double)lengths[row] + 10.0;

        ret[row] = limit < (double)INT32_MAX ? (int32_t)limit : INT32_MAX;
    }
    return ret;
}

static KilnStatus translate(KilnInstance *self, KilnResults *results, int64_t beams, int64_t n_best,
                            KilnHypothesis **ret, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    const KilnInstance *tokenizer = kiln_results_tokenizer(results);

    if (tokenizer == NULL)
        return kiln_error_set(err, KILN_E_MISSING,
                              "translations need a datamodule with a tokenizer (parallel_text)");
    int32_t *limits = limits_of(opts, results);
    if (limits == NULL)
        return kiln_error_nomem(err, (size_t)kiln_results_size(results) * sizeof(*limits));
    const KilnBeamSearch search = {
        .beams = beams,
        .n_best = n_best,
        .length_penalty = opts->length_penalty,
        .max_length = opts->max_length < state->longest ? opts->max_length : state->longest,
        .limits = limits,
        .begin = (int32_t)kiln_tokenizer_special(tokenizer, KILN_TOKEN_BOS),
        .end = (int32_t)kiln_tokenizer_special(tokenizer, KILN_TOKEN_EOS),
        .n_ids = state->n_ids,
        .encode = encode,
        .next = next,
        .ctx = opts->model,
    };
    KilnStatus status = kiln_beam_search(results, &search, ret, err);
    free(limits);
    return status;
}

/* Append the text of a hypothesis. */
static KilnStatus text_of(const KilnResults *results, const KilnHypothesis *hypothesis,
                          KilnText *ret, KilnError *err)
{
    KilnStatus status = kiln_tokenizer_decode(kiln_results_tokenizer(results), hypothesis->ids,
                                              (size_t)hypothesis->n, true, ret, err);

    kiln_text_append(ret, "");
    return status >= 0 && ret->failed ? kiln_error_nomem(err, (size_t)hypothesis->n) : status;
}

/* ---- Predictions --------------------------------------------------------------------------- */

/* "[{"translation": ..., "score": ...}, ...]" of all hypotheses of a row. */
static KilnStatus set_candidates(KilnResults *results, int64_t row, const KilnHypothesis *list,
                                 int64_t n, KilnError *err)
{
    KilnText json = { 0 }, text = { 0 };
    KilnStatus status = KILN_OK;

    for (int64_t i = 0; i < n && status >= 0; i++) {
        kiln_text_clear(&text);
        status = text_of(results, &list[i], &text, err);
        kiln_text_append(&json, i == 0 ? "[{\"translation\": " : ", {\"translation\": ");
        kiln_text_json_string(&json, text.data != NULL ? text.data : "");
        kiln_text_append(&json, ", \"score\": ");
        kiln_text_json_number(&json, list[i].score);
        kiln_text_char(&json, '}');
    }
    kiln_text_char(&json, ']');
    if (status >= 0)
        status = json.failed ? kiln_error_nomem(err, json.length)
                             : kiln_results_set(results, "candidates", row, json.data, err);
    kiln_text_release(&json);
    kiln_text_release(&text);
    return status;
}

static KilnStatus set_results(KilnResults *results, int64_t row, const char *text, double score,
                              KilnError *err)
{
    KilnText json = { 0 }, number = { 0 };

    kiln_text_json_string(&json, text);
    kiln_text_json_number(&number, score);
    KilnStatus status = json.failed || number.failed
                            ? kiln_error_nomem(err, json.length)
                            : kiln_results_set(results, "translation", row, json.data, err);
    if (status >= 0)
        status = kiln_results_set(results, "score", row, number.data, err);
    kiln_text_release(&json);
    kiln_text_release(&number);
    return status;
}

static KilnStatus count(const Opts *opts, KilnResults *results, int64_t row, const char *text,
                        KilnError *err)
{
    const char *wanted = kiln_results_text(results, "target_text", row);
    const KilnSequence sequence = { .text = text }, reference = { .text = wanted };
    const KilnMetricRows rows = {
        .count = 1, .sequences = &sequence, .references = &reference, .n_references = 1
    };
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < opts->metrics_count && wanted != NULL && status >= 0; i++)
        status = kiln_results_metric(results, opts->metrics[i], &rows, err);
    return status;
}

static KilnStatus finish_row(KilnInstance *self, KilnResults *results, int64_t row,
                             const KilnHypothesis *list, int64_t n, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    KilnText text = { 0 };
    KilnStatus status = text_of(results, &list[0], &text, err);

    if (status >= 0 && strcmp(kiln_results_phase(results), "predict") != 0)
        status = count(opts, results, row, text.data, err);
    else if (status >= 0)
        status = set_results(results, row, text.data, list[0].score, err);
    if (status >= 0 && n > 1)
        status = set_candidates(results, row, list, n, err);
    kiln_text_release(&text);
    return status;
}

static KilnStatus finish_step(KilnInstance *self, KilnResults *results, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const char *phase = kiln_results_phase(results);
    const bool validates = strcmp(phase, "validate") == 0;
    const int64_t n = kiln_results_size(results);
    const int64_t n_best = strcmp(phase, "predict") == 0 ? opts->n_best : 1;
    KilnHypothesis *list = NULL;

    if (validates && kiln_results_sample(results, 0) >= opts->val_samples)
        return KILN_OK;
    KilnStatus status = translate(self, results, validates ? opts->val_beams : opts->beams, n_best,
                                  &list, err);
    for (int64_t row = 0; row < n && status >= 0; row++)
        if (!validates || kiln_results_sample(results, row) < opts->val_samples)
            status = finish_row(self, results, row, list + row * n_best, n_best, err);
    kiln_hypotheses_free(list, n * n_best);
    return status;
}

/* ---- The run ------------------------------------------------------------------------------- */

/* How the metrics are counted. */
static KilnStatus on_test_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    (void)err;
    for (size_t i = 0; i < opts->metrics_count; i++) {
        const KilnInstance *metric = opts->metrics[i];
        const KilnMetricOps *ops = kiln_instance_component(metric)->ops.metric;
        const char *path = kiln_instance_path(metric), *dot = strrchr(path, '.');
        char text[256];

        if (ops->signature == NULL)
            continue;
        ops->signature(metric, 1, text, sizeof(text));
        kiln_trainer_print(trainer, "test/%s is counted as %s", dot != NULL ? dot + 1 : path, text);
    }
    return KILN_OK;
}

static const KilnCallbackOps hooks = { .on_test_end = on_test_end };

static KilnStatus configure_optimizers(KilnInstance *self, KilnOptimizers *ret, KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    (void)err;
    *ret = (KilnOptimizers) {
        .n = 1, .use = { { .optimizer = opts->optimizer, .scheduler = opts->scheduler } }
    };
    return KILN_OK;
}

static const KilnModuleOps ops = {
    .models = models,
    .n_models = KILN_COUNT(models),
    .features = feeds,
    .n_features = KILN_COUNT(feeds),
    .setup = setup,
    .training_step = training_step,
    .validation_step = validation_step,
    .test_step = test_step,
    .predict_step = predict_step,
    .finish_step = finish_step,
    .configure_optimizers = configure_optimizers,
    .hooks = &hooks,
};

const KilnComponent kiln_module_translation = {
    .kind = KILN_KIND_MODULE,
    .name = "translation",
    .summary = "Translation of one sequence of tokens into another",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .check = check,
    .ops.module = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_module_translation, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
