/* A vector for each number of a table's row: the number times a vector of its column, plus another
 * one (the feature tokenizer of Gorishniy et al., "Revisiting deep learning models for tabular
 * data", 2021, with its names and initial distribution). */
#include "kiln.h"

#include <math.h>

typedef struct State {
    KilnParam *weight, *bias; /* [columns, features] */
} State;

static const KilnTensorSpec takes[] = {
    { .name = "row", .content = KILN_ROW | KILN_VECTOR, .dtype = KILN_F32, .axes = "columns" },
};

static const KilnTensorSpec gives[] = {
    { .name = "sequence", .content = KILN_SEQUENCE, .axes = "columns features" },
};

static const KilnSignature signature = KILN_SIGNATURE(takes, gives);

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                        KilnError *err)
{
    State *state = kiln_state(self);
    const KilnShape *sequence = &io->outputs[0].shape;
    const KilnScope own = kiln_scope(scope, "tokenizer");
    const KilnInit init = { .kind = KILN_INIT_UNIFORM, .a = 1.0 / sqrt((double)sequence->dim[1]) };
    KilnStatus status = kiln_param_new(&own, "weight", *sequence, init, &state->weight, err);

    return status < 0 ? status : kiln_param_new(&own, "bias", *sequence, init, &state->bias, err);
}

static void forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs)
{
    const State *state = kiln_state(self);
    KilnGraph *graph = kiln_step_graph(step);
    KilnTensor *x = kiln_unsqueeze(inputs[0].tensor, 2);

    outputs[0].tensor = kiln_add(kiln_mul(x, kiln_param_tensor(state->weight, graph)),
                                 kiln_param_tensor(state->bias, graph));
}

static const KilnModelOps ops = { .signature = &signature, .setup = setup, .forward = forward };

const KilnComponent kiln_model_column_embedding = {
    .kind = KILN_KIND_MODEL,
    .name = "column_embedding",
    .summary = "Columns of a table's row as a sequence, for transformers",
    .state_size = sizeof(State),
    .ops.model = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_model_column_embedding, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
