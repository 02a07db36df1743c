#include "tests/support/components/plane_task.h"

const KilnField plane_fields[] = {
    KILN_FIELD_COMPONENT(PlaneOpts, optimizer, KILN_KIND_OPTIMIZER, NULL, "optimizer"),
    KILN_FIELD_COMPONENT_OPT(PlaneOpts, scheduler, KILN_KIND_SCHEDULER, "null", "scheduler"),
    KILN_FIELD_COMPONENT_MAP(PlaneOpts, metrics, KILN_KIND_METRIC,
                             "{accuracy: accuracy, area: auroc}", "metrics"),
    KILN_FIELD_I64(PlaneOpts, hidden, "6", 1, 100, "width"),
    KILN_FIELD_BOOL(PlaneOpts, misfit, "false", "make a step whose shapes do not fit"),
    KILN_FIELD_END,
};

KilnStatus plane_setup(KilnInstance *self, const KilnScope *scope, const KilnDataSpec *data,
                       KilnError *err)
{
    const PlaneOpts *opts = kiln_opts(self);
    PlaneState *state = kiln_state(self);
    KilnStatus status = kiln_nn_linear_init(&state->hidden, scope, "hidden", 2, opts->hidden, true,
                                            err);

    if (status >= 0)
        status = kiln_nn_linear_init(&state->out, scope, "out", opts->hidden, data->n_classes, true,
                                     err);
    return status;
}

KilnTensor *plane_forward(KilnInstance *self, KilnStep *step)
{
    const PlaneOpts *opts = kiln_opts(self);
    PlaneState *state = kiln_state(self);
    KilnTensor *x = kiln_step_input(step, opts->misfit ? "label" : "x");

    x = kiln_relu(kiln_nn_linear(&state->hidden, x));
    if (kiln_step_training(step))
        x = kiln_dropout(x, 0.1, kiln_step_dropout_key(step), kiln_step_stream(step));
    return kiln_nn_linear(&state->out, x);
}

static void plane_log(KilnInstance *self, KilnStep *step, KilnTensor *logits, KilnTensor *loss,
                      const char *loss_name, unsigned flags)
{
    const PlaneOpts *opts = kiln_opts(self);

    kiln_step_log(step, loss_name, loss, flags);
    for (size_t i = 0; i < opts->metrics_count; i++)
        kiln_step_metric(step, opts->metrics[i], logits, kiln_step_input(step, "label"), 0);
}

KilnTensor *plane_train(KilnInstance *self, KilnStep *step)
{
    KilnTensor *logits = plane_forward(self, step);
    KilnTensor *loss = kiln_cross_entropy(logits, kiln_step_input(step, "label"),
                                          (KilnCrossEntropy) { 0 });

    plane_log(self, step, logits, loss, "train/loss",
              KILN_LOG_STEP | KILN_LOG_EPOCH | KILN_LOG_LOWER_IS_BETTER);
    return loss;
}

void plane_validate(KilnInstance *self, KilnStep *step)
{
    KilnTensor *logits = plane_forward(self, step);

    plane_log(self, step, logits,
              kiln_cross_entropy(logits, kiln_step_input(step, "label"), (KilnCrossEntropy) { 0 }),
              "val/loss", KILN_LOG_LOWER_IS_BETTER);
}

void plane_test(KilnInstance *self, KilnStep *step)
{
    KilnTensor *logits = plane_forward(self, step);

    plane_log(self, step, logits,
              kiln_cross_entropy(logits, kiln_step_input(step, "label"), (KilnCrossEntropy) { 0 }),
              "test/loss", KILN_LOG_LOWER_IS_BETTER);
}

void plane_predict(KilnInstance *self, KilnStep *step)
{
    kiln_step_output(step, "probabilities", kiln_softmax(plane_forward(self, step), -1));
}

KilnStatus plane_optimizers(KilnInstance *self, KilnOptimizers *ret, KilnError *err)
{
    const PlaneOpts *opts = kiln_opts(self);

    (void)err;
    *ret = (KilnOptimizers) {
        .n = 1, .use = { { .optimizer = opts->optimizer, .scheduler = opts->scheduler } }
    };
    return KILN_OK;
}

static const KilnModuleOps plane_ops = {
    .setup = plane_setup,
    .training_step = plane_train,
    .validation_step = plane_validate,
    .test_step = plane_test,
    .predict_step = plane_predict,
    .configure_optimizers = plane_optimizers,
};

const KilnComponent plane_component = {
    .kind = KILN_KIND_MODULE,
    .name = "test_plane",
    .summary = "Which side of a line",
    KILN_FIELDS(plane_fields),
    .opts_size = sizeof(PlaneOpts),
    .state_size = sizeof(PlaneState),
    .ops.module = &plane_ops,
};
