/* Semantic segmentation: a loss and metrics over pixels for any model that maps images to a logit
 * of each class for each pixel. */
#include "kiln.h"
#include "kiln/images/test_views.h"

typedef struct Opts {
    KilnInstance *model, *loss, *optimizer, *scheduler;
    KilnInstance **metrics;
    size_t metrics_count;
    char *monitor;
    int64_t test_augmentation;
} Opts;

/* Pixels keep their places in these. */
static const KilnChoice augmentations[] = { { "none", KILN_TEST_NONE },
                                            { "flip", KILN_TEST_FLIP },
                                            { NULL, 0 } };

/* Pixels without class have KILN_MASK_IGNORED. */
static const char default_metrics[] =
    "{iou: {_target_: metric/iou, ignore_index: -100, per_class: true}, "
    "accuracy: {_target_: metric/accuracy, ignore_index: -100}}";

static const KilnField fields[] = {
    KILN_FIELD_COMPONENT(Opts, model, KILN_KIND_MODEL, "${model}", "the network"),
    KILN_FIELD_COMPONENT(Opts, optimizer, KILN_KIND_OPTIMIZER, "${optimizer}", "the optimizer"),
    KILN_FIELD_COMPONENT_OPT(Opts, scheduler, KILN_KIND_SCHEDULER, "${scheduler}",
                             "the learning rate schedule; null: constant"),
    KILN_FIELD_COMPONENT(Opts, loss, KILN_KIND_LOSS, "cross_entropy",
                         "what training minimizes, over the pixels that have a class"),
    KILN_FIELD_COMPONENT_MAP(Opts, metrics, KILN_KIND_METRIC, default_metrics,
                             "metrics of pixels by name, logged as train/NAME, val/NAME, "
                             "test/NAME; ignore_index=-100 leaves out pixels without class"),
    KILN_FIELD_MONITOR(Opts, "val/iou"),
    KILN_FIELD_ENUM(Opts, test_augmentation, "none", augmentations,
                    "views of an image whose mean probabilities test and predict give; flip: it "
                    "and its mirror image"),
    KILN_FIELD_END,
};

static const KilnTensorSpec reads[] = {
    { .name = "mask", .content = KILN_LABEL, .dtype = KILN_I32, .axes = "height width" },
};
static const KilnTensorSpec feeds[] = {
    { .name = "image", .content = KILN_IMAGE, .dtype = KILN_F32, .axes = "height width channels" },
};
static const KilnTensorSpec needs[] = {
    { .name = "logits", .content = KILN_MAP, .dtype = KILN_F32, .axes = "height width classes" },
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
                              "task segmentation needs at least 2 classes, but the data has %lld",
                              (long long)data->n_classes);
    if (kiln_loss_setup(opts->loss, data, err) < 0)
        return err->status;
    KilnStatus status = kiln_model_setup(opts->model, scope, models, data->features,
                                         data->n_features, &data->n_classes, err);
    if (status < 0)
        return status;
    KilnTestViews *views = kiln_state(self);
    views->augmentation = (KilnTestAugmentation)opts->test_augmentation;
    status = kiln_test_views_setup(views, opts->model, data, err);
    if (status < 0)
        return status;
    const KilnFeature *mask = kiln_spec_feature(data, "mask");
    const KilnShape logits = kiln_model_need_shape(opts->model, 0);
    if (mask != NULL &&
        (mask->shape.dim[0] != logits.dim[0] || mask->shape.dim[1] != logits.dim[1]))
        return kiln_error_set(err, KILN_E_SHAPE,
                              "the model gives logits of %lld×%lld pixels, but masks have "
                              "%lld×%lld",
                              (long long)logits.dim[0], (long long)logits.dim[1],
                              (long long)mask->shape.dim[0], (long long)mask->shape.dim[1]);
    return KILN_OK;
}

/* The logits [batch, height, width, classes] of the batch. */
static KilnTensor *segment(const Opts *opts, KilnStep *step)
{
    KilnModelValue scores;

    kiln_model_forward(opts->model, step, NULL, &scores);
    return scores.tensor;
}

/* The same of a test: the mean over the image and its mirror image, if the options say so. */
static KilnTensor *segment_views(KilnInstance *self, KilnStep *step)
{
    enum { WIDTH = 2 };
    const Opts *opts = kiln_opts(self);
    const KilnTestViews *views = kiln_state(self);
    KilnTensor *images[KILN_TEST_VIEWS], *logits[KILN_TEST_VIEWS];

    if (views->augmentation == KILN_TEST_NONE)
        return segment(opts, step);
    const int n = kiln_test_views(views, kiln_step_input(step, views->image), images);
    for (int i = 0; i < n; i++) {
        logits[i] = kiln_test_views_forward(views, opts->model, step, images[i]);
        if (i == 1)
            logits[i] = kiln_flip(logits[i], WIDTH);
    }
    return kiln_test_views_mean(logits, n);
}

static void count(const Opts *opts, KilnStep *step, KilnTensor *logits, KilnTensor *mask)
{
    unsigned flags = kiln_step_training(step) ? 0 : KILN_LOG_PROG_BAR;

    for (size_t i = 0; i < opts->metrics_count; i++)
        kiln_step_metric(step, opts->metrics[i], logits, mask, flags);
}

static KilnTensor *training_step(KilnInstance *self, KilnStep *step)
{
    const Opts *opts = kiln_opts(self);
    KilnTensor *mask = kiln_step_input(step, "mask");
    KilnTensor *logits = segment(opts, step);
    KilnTensor *loss = kiln_loss(opts->loss, step, logits, mask);

    kiln_step_log(step, "train/loss", loss,
                  KILN_LOG_STEP | KILN_LOG_EPOCH | KILN_LOG_PROG_BAR | KILN_LOG_LOWER_IS_BETTER);
    count(opts, step, logits, mask);
    return loss;
}

/* The class of each pixel [batch, height, width], as floats. */
static void output_classes(KilnStep *step, KilnTensor *logits)
{
    kiln_step_output(step, "classes", kiln_to_float(kiln_argmax(logits)));
}

static void evaluate(KilnInstance *self, KilnStep *step, KilnTensor *logits, const char *loss_name)
{
    const Opts *opts = kiln_opts(self);

    if (kiln_step_has(step, "mask")) {
        KilnTensor *mask = kiln_step_input(step, "mask");

        kiln_step_log(step, loss_name, kiln_loss(opts->loss, step, logits, mask),
                      KILN_LOG_EPOCH | KILN_LOG_PROG_BAR | KILN_LOG_LOWER_IS_BETTER);
        count(opts, step, logits, mask);
    }
    output_classes(step, logits);
}

static void validation_step(KilnInstance *self, KilnStep *step)
{
    evaluate(self, step, segment(kiln_opts(self), step), "val/loss");
}

static void test_step(KilnInstance *self, KilnStep *step)
{
    evaluate(self, step, segment_views(self, step), "test/loss");
}

static void predict_step(KilnInstance *self, KilnStep *step)
{
    output_classes(step, segment_views(self, step));
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

const KilnComponent kiln_module_segmentation = {
    .kind = KILN_KIND_MODULE,
    .name = "segmentation",
    .summary = "Semantic segmentation: a loss, IoU and other metrics over pixels",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(KilnTestViews),
    .ops.module = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_module_segmentation, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
