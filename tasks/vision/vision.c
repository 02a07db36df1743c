/* Image classification: a loss and metrics for any model that maps images to one logit per
 * class. */
#include "kiln.h"
#include "kiln/tools/classifier.h"

static const KilnField fields[] = {
    KILN_CLASSIFIER_FIELDS(KilnClassifier),
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

static const KilnModuleOps ops = {
    .models = models,
    .n_models = KILN_COUNT(models),
    .features = reads,
    .n_features = KILN_COUNT(reads),
    .setup = kiln_classifier_setup,
    .training_step = kiln_classifier_training_step,
    .validation_step = kiln_classifier_validation_step,
    .test_step = kiln_classifier_test_step,
    .predict_step = kiln_classifier_predict_step,
    .configure_optimizers = kiln_classifier_configure_optimizers,
};

const KilnComponent kiln_module_vision = {
    .kind = KILN_KIND_MODULE,
    .name = "vision",
    .summary = "Image classification: a loss, accuracy and other metrics",
    KILN_FIELDS(fields),
    .opts_size = sizeof(KilnClassifier),
    .ops.module = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_module_vision, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
