/* A convolutional recurrent network for lines of text (Shi et al. 2015, "An end-to-end trainable
 * neural network for image-based sequence recognition"): convolutions make a vector of each few
 * columns of pixels, bidirectional LSTMs read them, a linear layer gives the logits of the
 * characters there. What comes after the end of a line has no influence on it. */
#include "kiln.h"

enum { BLOCKS = 4, ROWS = 1 << BLOCKS };

typedef struct Opts {
    int64_t width, hidden, layers;
    double dropout;
} Opts;

typedef struct State {
    KilnConv2d conv[BLOCKS];
    KilnBatchNorm2d norm[BLOCKS];
    KilnRecurrentLayer lstm;
    KilnLinear head;
    int64_t features; /* of a column after the convolutions */
} State;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, width, "32", 1, 1024,
                   "channels of the first convolution; the others have 2, 4 and 4 times as many"),
    KILN_FIELD_I64(Opts, hidden, "128", 1, 65536, "size of the LSTM's state, per direction"),
    KILN_FIELD_I64(Opts, layers, "1", 1, KILN_RECURRENT_MAX / 2, "stacked LSTMs"),
    KILN_FIELD_F64(Opts, dropout, "0.0", 0.0, 0.99, "dropout between and after the LSTMs"),
    KILN_FIELD_END,
};

static const KilnTensorSpec takes[] = {
    { .name = "line",
      .content = KILN_SEQUENCE,
      .dtype = KILN_F32,
      .axes = "columns height",
      .varies = true },
};
static const KilnTensorSpec gives[] = {
    { .name = "column_logits",
      .content = KILN_SEQUENCE,
      .dtype = KILN_F32,
      .axes = "steps classes",
      .varies = true },
};
static const KilnSignature signature = KILN_SIGNATURE(takes, gives);

static KilnStatus init_block(const Opts *opts, State *state, const KilnScope *scope, int i,
                             KilnError *err)
{
    const int64_t factors[BLOCKS + 1] = { 0, 1, 2, 4, 4 };
    const KilnScope block = kiln_scope(scope, "block%d", i);
    KilnStatus status = kiln_nn_conv2d_init(&state->conv[i], &block, "conv",
                                            (KilnConv2dSpec) {
                                                .in = i == 0 ? 1 : factors[i] * opts->width,
                                                .out = factors[i + 1] * opts->width,
                                                .kernel = 3,
                                                .conv = { .padding = 1 },
                                                .kaiming_fan_out = true,
                                            },
                                            err);

    return status >= 0 ? kiln_nn_batch_norm2d_init(&state->norm[i], &block, "norm",
                                                   factors[i + 1] * opts->width, err)
                       : status;
}

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const KilnShape *in = &io->inputs[0].shape;
    KilnShape *out = &io->outputs[0].shape;
    KilnStatus status = KILN_OK;

    if (in->dim[1] % ROWS != 0 || in->dim[0] < 4)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "lines must be a multiple of %d pixels high and at least 4 wide, got "
                              "%lld x %lld",
                              (int)ROWS, (long long)in->dim[1], (long long)in->dim[0]);
    state->features = in->dim[1] / ROWS * 4 * opts->width;
    for (int i = 0; i < BLOCKS && status >= 0; i++)
        status = init_block(opts, state, scope, i, err);
    if (status >= 0)
        status = kiln_nn_lstm_init(&state->lstm, scope, "lstm",
                                   (KilnRecurrentSpec) { .in = state->features,
                                                         .hidden = opts->hidden,
                                                         .layers = opts->layers,
                                                         .batch_first = true,
                                                         .bidirectional = true,
                                                         .dropout = opts->dropout },
                                   err);
    if (status >= 0)
        status = kiln_nn_linear_init(&state->head, scope, "head", 2 * opts->hidden, out->dim[1],
                                     true, err);
    if (status < 0)
        return status;
    kiln_param_set_head(state->head.weight);
    kiln_param_set_head(state->head.bias);
    out->dim[0] = in->dim[0] / 4;
    return KILN_OK;
}

/* x [B, columns, ...] with zeros after the end of each line, as before its beginning. */
static KilnTensor *clear_end(KilnTensor *x, KilnTensor *lengths)
{
    const int64_t batch = kiln_tensor_dim(x, 0), columns = kiln_tensor_dim(x, 1);
    KilnTensor *place =
        kiln_to_float(kiln_arange(kiln_tensor_graph(x), KILN_I32, 0.0, 1.0, columns));
    KilnTensor *after = kiln_ge(place, kiln_reshape(lengths, KILN_SHAPE(batch, 1)));

    return kiln_masked_fill(x, kiln_reshape(after, KILN_SHAPE(batch, columns, 1, 1)), 0.0);
}

static void forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    const bool training = kiln_step_training(step), drops = opts->dropout > 0.0 && training;
    KilnTensor *x = inputs[0].tensor, *lengths = kiln_to_float(inputs[0].lengths);
    const int64_t batch = kiln_tensor_dim(x, 0);
    KilnDropoutState drop = { 0 };

    if (drops)
        drop = (KilnDropoutState) { .key = kiln_step_dropout_key(step),
                                    .stream = kiln_step_stream(step) << 32 };
    x = kiln_reshape(x, KILN_SHAPE(batch, kiln_tensor_dim(x, 1), kiln_tensor_dim(x, 2), 1));
    x = clear_end(x, lengths);
    for (int i = 0; i < BLOCKS; i++) {
        const int64_t columns = i < 2 ? 2 : 1; /* that become one */

        x = kiln_nn_conv2d(&state->conv[i], x);
        x = kiln_relu(kiln_nn_batch_norm2d(&state->norm[i], x, training));
        x = kiln_max_pool2d(x, (KilnPool) { .kernel_hw = { columns, 2 } });
        lengths = kiln_floor(kiln_scale(lengths, 1.0 / (double)columns));
        x = clear_end(x, lengths);
    }
    lengths = kiln_cast(lengths, KILN_I32);
    x = kiln_reshape(x, KILN_SHAPE(batch, kiln_tensor_dim(x, 1), state->features));
    x = kiln_nn_recurrent(&state->lstm, x,
                          (KilnRecurrentStart) { .lengths = lengths, .drop = drops ? &drop : NULL })
            .y;
    x = kiln_nn_dropout(x, opts->dropout, drops ? &drop : NULL);
    outputs[0] = (KilnModelValue) { .tensor = kiln_nn_linear(&state->head, x), .lengths = lengths };
}

static const KilnModelOps ops = { .signature = &signature, .setup = setup, .forward = forward };

const KilnComponent kiln_model_crnn = {
    .kind = KILN_KIND_MODEL,
    .name = "crnn",
    .summary = "Convolutions and bidirectional LSTMs over lines of text",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .ops.model = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_model_crnn, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
