/* The steps of tasks that classify samples. */
#include "kiln/tools/classifier.h"

#include "kiln/loss.h"
#include "kiln/ops.h"
#include "registry/instance.h"

KilnStatus kiln_classifier_setup(KilnInstance *self, const KilnScope *scope,
                                 const KilnDataSpec *data, KilnError *err)
{
    const KilnClassifier *opts = kiln_opts(self);
    const KilnModuleOps *ops = kiln_instance_component(self)->ops.module;

    if (data->n_classes < 2)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "task %s needs at least 2 classes, but the data has %lld; check the "
                              "labels of the training split",
                              kiln_instance_name(self), (long long)data->n_classes);
    if (kiln_loss_setup(opts->loss, data, err) < 0)
        return err->status;
    return kiln_model_setup(opts->model, scope, ops->models, data->features, data->n_features,
                            &data->n_classes, err);
}

/* The model's logits [batch, classes] of the batch. */
static KilnTensor *classify(const KilnClassifier *opts, KilnStep *step)
{
    KilnModelValue scores;

    kiln_model_forward(opts->model, step, NULL, &scores);
    return scores.tensor;
}

/* Metrics need classes: use the one with the largest share. */
static void count(const KilnClassifier *opts, KilnStep *step, KilnTensor *logits, KilnTensor *label)
{
    unsigned flags = kiln_step_training(step) ? 0 : KILN_LOG_PROG_BAR;
    KilnTensor *class = kiln_target_is_soft(label) ? kiln_argmax(label) : label;

    for (size_t i = 0; i < opts->metrics_count; i++)
        kiln_step_metric(step, opts->metrics[i], logits, class, flags);
}

KilnTensor *kiln_classifier_training_step(KilnInstance *self, KilnStep *step)
{
    const KilnClassifier *opts = kiln_opts(self);
    KilnTensor *label = kiln_step_input(step, "label");
    KilnTensor *logits = classify(opts, step);
    KilnTensor *loss = kiln_loss(opts->loss, step, logits, label);

    kiln_step_log(step, "train/loss", loss,
                  KILN_LOG_STEP | KILN_LOG_EPOCH | KILN_LOG_PROG_BAR | KILN_LOG_LOWER_IS_BETTER);
    count(opts, step, logits, label);
    return loss;
}

static void evaluate(KilnInstance *self, KilnStep *step, KilnTensor *logits, const char *loss_name)
{
    const KilnClassifier *opts = kiln_opts(self);
    KilnTensor *label = kiln_step_has(step, "label") ? kiln_step_input(step, "label") : NULL;

    if (label != NULL) {
        kiln_step_log(step, loss_name, kiln_loss(opts->loss, step, logits, label),
                      KILN_LOG_EPOCH | KILN_LOG_PROG_BAR | KILN_LOG_LOWER_IS_BETTER);
        count(opts, step, logits, label);
    }
    kiln_step_output(step, "logits", logits);
}

void kiln_classifier_validation_step(KilnInstance *self, KilnStep *step)
{
    evaluate(self, step, classify(kiln_opts(self), step), "val/loss");
}

void kiln_classifier_test_step(KilnInstance *self, KilnStep *step)
{
    evaluate(self, step, classify(kiln_opts(self), step), "test/loss");
}

void kiln_classifier_test_logits(KilnInstance *self, KilnStep *step, KilnTensor *logits)
{
    evaluate(self, step, logits, "test/loss");
}

void kiln_classifier_predict_step(KilnInstance *self, KilnStep *step)
{
    const KilnClassifier *opts = kiln_opts(self);
    KilnTensor *logits = classify(opts, step);

    kiln_step_output(step, "probabilities", kiln_softmax(logits, -1));
}

KilnStatus kiln_classifier_configure_optimizers(KilnInstance *self, KilnOptimizers *ret,
                                                KilnError *err)
{
    const KilnClassifier *opts = kiln_opts(self);

    (void)err;
    *ret = (KilnOptimizers) {
        .n = 1, .use = { { .optimizer = opts->optimizer, .scheduler = opts->scheduler } }
    };
    return KILN_OK;
}
