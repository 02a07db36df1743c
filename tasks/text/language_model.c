/* Language modelling: each token of a sequence is predicted from those before it. The loss is the
 * mean cross-entropy of the next token, in nats. */
#include "kiln.h"

typedef struct Opts {
    KilnInstance *model, *optimizer, *scheduler;
    KilnInstance **metrics;
    size_t metrics_count;
    char *monitor;
    double label_smoothing;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_COMPONENT(Opts, model, KILN_KIND_MODEL, "${model}", "the network"),
    KILN_FIELD_COMPONENT(Opts, optimizer, KILN_KIND_OPTIMIZER, "${optimizer}", "the optimizer"),
    KILN_FIELD_COMPONENT_OPT(Opts, scheduler, KILN_KIND_SCHEDULER, "${scheduler}",
                             "the learning rate schedule; null: constant"),
    KILN_FIELD_COMPONENT_MAP(Opts, metrics, KILN_KIND_METRIC,
                             "{perplexity: {_target_: metric/perplexity, ignore_index: -100}}",
                             "metrics of validation and test by name, logged as val/NAME, "
                             "test/NAME; padding has the label -100"),
    KILN_FIELD_MONITOR(Opts, "val/loss"),
    KILN_FIELD_F64(Opts, label_smoothing, "0.0", 0.0, 0.99,
                   "share of the target that is spread over all tokens, in training"),
    KILN_FIELD_END,
};

enum { IGNORED = -100 }; /* the target of padding */

/* What it reads of the data, and feeds the model but for the last token of each sample. Positions:
 * of tokens in their documents, where samples have several that are to be kept apart. */
enum { TOKENS, POSITIONS, FEEDS };
static const KilnTensorSpec feeds[FEEDS] = {
    { .name = "tokens", .content = KILN_TOKENS, .dtype = KILN_I32, .axes = "time", .varies = true },
    { .name = "positions",
      .content = KILN_TOKENS,
      .dtype = KILN_I32,
      .axes = "time",
      .varies = true,
      .optional = true },
};
static const KilnTensorSpec logits_spec = {
    .name = "token_logits", .content = KILN_SEQUENCE, .dtype = KILN_F32, .axes = "time classes"
};

static const KilnModelUse models[] = {
    { .option = "model",
      .feeds = feeds,
      .n_feeds = FEEDS,
      .own = true,
      .needs = &logits_spec,
      .n_needs = 1 },
};

/* The model reads all tokens of a sample but the last, which is only predicted. */
static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnDataSpec *data,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const KilnFeature *positions = kiln_spec_feature(data, "positions");
    KilnFeature read[FEEDS] = { [TOKENS] = *kiln_spec_feature(data, "tokens") };
    const KilnFeature *tokens = &read[TOKENS];

    if (tokens->shape.dim[0] < 2 || tokens->n_ids < 1)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "task language_model needs samples of at least 2 tokens and the "
                              "number of token ids, but feature \"tokens\" has %lld tokens of "
                              "%lld ids",
                              (long long)tokens->shape.dim[0], (long long)tokens->n_ids);
    read[TOKENS].shape.dim[0]--;
    if (positions != NULL) {
        read[POSITIONS] = *positions;
        read[POSITIONS].shape.dim[0]--;
    }
    KilnStatus status = kiln_model_setup(opts->model, scope, models, read,
                                         positions != NULL ? FEEDS : POSITIONS, &tokens->n_ids,
                                         err);
    if (status >= 0 && positions != NULL && !kiln_model_takes(opts->model, "positions"))
        status = kiln_error_set(err, KILN_E_SHAPE,
                                "the data keep documents apart (datamodule.document_mask), but the "
                                "model does not take \"positions\"; use one that does, such as "
                                "model/gpt, or document_mask=false");
    return status;
}

/* The logits of what follows each of the tokens; positions NULL: from 0 on. */
static KilnTensor *logits_of(const Opts *opts, KilnStep *step, KilnTensor *tokens,
                             KilnTensor *positions)
{
    KilnTensor *lengths = kiln_step_lengths(step, "tokens");
    const KilnModelValue values[FEEDS] = { { tokens, lengths }, { positions, lengths } };
    KilnModelValue logits;

    kiln_model_forward(opts->model, step, values, &logits);
    return logits.tensor;
}

static KilnTensor *all_but_last(KilnTensor *x)
{
    return kiln_narrow(x, 1, 0, kiln_tensor_dim(x, 1) - 1);
}

/* The next token of each place; IGNORED where the sample has ended, and where another document
 * begins. */
static KilnTensor *next_tokens(KilnStep *step, KilnTensor *tokens)
{
    const int64_t batch = kiln_tensor_dim(tokens, 0), places = kiln_tensor_dim(tokens, 1) - 1;
    KilnTensor *next = kiln_narrow(tokens, 1, 1, places);
    KilnTensor *last = kiln_shift(kiln_to_float(kiln_step_lengths(step, "tokens")), -1.0);
    KilnTensor *place = kiln_arange(kiln_step_graph(step), kiln_tensor_dtype(last), 0.0, 1.0,
                                    places);
    KilnTensor *ended = kiln_ge(place, kiln_reshape(last, KILN_SHAPE(batch, 1)));

    next = kiln_masked_fill(kiln_to_float(next), ended, IGNORED);
    if (kiln_step_has(step, "positions")) {
        KilnTensor *position = kiln_narrow(kiln_step_input(step, "positions"), 1, 1, places);
        KilnTensor *begins =
            kiln_lt(kiln_to_float(position),
                    kiln_arange(kiln_step_graph(step), kiln_tensor_dtype(last), 0.5, 0.0, places));

        next = kiln_masked_fill(next, begins, IGNORED);
    }
    return kiln_cast(next, KILN_I32);
}

/* Of the batch: the logits of each next token, and the tokens. */
static KilnTensor *predict_next(KilnInstance *self, KilnStep *step, KilnTensor **ret_next)
{
    const Opts *opts = kiln_opts(self);
    KilnTensor *tokens = kiln_step_input(step, "tokens");
    KilnTensor *positions = kiln_step_has(step, "positions") ? kiln_step_input(step, "positions")
                                                             : NULL;

    *ret_next = next_tokens(step, tokens);
    return logits_of(opts, step, all_but_last(tokens),
                     positions != NULL ? all_but_last(positions) : NULL);
}

static KilnTensor *training_step(KilnInstance *self, KilnStep *step)
{
    const Opts *opts = kiln_opts(self);
    KilnTensor *next, *logits = predict_next(self, step, &next);
    KilnTensor *loss = kiln_cross_entropy(
        logits, next, (KilnCrossEntropy) { .label_smoothing = opts->label_smoothing });

    kiln_step_log(step, "train/loss", loss,
                  KILN_LOG_STEP | KILN_LOG_EPOCH | KILN_LOG_PROG_BAR | KILN_LOG_LOWER_IS_BETTER);
    return loss;
}

static void evaluate(KilnInstance *self, KilnStep *step, const char *name)
{
    const Opts *opts = kiln_opts(self);
    KilnTensor *next, *logits = predict_next(self, step, &next);

    kiln_step_log(step, name, kiln_cross_entropy(logits, next, (KilnCrossEntropy) { 0 }),
                  KILN_LOG_EPOCH | KILN_LOG_PROG_BAR | KILN_LOG_LOWER_IS_BETTER);
    for (size_t i = 0; i < opts->metrics_count; i++)
        kiln_step_metric(step, opts->metrics[i], logits, next, KILN_LOG_PROG_BAR);
}

static void validation_step(KilnInstance *self, KilnStep *step)
{
    evaluate(self, step, "val/loss");
}

static void test_step(KilnInstance *self, KilnStep *step)
{
    evaluate(self, step, "test/loss");
}

/* Of each text: the mean of -log of its tokens' probabilities, and exp of that. */
static void predict_step(KilnInstance *self, KilnStep *step)
{
    const int time[] = { 1 };
    KilnTensor *next, *logits = predict_next(self, step, &next);
    KilnTensor *nll = kiln_cross_entropy(logits, next,
                                         (KilnCrossEntropy) { .reduction = KILN_REDUCTION_NONE });
    KilnTensor *count = kiln_shift(kiln_to_float(kiln_step_lengths(step, "tokens")), -1.0);
    KilnTensor *loss = kiln_div(kiln_sum_axes(nll, time, 1, false), count);

    kiln_step_output(step, "loss", loss);
    kiln_step_output(step, "perplexity", kiln_exp(loss));
}

static void generate_step(KilnInstance *self, KilnStep *step)
{
    kiln_step_output(step, "logits",
                     logits_of(kiln_opts(self), step, kiln_step_input(step, "tokens"), NULL));
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

static const KilnModuleOps ops = {
    .models = models,
    .n_models = KILN_COUNT(models),
    .features = feeds,
    .n_features = FEEDS,
    .setup = setup,
    .training_step = training_step,
    .validation_step = validation_step,
    .test_step = test_step,
    .predict_step = predict_step,
    .generate_step = generate_step,
    .configure_optimizers = configure_optimizers,
};

const KilnComponent kiln_module_language_model = {
    .kind = KILN_KIND_MODULE,
    .name = "language_model",
    .summary = "Language models: the next token from those before it",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.module = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_module_language_model, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
