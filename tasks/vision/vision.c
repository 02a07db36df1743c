/* Image classification: a loss and metrics for any model that maps images to one logit per
 * class. */
#include "kiln.h"

typedef struct Opts {
    KilnInstance *model, *loss, *optimizer, *scheduler;
    KilnInstance **metrics;
    size_t metrics_count;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_COMPONENT(Opts, model, KILN_KIND_MODEL, "${model}", "the network"),
    KILN_FIELD_COMPONENT(Opts, optimizer, KILN_KIND_OPTIMIZER, "${optimizer}", "the optimizer"),
    KILN_FIELD_COMPONENT_OPT(Opts, scheduler, KILN_KIND_SCHEDULER, "${scheduler}",
                             "the learning rate schedule; null: constant"),
    KILN_FIELD_COMPONENT(Opts, loss, KILN_KIND_LOSS, "cross_entropy", "what training minimizes"),
    KILN_FIELD_COMPONENT_MAP(Opts, metrics, KILN_KIND_METRIC, "{accuracy: metric/accuracy}",
                             "metrics by name, logged as train/NAME, val/NAME, test/NAME"),
    KILN_FIELD_END,
};

/* What the task itself reads of the data, what it feeds the model, and what it needs of it. */
static const KilnTensorSpec reads[] = {
    { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32, .axes = "" },
};
static const KilnTensorSpec feeds[] = {
    { .name = "image", .content = KILN_IMAGE, .dtype = KILN_F32, .axes = "height width channels" },
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

    if (data->n_classes < 2)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "task vision needs at least 2 classes, but the data has %lld; check "
                              "the datamodule's folder",
                              (long long)data->n_classes);
    if (kiln_loss_setup(opts->loss, data, err) < 0)
        return err->status;
    return kiln_model_setup(opts->model, scope, models, data->features, data->n_features,
                            &data->n_classes, err);
}

/* The model's logits [batch, classes] for the batch's images. */
static KilnTensor *classify(const Opts *opts, KilnStep *step)
{
    KilnModelValue scores;

    kiln_model_forward(opts->model, step, NULL, &scores);
    return scores.tensor;
}

/* Metrics need classes: use the one with the largest share. */
static void count(const Opts *opts, KilnStep *step, KilnTensor *logits, KilnTensor *label)
{
    unsigned flags = kiln_step_training(step) ? 0 : KILN_LOG_PROG_BAR;
    KilnTensor *class = kiln_target_is_soft(label) ? kiln_argmax(label) : label;

    for (size_t i = 0; i < opts->metrics_count; i++)
        kiln_step_metric(step, opts->metrics[i], logits, class, flags);
}

static KilnTensor *training_step(KilnInstance *self, KilnStep *step)
{
    const Opts *opts = kiln_opts(self);
    KilnTensor *label = kiln_step_input(step, "label");
    KilnTensor *logits = classify(opts, step);
    KilnTensor *loss = kiln_loss(opts->loss, step, logits, label);

    kiln_step_log(step, "train/loss", loss,
                  KILN_LOG_STEP | KILN_LOG_EPOCH | KILN_LOG_PROG_BAR | KILN_LOG_LOWER_IS_BETTER);
    count(opts, step, logits, label);
    return loss;
}

static void evaluate(KilnInstance *self, KilnStep *step, const char *loss_name)
{
    const Opts *opts = kiln_opts(self);
    KilnTensor *label = kiln_step_has(step, "label") ? kiln_step_input(step, "label") : NULL;
    KilnTensor *logits = classify(opts, step);

    if (label != NULL) {
        kiln_step_log(step, loss_name, kiln_loss(opts->loss, step, logits, label),
                      KILN_LOG_EPOCH | KILN_LOG_PROG_BAR | KILN_LOG_LOWER_IS_BETTER);
        count(opts, step, logits, label);
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
    KilnTensor *logits = classify(opts, step);

    kiln_step_output(step, "probabilities", kiln_softmax(logits, -1));
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
    .features = reads,
    .n_features = KILN_COUNT(reads),
    .setup = setup,
    .training_step = training_step,
    .validation_step = validation_step,
    .test_step = test_step,
    .predict_step = predict_step,
    .configure_optimizers = configure_optimizers,
};

const KilnComponent kiln_module_vision = {
    .kind = KILN_KIND_MODULE,
    .name = "vision",
    .summary = "Image classification: a loss, accuracy and other metrics",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.module = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_module_vision, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
