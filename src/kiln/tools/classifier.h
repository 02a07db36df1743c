/* What tasks that classify samples share: their options and steps. Such a task declares which
 * features it feeds its model, and has these functions in its table (tasks/vision/vision.c). */
#ifndef KILN_CLASSIFIER_H
#define KILN_CLASSIFIER_H

#include "kiln/module.h"

/* The options of such a task: the beginning of its options struct, and of their table. */
#define KILN_CLASSIFIER_OPTIONS                                                                    \
    KilnInstance *model, *loss, *optimizer, *scheduler;                                            \
    KilnInstance **metrics;                                                                        \
    size_t metrics_count
typedef struct KilnClassifier {
    KILN_CLASSIFIER_OPTIONS;
} KilnClassifier;

#define KILN_CLASSIFIER_FIELDS(T)                                                                  \
    KILN_FIELD_COMPONENT(T, model, KILN_KIND_MODEL, "${model}", "the network"),                    \
        KILN_FIELD_COMPONENT(T, optimizer, KILN_KIND_OPTIMIZER, "${optimizer}", "the optimizer"),  \
        KILN_FIELD_COMPONENT_OPT(T, scheduler, KILN_KIND_SCHEDULER, "${scheduler}",                \
                                 "the learning rate schedule; null: constant"),                    \
        KILN_FIELD_COMPONENT(T, loss, KILN_KIND_LOSS, "cross_entropy", "what training minimizes"), \
        KILN_FIELD_COMPONENT_MAP(T, metrics, KILN_KIND_METRIC, "{accuracy: metric/accuracy}",      \
                                 "metrics by name, logged as train/NAME, val/NAME, test/NAME")

/* What such a task reads itself: KilnModuleOps.features. */
#define KILN_CLASSIFIER_LABEL                                                                      \
    {                                                                                              \
        .name = "label", .content = KILN_LABEL, .dtype = KILN_I32, .axes = ""                      \
    }

/* Functions of KilnModuleOps. Setup matches the model with the first of its `models`, which must
 * need one value: a logit for each class, KILN_VECTOR. Prediction outputs "probabilities"
 * [batch, classes]. */
KILN_API KilnStatus kiln_classifier_setup(KilnInstance *self, const KilnScope *scope,
                                          const KilnDataSpec *data, KilnError *err);
KILN_API KilnTensor *kiln_classifier_training_step(KilnInstance *self, KilnStep *step);
KILN_API void kiln_classifier_validation_step(KilnInstance *self, KilnStep *step);
KILN_API void kiln_classifier_test_step(KilnInstance *self, KilnStep *step);
KILN_API void kiln_classifier_predict_step(KilnInstance *self, KilnStep *step);
/* What the test step does with the logits [batch, classes] of the batch, for tasks that compute
 * them in another way: loss, metrics, the output "logits". */
KILN_API void kiln_classifier_test_logits(KilnInstance *self, KilnStep *step, KilnTensor *logits);
KILN_API KilnStatus kiln_classifier_configure_optimizers(KilnInstance *self, KilnOptimizers *ret,
                                                         KilnError *err);

#endif
