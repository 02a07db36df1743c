/* An LSTM over the vectors of tokens, in both directions by default: for a text, the largest value
 * of each of its features over time (InferSent: Conneau et al., 2017), and for each token, its own
 * features. Where the data have the characters of each token, a convolution over them and its
 * maxima are a part of the token's vector (Ma and Hovy, "End-to-end sequence labeling via
 * bi-directional LSTM-CNNs-CRF", 2016); where they have a bag of n-grams, a linear model over it
 * adds to a text's logits. Places after a text's end have no effect. */
#include "kiln.h"
#include "kiln/tools/bag_head.h"

typedef struct Opts {
    int64_t width, hidden, layers;
    bool bidirectional;
    double dropout, embedding_dropout;
    int64_t character_width, character_maps, character_kernel;
    int64_t bag_width;
} Opts;

typedef struct State {
    KilnEmbedding embedding, characters;
    KilnConv1d conv; /* over a token's characters */
    KilnRecurrentLayer lstm;
    KilnLinear head, token_head; /* weight NULL: not wanted */
    bool has_characters;
    KilnBagHead bag;
} State;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, width, "128", 1, 65536, "features of each token's vector"),
    KILN_FIELD_I64(Opts, hidden, "128", 1, 65536, "size of the state, per layer and direction"),
    KILN_FIELD_I64(Opts, layers, "1", 1, KILN_RECURRENT_MAX / 2, "stacked layers"),
    KILN_FIELD_BOOL(Opts, bidirectional, "true", "also read from the end"),
    KILN_FIELD_F64(Opts, dropout, "0.5", 0.0, 0.99, "dropout between layers and before the output"),
    KILN_FIELD_F64(Opts, embedding_dropout, "0.3", 0.0, 0.99, "dropout of the tokens' vectors"),
    KILN_FIELD_I64(Opts, character_width, "30", 1, 65536,
                   "features of each character's vector, if the data have characters"),
    KILN_FIELD_I64(Opts, character_maps, "30", 1, 65536, "maps of the convolution over characters"),
    KILN_FIELD_I64(Opts, character_kernel, "3", 1, 99,
                   "characters that it looks at; an odd number"),
    KILN_FIELD_I64(Opts, bag_width, "32", 1, 65536,
                   "features of each n-gram's vector, if the data have a bag of them and a text "
                   "has logits"),
    KILN_FIELD_END,
};

enum { TOKENS, CHARACTERS, BAG };
enum { LOGITS, TOKEN_LOGITS };

static const KilnTensorSpec takes[] = {
    [TOKENS] = { .name = "tokens",
                 .content = KILN_TOKENS,
                 .dtype = KILN_I32,
                 .axes = "time",
                 .varies = true },
    [CHARACTERS] = { .name = "characters",
                     .content = KILN_SEQUENCE,
                     .dtype = KILN_I32,
                     .axes = "time characters",
                     .varies = true,
                     .optional = true },
    [BAG] = KILN_BAG_INPUT,
};

static const KilnTensorSpec gives[] = {
    [LOGITS] = { .name = "logits", .content = KILN_VECTOR, .axes = "classes" },
    [TOKEN_LOGITS] = { .name = "token_logits",
                       .content = KILN_SEQUENCE,
                       .axes = "time classes",
                       .varies = true },
};

static const KilnSignature signature = KILN_SIGNATURE(takes, gives);

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    *ret_option = "character_kernel";
    return opts->character_kernel % 2 == 1
               ? KILN_OK
               : kiln_error_set(err, KILN_E_RANGE, "expected an odd number, got %lld",
                                (long long)opts->character_kernel);
}

static KilnStatus embedding_init(KilnEmbedding *layer, const KilnScope *scope, const char *name,
                                 const KilnFeature *ids, int64_t width, KilnError *err)
{
    if (ids->n_ids < 1)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "needs the number of ids, but feature \"%s\" has none", ids->name);
    KilnStatus status = kiln_nn_embedding_init(layer, scope, name, ids->n_ids, width,
                                               (int64_t)ids->pad, err);
    if (status >= 0) /* as Kim's; N(0, 1) would give rare words the largest vectors */
        kiln_param_set_init(layer->weight, (KilnInit) { .kind = KILN_INIT_UNIFORM, .a = 0.25 });
    return status;
}

static KilnStatus characters_init(State *state, const KilnScope *scope, const Opts *opts,
                                  const KilnFeature *ids, KilnError *err)
{
    const KilnScope own = kiln_scope(scope, "characters");
    const KilnConv1dSpec spec = { .in = opts->character_width,
                                  .out = opts->character_maps,
                                  .kernel = opts->character_kernel,
                                  .conv = { .padding = opts->character_kernel / 2 },
                                  .bias = true };
    KilnStatus status = embedding_init(&state->characters, &own, "embedding", ids,
                                       opts->character_width, err);

    return status < 0 ? status : kiln_nn_conv1d_init(&state->conv, &own, "conv", spec, err);
}

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const KilnModelOutput *logits = &io->outputs[LOGITS], *tokens = &io->outputs[TOKEN_LOGITS];
    const int64_t features = opts->hidden * (opts->bidirectional ? 2 : 1);
    State *state = kiln_state(self);
    const bool has_characters = io->inputs[CHARACTERS].name != NULL;
    const KilnRecurrentSpec spec = {
        .in = opts->width + (has_characters ? opts->character_maps : 0),
        .hidden = opts->hidden,
        .layers = opts->layers,
        .batch_first = true,
        .bidirectional = opts->bidirectional,
        .dropout = opts->dropout,
    };

    state->has_characters = has_characters;
    KilnStatus status = embedding_init(&state->embedding, scope, "embedding", &io->inputs[TOKENS],
                                       opts->width, err);
    if (status >= 0 && has_characters)
        status = characters_init(state, scope, opts, &io->inputs[CHARACTERS], err);
    if (status >= 0)
        status = kiln_nn_lstm_init(&state->lstm, scope, "lstm", spec, err);
    if (status >= 0 && logits->wanted)
        status = kiln_nn_linear_init(&state->head, scope, "head", features, logits->shape.dim[0],
                                     true, err);
    if (status >= 0 && logits->wanted)
        status = kiln_bag_head_init(&state->bag, scope, &io->inputs[BAG], opts->bag_width,
                                    logits->shape.dim[0], err);
    if (status >= 0 && tokens->wanted)
        status = kiln_nn_linear_init(&state->token_head, scope, "token_head", features,
                                     tokens->shape.dim[1], true, err);
    return status;
}

/* The largest values of y [B, T, features] over the places of each text. */
static KilnTensor *largest(KilnTensor *y, KilnTensor *lengths)
{
    const int time[] = { 1 };

    if (lengths != NULL) {
        const int64_t batch = kiln_tensor_dim(y, 0), places = kiln_tensor_dim(y, 1);
        KilnTensor *place = kiln_arange(kiln_tensor_graph(y), kiln_tensor_dtype(y), 0.0, 1.0,
                                        places);
        KilnTensor *end = kiln_reshape(kiln_to_float(lengths), KILN_SHAPE(batch, 1));
        KilnTensor *after = kiln_reshape(kiln_ge(place, end), KILN_SHAPE(batch, places, 1));

        /* An LSTM's outputs are above -1. */
        y = kiln_masked_fill(y, after, -1.0);
    }
    return kiln_max_axes(y, time, 1, false);
}

/* The vectors of tokens from their characters [B, T, C]: [B, T, maps]. */
static KilnTensor *read_characters(const State *state, const Opts *opts, KilnTensor *characters)
{
    const int64_t batch = kiln_tensor_dim(characters, 0), time = kiln_tensor_dim(characters, 1);
    const int64_t length = kiln_tensor_dim(characters, 2);
    const int over[] = { 1 };
    KilnTensor *x = kiln_nn_embedding(&state->characters, characters);

    x = kiln_reshape(x, KILN_SHAPE(batch * time, length, opts->character_width));
    x = kiln_max_axes(kiln_nn_conv1d(&state->conv, x), over, 1, false);
    return kiln_reshape(x, KILN_SHAPE(batch, time, opts->character_maps));
}

static void forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    KilnTensor *lengths = inputs[TOKENS].lengths;
    const bool drops = (opts->dropout > 0.0 || opts->embedding_dropout > 0.0) &&
                       kiln_step_training(step);
    KilnDropoutState drop_state = { 0 }, *drop = drops ? &drop_state : NULL;

    if (drops)
        drop_state = (KilnDropoutState) { .key = kiln_step_dropout_key(step),
                                          .stream = kiln_step_stream(step) << 32 };
    KilnTensor *x = kiln_nn_embedding(&state->embedding, inputs[TOKENS].tensor);
    if (state->has_characters) {
        KilnTensor *spelling = read_characters(state, opts, inputs[CHARACTERS].tensor);

        x = kiln_concat((KilnTensor *[]) { x, spelling }, 2, 2);
    }
    x = kiln_nn_dropout(x, opts->embedding_dropout, drop);
    const KilnRecurrentStart start = { .lengths = lengths, .drop = drop };
    KilnTensor *y = kiln_nn_recurrent(&state->lstm, x, start).y;
    if (state->head.weight != NULL)
        outputs[LOGITS].tensor = kiln_bag_head_add(
            &state->bag, inputs[BAG].tensor,
            kiln_nn_linear(&state->head,
                           kiln_nn_dropout(largest(y, lengths), opts->dropout, drop)));
    if (state->token_head.weight != NULL)
        outputs[TOKEN_LOGITS].tensor = kiln_nn_linear(&state->token_head,
                                                      kiln_nn_dropout(y, opts->dropout, drop));
}

static const KilnModelOps ops = { .signature = &signature, .setup = setup, .forward = forward };

const KilnComponent kiln_model_text_lstm = {
    .kind = KILN_KIND_MODEL,
    .name = "text_lstm",
    .summary =
        "LSTM over tokens, in both directions; its maxima over time, or each token's features",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .check = check,
    .ops.model = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_model_text_lstm, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
