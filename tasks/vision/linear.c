/* One linear layer on the flattened sample: multinomial logistic regression. */
#include "kiln.h"

typedef struct State {
    KilnLinear fc;
} State;

/* Any sample of one shape, as a flat list of numbers. */
static const KilnTensorSpec takes[] = {
    { .name = "x",
      .content = KILN_IMAGE | KILN_ROW | KILN_VECTOR | KILN_SEQUENCE | KILN_MAP,
      .dtype = KILN_F32 },
};

static const KilnTensorSpec gives[] = {
    { .name = "logits", .content = KILN_VECTOR, .dtype = KILN_F32, .axes = "classes" },
};

static const KilnSignature signature = KILN_SIGNATURE(takes, gives);

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                        KilnError *err)
{
    State *state = kiln_state(self);

    return kiln_nn_linear_init(&state->fc, scope, "fc", kiln_shape_count(&io->inputs[0].shape),
                               io->outputs[0].shape.dim[0], true, err);
}

static void forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs)
{
    const State *state = kiln_state(self);

    (void)step;
    outputs[0].tensor = kiln_nn_linear(&state->fc, kiln_flatten(inputs[0].tensor));
}

static const KilnModelOps ops = { .signature = &signature, .setup = setup, .forward = forward };

const KilnComponent kiln_model_linear = {
    .kind = KILN_KIND_MODEL,
    .name = "linear",
    .summary = "One linear layer on the flattened sample",
    .state_size = sizeof(State),
    .ops.model = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_model_linear, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
