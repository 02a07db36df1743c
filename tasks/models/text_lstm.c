/* An LSTM over the vectors of tokens, in both directions by default, with the largest value of each
 * of its features over time (InferSent: Conneau et al., 2017). Places after a text's end have no
 * effect. */
#include "kiln.h"

typedef struct Opts {
    int64_t width, hidden, layers;
    bool bidirectional;
    double dropout, embedding_dropout;
} Opts;

typedef struct State {
    KilnEmbedding embedding;
    KilnRecurrentLayer lstm;
    KilnLinear head;
} State;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, width, "128", 1, 65536, "features of each token's vector"),
    KILN_FIELD_I64(Opts, hidden, "128", 1, 65536, "size of the state, per layer and direction"),
    KILN_FIELD_I64(Opts, layers, "1", 1, KILN_RECURRENT_MAX / 2, "stacked layers"),
    KILN_FIELD_BOOL(Opts, bidirectional, "true", "also read from the end"),
    KILN_FIELD_F64(Opts, dropout, "0.5", 0.0, 0.99, "dropout between layers and before the output"),
    KILN_FIELD_F64(Opts, embedding_dropout, "0.3", 0.0, 0.99, "dropout of the tokens' vectors"),
    KILN_FIELD_END,
};

static const KilnTensorSpec takes[] = {
    { .name = "tokens", .content = KILN_TOKENS, .dtype = KILN_I32, .axes = "time", .varies = true },
};

static const KilnTensorSpec gives[] = {
    { .name = "logits", .content = KILN_VECTOR, .axes = "classes" },
};

static const KilnSignature signature = KILN_SIGNATURE(takes, gives);

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const KilnFeature *tokens = &io->inputs[0];
    State *state = kiln_state(self);
    const KilnRecurrentSpec spec = {
        .in = opts->width,
        .hidden = opts->hidden,
        .layers = opts->layers,
        .batch_first = true,
        .bidirectional = opts->bidirectional,
        .dropout = opts->dropout,
    };

    if (tokens->n_ids < 1)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "needs the number of token ids, but feature \"%s\" has none",
                              tokens->name);
    KilnStatus status = kiln_nn_embedding_init(&state->embedding, scope, "embedding", tokens->n_ids,
                                               opts->width, (int64_t)tokens->pad, err);
    if (status >= 0) /* as Kim's; N(0, 1) would give rare words the largest vectors */
        kiln_param_set_init(state->embedding.weight,
                            (KilnInit) { .kind = KILN_INIT_UNIFORM, .a = 0.25 });
    if (status >= 0)
        status = kiln_nn_lstm_init(&state->lstm, scope, "lstm", spec, err);
    return status < 0 ? status
                      : kiln_nn_linear_init(&state->head, scope, "head",
                                            opts->hidden * (opts->bidirectional ? 2 : 1),
                                            io->outputs[0].shape.dim[0], true, err);
}

/* The largest values of y [B, T, features] over the places of each text. */
static KilnTensor *largest(KilnTensor *y, KilnTensor *lengths)
{
    const int time[] = { 1 };

    if (lengths != NULL) {
        const int64_t batch = kiln_tensor_dim(y, 0), places = kiln_tensor_dim(y, 1);
        KilnTensor *place = kiln_arange(kiln_tensor_graph(y), KILN_F32, 0.0, 1.0, places);
        KilnTensor *end = kiln_reshape(kiln_to_float(lengths), KILN_SHAPE(batch, 1));
        KilnTensor *after = kiln_reshape(kiln_ge(place, end), KILN_SHAPE(batch, places, 1));

        /* An LSTM's outputs are above -1. */
        y = kiln_masked_fill(y, after, -1.0);
    }
    return kiln_max_axes(y, time, 1, false);
}

static void forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    const bool drops = (opts->dropout > 0.0 || opts->embedding_dropout > 0.0) &&
                       kiln_step_training(step);
    KilnDropoutState drop_state = { 0 }, *drop = drops ? &drop_state : NULL;

    if (drops)
        drop_state = (KilnDropoutState) { .key = kiln_step_dropout_key(step),
                                          .stream = kiln_step_stream(step) << 32 };
    KilnTensor *x = kiln_nn_embedding(&state->embedding, inputs[0].tensor);
    x = kiln_nn_dropout(x, opts->embedding_dropout, drop);
    const KilnRecurrentStart start = { .lengths = inputs[0].lengths, .drop = drop };
    KilnTensor *y = largest(kiln_nn_recurrent(&state->lstm, x, start).y, inputs[0].lengths);
    outputs[0].tensor = kiln_nn_linear(&state->head, kiln_nn_dropout(y, opts->dropout, drop));
}

static const KilnModelOps ops = { .signature = &signature, .setup = setup, .forward = forward };

const KilnComponent kiln_model_text_lstm = {
    .kind = KILN_KIND_MODEL,
    .name = "text_lstm",
    .summary = "LSTM over tokens, in both directions, and its maxima over time",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .ops.model = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_model_text_lstm, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
