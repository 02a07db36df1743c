/* Classification of any samples: vectors, rows of a table, sequences, tokens, images. */
#include "kiln.h"
#include "kiln/tools/classifier.h"

typedef struct Opts {
    KILN_CLASSIFIER_OPTIONS;
    char *monitor;
} Opts;

static const KilnField fields[] = {
    KILN_CLASSIFIER_FIELDS(Opts),
    KILN_FIELD_MONITOR(Opts, "val/accuracy"),
    KILN_FIELD_END,
};

/* What the task itself reads of the data, what it feeds the model, and what it needs of it. */
static const KilnTensorSpec reads[] = { KILN_CLASSIFIER_LABEL };
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

const KilnComponent kiln_module_classification = {
    .kind = KILN_KIND_MODULE,
    .name = "classification",
    .summary = "Classification of vectors, rows, sequences, tokens or images",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.module = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_module_classification, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
