/* Image classification: cross-entropy and metrics for any model that maps images to one logit per
 * class. */
#include "kiln.h"

typedef struct Opts {
    KilnInstance *model, *optimizer, *scheduler;
    double label_smoothing;
    KilnInstance **metrics;
    size_t metrics_count;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_COMPONENT(Opts, model, KILN_KIND_MODEL, "${model}", "the network"),
    KILN_FIELD_COMPONENT(Opts, optimizer, KILN_KIND_OPTIMIZER, "${optimizer}", "the optimizer"),
    KILN_FIELD_COMPONENT_OPT(Opts, scheduler, KILN_KIND_SCHEDULER, "${scheduler}",
                             "the learning rate schedule; null: constant"),
    KILN_FIELD_F64(Opts, label_smoothing, "0.0", 0.0, 1.0,
                   "label smoothing: this fraction of each label is spread over all classes"),
    KILN_FIELD_COMPONENT_MAP(Opts, metrics, KILN_KIND_METRIC, "{accuracy: metric/accuracy}",
                             "metrics by name, logged as train/NAME, val/NAME, test/NAME"),
    KILN_FIELD_END,
};

/* The feature `name` of that type and rank, or an error with what the data has. */
static KilnStatus need_feature(const KilnDataSpec *data, const char *name, KilnDType dtype,
                               int rank, const char *what, KilnShape *ret, KilnError *err)
{
    const KilnFeature *feature = kiln_spec_feature(data, name);
    char text[KILN_SHAPE_TEXT];

    if (feature == NULL)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "task vision needs a feature \"%s\" (%s), but the first of the "
                              "datamodule's %zu features is \"%s\"; use "
                              "a datamodule for images",
                              name, what, data->n_features,
                              data->n_features > 0 ? data->features[0].name : "");
    if (feature->dtype != dtype || feature->shape.rank != rank)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "task vision needs feature \"%s\" as %s, but the datamodule has %s "
                              "%s; use a datamodule for image "
                              "classification",
                              name, what, kiln_dtype_name(feature->dtype),
                              kiln_shape_text(&feature->shape, text, sizeof(text)));
    *ret = feature->shape;
    return KILN_OK;
}

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnDataSpec *data,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    KilnShape image, label;
    KilnStatus status = need_feature(data, "image", KILN_F32, 3, "f32 [height, width, channels]",
                                     &image, err);

    if (status == KILN_OK)
        status = need_feature(data, "label", KILN_I32, 0, "one i32 class index", &label, err);
    if (status < 0)
        return status;
    if (data->n_classes < 2)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "task vision needs at least 2 classes, but the data has %lld; check "
                              "the datamodule's folder",
                              (long long)data->n_classes);
    return kiln_model_setup(opts->model, scope, &image, data->n_classes, err);
}

/* Labels are classes, or shares of classes if a batch transform mixed them. */
static bool is_soft(const KilnTensor *label)
{
    return kiln_tensor_dtype(label) == KILN_F32;
}

/* Metrics need classes: use the one with the largest share. */
static void count(const Opts *opts, KilnStep *step, KilnTensor *logits, KilnTensor *label)
{
    unsigned flags = kiln_step_training(step) ? 0 : KILN_LOG_PROG_BAR;
    KilnTensor *class = is_soft(label) ? kiln_argmax(label) : label;

    for (size_t i = 0; i < opts->metrics_count; i++)
        kiln_step_metric(step, opts->metrics[i], logits, class, flags);
}

static KilnTensor *training_step(KilnInstance *self, KilnStep *step)
{
    const Opts *opts = kiln_opts(self);
    KilnTensor *label = kiln_step_input(step, "label");
    KilnTensor *logits = kiln_model_forward(opts->model, step, kiln_step_input(step, "image"));
    KilnCrossEntropy smoothed = { .label_smoothing = opts->label_smoothing };
    KilnTensor *loss = is_soft(label) ? kiln_cross_entropy_soft(logits, label, smoothed)
                                      : kiln_cross_entropy(logits, label, smoothed);

    kiln_step_log(step, "train/loss", loss,
                  KILN_LOG_STEP | KILN_LOG_EPOCH | KILN_LOG_PROG_BAR | KILN_LOG_LOWER_IS_BETTER);
    count(opts, step, logits, label);
    return loss;
}

/* The loss without label smoothing, for comparison between runs. */
static void evaluate(KilnInstance *self, KilnStep *step, const char *loss_name)
{
    const Opts *opts = kiln_opts(self);
    KilnTensor *label = kiln_step_input(step, "label");
    KilnTensor *logits = kiln_model_forward(opts->model, step, kiln_step_input(step, "image"));

    kiln_step_log(step, loss_name, kiln_cross_entropy(logits, label, (KilnCrossEntropy) { 0 }),
                  KILN_LOG_EPOCH | KILN_LOG_PROG_BAR | KILN_LOG_LOWER_IS_BETTER);
    count(opts, step, logits, label);
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
    KilnTensor *logits = kiln_model_forward(opts->model, step, kiln_step_input(step, "image"));

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
    .summary = "Image classification: cross-entropy, accuracy and other metrics",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.module = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_module_vision, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
