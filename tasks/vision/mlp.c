/* Fully connected layers with ReLU between them, on the flattened sample. */
#include "kiln.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct Opts {
    int64_t *hidden;
    size_t hidden_count;
    double dropout;
} Opts;

typedef struct State {
    KilnLinear *layers; /* hidden and output layers */
    size_t count;
} State;

static const KilnField fields[] = {
    KILN_FIELD_I64_LIST(Opts, hidden, "[512, 512]", 1, 1000000,
                        "widths of the hidden layers; []: none"),
    KILN_FIELD_F64(Opts, dropout, "0.0", 0.0, 0.99, "dropout of each hidden layer"),
    KILN_FIELD_END,
};

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
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    KilnScope layers = kiln_scope(scope, "layers");
    const int64_t classes = io->outputs[0].shape.dim[0];
    int64_t width = kiln_shape_count(&io->inputs[0].shape);

    state->count = opts->hidden_count + 1;
    state->layers = calloc(state->count, sizeof(*state->layers));
    if (state->layers == NULL)
        return kiln_error_nomem(err, state->count * sizeof(*state->layers));
    for (size_t i = 0; i < state->count; i++) {
        int64_t next = i < opts->hidden_count ? opts->hidden[i] : classes;
        char name[32];

        snprintf(name, sizeof(name), "%zu", i);
        KilnStatus status = kiln_nn_linear_init(&state->layers[i], &layers, name, width, next, true,
                                                err);
        if (status < 0)
            return status;
        width = next;
    }
    return KILN_OK;
}

static void forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    bool drop = opts->dropout > 0.0 && kiln_step_training(step);

    KilnTensor *x = kiln_flatten(inputs[0].tensor);
    for (size_t i = 0; i + 1 < state->count; i++) {
        x = kiln_relu(kiln_nn_linear(&state->layers[i], x));
        if (drop)
            x = kiln_dropout(x, opts->dropout, kiln_step_dropout_key(step), kiln_step_stream(step));
    }
    outputs[0].tensor = kiln_nn_linear(&state->layers[state->count - 1], x);
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    free(state->layers);
}

static const KilnModelOps ops = { .signature = &signature, .setup = setup, .forward = forward };

const KilnComponent kiln_model_mlp = {
    .kind = KILN_KIND_MODEL,
    .name = "mlp",
    .summary = "Fully connected layers with ReLU and dropout",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .release = release,
    .ops.model = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_model_mlp, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
