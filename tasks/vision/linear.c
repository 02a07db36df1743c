/* One linear layer on the flattened sample: multinomial logistic regression. */
#include "kiln.h"

typedef struct State {
    KilnLinear fc;
} State;

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnShape *in,
                        int64_t out, KilnError *err)
{
    State *state = kiln_state(self);

    return kiln_nn_linear_init(&state->fc, scope, "fc", kiln_shape_count(in), out, true, err);
}

static KilnTensor *forward(KilnInstance *self, KilnStep *step, KilnTensor *x)
{
    const State *state = kiln_state(self);

    (void)step;
    return kiln_nn_linear(&state->fc, kiln_flatten(x));
}

static const KilnModelOps ops = { .setup = setup, .forward = forward };

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
