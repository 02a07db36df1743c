/* Image classification: a loss and metrics for any model that maps images to one logit per
 * class. */
#include "kiln.h"
#include "kiln/tools/classifier.h"
#include "kiln/images/test_views.h"

typedef struct Opts {
    KILN_CLASSIFIER_OPTIONS;
    char *monitor;
    KILN_TEST_VIEWS_OPTIONS;
} Opts;

static const KilnField fields[] = {
    KILN_CLASSIFIER_FIELDS(Opts),
    KILN_FIELD_MONITOR(Opts, "val/accuracy"),
    KILN_TEST_VIEWS_FIELDS(Opts),
    KILN_FIELD_RENAMED("label_smoothing", "loss.label_smoothing", "losses are components"),
    KILN_FIELD_END,
};

/* What the task itself reads of the data, what it feeds the model, and what it needs of it. */
static const KilnTensorSpec reads[] = { KILN_CLASSIFIER_LABEL };
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
    KilnTestViews *views = kiln_state(self);
    KilnStatus status = kiln_classifier_setup(self, scope, data, err);

    *views = KILN_TEST_VIEWS_OF(opts);
    return status >= 0 ? kiln_test_views_setup(views, opts->model, data, err) : status;
}

/* Logits [batch, classes] whose probabilities are the mean over the views of an image. */
static KilnTensor *classify(KilnInstance *self, KilnStep *step)
{
    const Opts *opts = kiln_opts(self);
    const KilnTestViews *views = kiln_state(self);
    KilnTensor *images[KILN_TEST_VIEWS], *logits[KILN_TEST_VIEWS];
    const int n = kiln_test_views(views, kiln_step_input(step, views->image), images);

    for (int i = 0; i < n; i++)
        logits[i] = kiln_test_views_forward(views, opts->model, step, images[i]);
    return kiln_test_views_mean(logits, n);
}

static bool augments(KilnInstance *self)
{
    return ((const KilnTestViews *)kiln_state(self))->augmentation != KILN_TEST_NONE;
}

static void test_step(KilnInstance *self, KilnStep *step)
{
    if (augments(self))
        kiln_classifier_test_logits(self, step, classify(self, step));
    else
        kiln_classifier_test_step(self, step);
}

static void predict_step(KilnInstance *self, KilnStep *step)
{
    if (augments(self))
        kiln_step_output(step, "probabilities", kiln_softmax(classify(self, step), -1));
    else
        kiln_classifier_predict_step(self, step);
}

static const KilnModuleOps ops = {
    .models = models,
    .n_models = KILN_COUNT(models),
    .features = reads,
    .n_features = KILN_COUNT(reads),
    .setup = setup,
    .training_step = kiln_classifier_training_step,
    .validation_step = kiln_classifier_validation_step,
    .test_step = test_step,
    .predict_step = predict_step,
    .configure_optimizers = kiln_classifier_configure_optimizers,
};

const KilnComponent kiln_module_vision = {
    .kind = KILN_KIND_MODULE,
    .name = "vision",
    .summary = "Image classification: a loss, accuracy and other metrics",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(KilnTestViews),
    .ops.module = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_module_vision, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
