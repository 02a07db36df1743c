/* A model as a plugin: residual blocks of two linear layers on the flattened
 * sample. One file, written against kiln.h alone. */
#include "kiln.h"

#include <stdlib.h>

typedef struct Opts {
    int64_t width;
    int64_t depth;
    double dropout;
} Opts;

typedef struct Block {
    KilnLinear up, down;
} Block;

typedef struct State {
    KilnLinear stem, head;
    Block *blocks;
} State;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, width, "128", 1, 65536, "features between the blocks"),
    KILN_FIELD_I64(Opts, depth, "4", 0, 1000, "residual blocks"),
    KILN_FIELD_F64(Opts, dropout, "0.0", 0.0, 0.99, "share of each block's output that is zeroed"),
    KILN_FIELD_END,
};

/* What the model takes and gives: any task whose values fit may use it. */
static const KilnTensorSpec takes[] = {
    { .name = "x",
      .content = KILN_IMAGE | KILN_ROW | KILN_VECTOR | KILN_SEQUENCE | KILN_MAP,
      .dtype = KILN_F32 },
};

static const KilnTensorSpec gives[] = {
    { .name = "logits", .content = KILN_VECTOR, .dtype = KILN_F32, .axes = "classes" },
};

static const KilnSignature signature = KILN_SIGNATURE(takes, gives);

/* Shapes are those of one sample; the last axis of the output is the number of classes. The names
 * that are declared here are the names in model.safetensors. */
static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    KilnStatus status = kiln_nn_linear_init(&state->stem, scope, "stem",
                                            kiln_shape_count(&io->inputs[0].shape), opts->width,
                                            true, err);

    state->blocks = calloc((size_t)opts->depth + 1, sizeof(*state->blocks));
    if (state->blocks == NULL)
        return kiln_error_nomem(err, (size_t)opts->depth * sizeof(*state->blocks));
    for (int64_t i = 0; i < opts->depth && status == KILN_OK; i++) {
        KilnScope block = kiln_scope(scope, "blocks.%lld", (long long)i);

        status = kiln_nn_linear_init(&state->blocks[i].up, &block, "up", opts->width,
                                     2 * opts->width, true, err);
        if (status == KILN_OK)
            status = kiln_nn_linear_init(&state->blocks[i].down, &block, "down", 2 * opts->width,
                                         opts->width, true, err);
    }
    if (status == KILN_OK)
        status = kiln_nn_linear_init(&state->head, scope, "head", opts->width,
                                     io->outputs[0].shape.dim[0], true, err);
    return status;
}

static void forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    bool drop = opts->dropout > 0.0 && kiln_step_training(step);

    KilnTensor *x = kiln_relu(kiln_nn_linear(&state->stem, kiln_flatten(inputs[0].tensor)));
    for (int64_t i = 0; i < opts->depth; i++) {
        KilnTensor *y = kiln_relu(kiln_nn_linear(&state->blocks[i].up, x));

        y = kiln_nn_linear(&state->blocks[i].down, y);
        if (drop)
            y = kiln_dropout(y, opts->dropout, kiln_step_dropout_key(step), kiln_step_stream(step));
        x = kiln_add(x, y);
    }
    outputs[0].tensor = kiln_nn_linear(&state->head, x);
}

/* Also called when setup or a later component failed: state may be half-built. */
static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    free(state->blocks);
}

static const KilnModelOps ops = { .signature = &signature, .setup = setup, .forward = forward };

const KilnComponent kiln_model_resmlp = {
    .kind = KILN_KIND_MODEL,
    .name = "resmlp",
    .summary = "Residual blocks of two linear layers",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .release = release,
    .ops.model = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_model_resmlp, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
