/* Classification of samples with any number of labels: each label is decided by itself, with the
 * sigmoid of its logit. */
#include "kiln.h"
#include "kiln/tools/classifier.h"

#include <math.h>

typedef struct Opts {
    KILN_CLASSIFIER_OPTIONS; /* whose functions read them */
    char *monitor;
    double threshold;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_COMPONENT(Opts, model, KILN_KIND_MODEL, "${model}", "the network"),
    KILN_FIELD_COMPONENT(Opts, optimizer, KILN_KIND_OPTIMIZER, "${optimizer}", "the optimizer"),
    KILN_FIELD_COMPONENT_OPT(Opts, scheduler, KILN_KIND_SCHEDULER, "${scheduler}",
                             "the learning rate schedule; null: constant"),
    KILN_FIELD_COMPONENT(Opts, loss, KILN_KIND_LOSS, "binary_cross_entropy",
                         "what training minimizes"),
    KILN_FIELD_COMPONENT_MAP(
        Opts, metrics, KILN_KIND_METRIC,
        "{accuracy: metric/accuracy, micro_f1: {_target_: metric/f1, average: micro}, "
        "macro_f1: {_target_: metric/f1, average: macro}}",
        "metrics by name, logged as train/NAME, val/NAME, test/NAME"),
    KILN_FIELD_MONITOR(Opts, "val/micro_f1"),
    KILN_FIELD_F64(Opts, threshold, "0.5", 1e-6, 0.999999,
                   "a sample gets the labels with at least this probability"),
    KILN_FIELD_END,
};

/* What the task itself reads of the data, what it feeds the model, and what it needs of it. */
static const KilnTensorSpec reads[] = {
    { .name = "labels", .content = KILN_LABEL, .dtype = KILN_F32, .axes = "classes" },
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
    { .name = "logits", .content = KILN_VECTOR, .dtype = KILN_F32, .axes = "classes" },
};

static const KilnModelUse models[] = {
    { .option = "model",
      .feeds = feeds,
      .n_feeds = KILN_COUNT(feeds),
      .needs = needs,
      .n_needs = KILN_COUNT(needs) },
};

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnDataSpec *data,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    if (data->n_classes < 2 || kiln_spec_labels(data) == NULL)
        return kiln_error_set(
            err, KILN_E_SHAPE,
            "task multilabel_classification needs at least 2 labels, but the data "
            "has %lld",
            (long long)data->n_classes);
    if (kiln_loss_setup(opts->loss, data, err) < 0)
        return err->status;
    return kiln_model_setup(opts->model, scope, &models[0], data->features, data->n_features,
                            &data->n_classes, err);
}

static KilnTensor *classify(const Opts *opts, KilnStep *step)
{
    KilnModelValue scores;

    kiln_model_forward(opts->model, step, NULL, &scores);
    return scores.tensor;
}

/* The logit of the threshold. */
static double threshold(const Opts *opts)
{
    return log(opts->threshold / (1.0 - opts->threshold));
}

/* Metrics take scores above 0 for labels, so that the threshold has to be there. */
static void count(const Opts *opts, KilnStep *step, KilnTensor *logits, KilnTensor *labels)
{
    const unsigned flags = kiln_step_training(step) ? 0 : KILN_LOG_PROG_BAR;
    KilnTensor *scores = opts->threshold == 0.5 ? logits : kiln_shift(logits, -threshold(opts));

    for (size_t i = 0; i < opts->metrics_count; i++)
        kiln_step_metric(step, opts->metrics[i], scores, labels, flags);
}

static KilnTensor *training_step(KilnInstance *self, KilnStep *step)
{
    const Opts *opts = kiln_opts(self);
    KilnTensor *labels = kiln_step_input(step, "labels");
    KilnTensor *logits = classify(opts, step);
    KilnTensor *loss = kiln_loss(opts->loss, step, logits, labels);

    kiln_step_log(step, "train/loss", loss,
                  KILN_LOG_STEP | KILN_LOG_EPOCH | KILN_LOG_PROG_BAR | KILN_LOG_LOWER_IS_BETTER);
    count(opts, step, logits, labels);
    return loss;
}

/* The probabilities, and 1 for the labels that a sample gets, else 0. */
static void put_outputs(const Opts *opts, KilnStep *step, KilnTensor *logits)
{
    KilnTensor *probabilities = kiln_sigmoid(logits);
    KilnTensor *least = kiln_arange(kiln_step_graph(step), kiln_tensor_dtype(logits),
                                    opts->threshold, 0.0, 1);

    kiln_step_output(step, "labels", kiln_ge(probabilities, least));
    kiln_step_output(step, "probabilities", probabilities);
}

static void evaluate(KilnInstance *self, KilnStep *step, const char *loss_name)
{
    const Opts *opts = kiln_opts(self);
    KilnTensor *labels = kiln_step_has(step, "labels") ? kiln_step_input(step, "labels") : NULL;
    KilnTensor *logits = classify(opts, step);

    if (labels != NULL) {
        kiln_step_log(step, loss_name, kiln_loss(opts->loss, step, logits, labels),
                      KILN_LOG_EPOCH | KILN_LOG_PROG_BAR | KILN_LOG_LOWER_IS_BETTER);
        count(opts, step, logits, labels);
    }
    kiln_step_output(step, "logits", logits);
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
    const Opts *opts = kiln_opts(self);

    put_outputs(opts, step, classify(opts, step));
}

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
    .configure_optimizers = kiln_classifier_configure_optimizers,
};

const KilnComponent kiln_module_multilabel_classification = {
    .kind = KILN_KIND_MODULE,
    .name = "multilabel_classification",
    .summary = "Classification of samples with any number of labels",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.module = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_module_multilabel_classification, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
