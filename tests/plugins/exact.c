/* A task whose sums are exact in floating point: the mean of weight * label over batches of a power
 * of two has a gradient of few bits, so any order of adding gives the same bytes. */
#include "kiln.h"

typedef struct Opts {
    KilnInstance *optimizer;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_COMPONENT(Opts, optimizer, KILN_KIND_OPTIMIZER, "{_target_: sgd, lr: 0.0009765625}",
                         "the optimizer"),
    KILN_FIELD_END,
};

typedef struct State {
    KilnParam *weight;
} State;

static const KilnTensorSpec reads[] = {
    { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32, .axes = "" },
};

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnDataSpec *data,
                        KilnError *err)
{
    State *state = kiln_state(self);

    (void)data;
    return kiln_param_new(scope, "weight", KILN_SHAPE(1), (KilnInit) { .kind = KILN_INIT_CONSTANT },
                          &state->weight, err);
}

static KilnTensor *training_step(KilnInstance *self, KilnStep *step)
{
    const State *state = kiln_state(self);
    KilnTensor *label = kiln_to_float(kiln_step_input(step, "label"));
    KilnTensor *loss =
        kiln_mean(kiln_mul(kiln_param_tensor(state->weight, kiln_step_graph(step)), label));

    kiln_step_log(step, "train/loss", loss, KILN_LOG_EPOCH);
    return loss;
}

static KilnStatus configure_optimizers(KilnInstance *self, KilnOptimizers *ret, KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    (void)err;
    *ret = (KilnOptimizers) { .n = 1, .use = { { .optimizer = opts->optimizer } } };
    return KILN_OK;
}

static const KilnModuleOps ops = {
    .features = reads,
    .n_features = KILN_COUNT(reads),
    .setup = setup,
    .training_step = training_step,
    .configure_optimizers = configure_optimizers,
};

static const KilnComponent component = {
    .kind = KILN_KIND_MODULE,
    .name = "exact",
    .summary = "A loss whose gradients have no rounding",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .ops.module = &ops,
};

static const KilnComponent *const list[] = { &component, NULL };
KILN_PLUGIN_DEFINE(list)
