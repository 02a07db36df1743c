/* An LSTM that reads a sequence, or an image row by row from the top; a linear layer reads its last
 * state (torch.nn.LSTM, torch.nn.Linear). */
#include "kiln.h"

typedef struct Opts {
    int64_t hidden, layers;
    double dropout;
    bool bidirectional;
} Opts;

typedef struct State {
    KilnRecurrentLayer lstm;
    KilnLinear head;
} State;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, hidden, "128", 1, 65536, "size of the state, per layer"),
    KILN_FIELD_I64(Opts, layers, "1", 1, KILN_RECURRENT_MAX / 2, "stacked layers"),
    KILN_FIELD_F64(Opts, dropout, "0.0", 0.0, 0.99, "dropout between layers and before the output"),
    KILN_FIELD_BOOL(Opts, bidirectional, "false", "also read from the end"),
    KILN_FIELD_END,
};

/* The rows of a sample: all axes after the first form one row. */
static int64_t row_width(const KilnShape *in)
{
    return kiln_shape_count(in) / in->dim[0];
}

static const KilnTensorSpec takes[] = {
    { .name = "rows",
      .content = KILN_IMAGE | KILN_SEQUENCE | KILN_MAP,
      .dtype = KILN_F32,
      .varies = true },
};

static const KilnTensorSpec gives[] = {
    { .name = "logits", .content = KILN_VECTOR, .dtype = KILN_F32, .axes = "classes" },
};

static const KilnSignature signature = KILN_SIGNATURE(takes, gives);

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                        KilnError *err)
{
    const KilnShape *in = &io->inputs[0].shape;
    const int64_t out = io->outputs[0].shape.dim[0];
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const KilnRecurrentSpec spec = {
        .in = row_width(in),
        .hidden = opts->hidden,
        .layers = opts->layers,
        .batch_first = true,
        .bidirectional = opts->bidirectional,
        .dropout = opts->dropout,
    };
    const int64_t width = opts->hidden * (opts->bidirectional ? 2 : 1);
    KilnStatus status = kiln_nn_lstm_init(&state->lstm, scope, "lstm", spec, err);
    if (status >= 0)
        status = kiln_nn_linear_init(&state->head, scope, "head", width, out, true, err);
    if (status < 0)
        return status;
    kiln_param_set_head(state->head.weight);
    kiln_param_set_head(state->head.bias);
    return KILN_OK;
}

/* The last layer's final state, of each direction. */
static KilnTensor *last_state(const Opts *opts, KilnTensor *h)
{
    KilnTensor *forwards = kiln_select(h, 0, -(opts->bidirectional ? 2 : 1));

    if (!opts->bidirectional)
        return forwards;
    return kiln_concat((KilnTensor *[]) { forwards, kiln_select(h, 0, -1) }, 2, 1);
}

static void forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    const bool drops = opts->dropout > 0.0 && kiln_step_training(step);
    KilnDropoutState drop = { 0 };

    if (drops)
        drop = (KilnDropoutState) { .key = kiln_step_dropout_key(step),
                                    .stream = kiln_step_stream(step) << 32 };
    KilnTensor *x = inputs[0].tensor;
    KilnTensor *rows = kiln_reshape(
        x, KILN_SHAPE(kiln_tensor_dim(x, 0), kiln_tensor_dim(x, 1), state->lstm.spec.in));
    KilnRecurrentStart start = { .lengths = inputs[0].lengths, .drop = drops ? &drop : NULL };
    KilnTensor *end = last_state(opts, kiln_nn_recurrent(&state->lstm, rows, start).h);
    outputs[0].tensor = kiln_nn_linear(&state->head,
                                       kiln_nn_dropout(end, opts->dropout, start.drop));
}

static const KilnModelOps ops = { .signature = &signature, .setup = setup, .forward = forward };

const KilnComponent kiln_model_lstm = {
    .kind = KILN_KIND_MODEL,
    .name = "lstm",
    .summary = "LSTM over a sequence, or the rows of an image",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .ops.model = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_model_lstm, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
