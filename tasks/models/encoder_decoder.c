/* The transformer for sequences to sequences (Vaswani et al., "Attention is all you need", 2017):
 * torch.nn.Transformer with embeddings, positions and a linear layer over the target's vocabulary.
 * Names, shapes and layouts within `encoder` and `decoder` are torch.nn.Transformer's. */
#include "kiln.h"

#include <math.h>
#include <stdlib.h>

typedef enum Positions { POSITIONS_SINUSOIDAL, POSITIONS_LEARNED } Positions;
typedef enum Activation { ACTIVATION_RELU, ACTIVATION_GELU } Activation;

typedef struct Opts {
    int64_t width, heads, encoder_layers, decoder_layers, feedforward;
    double dropout;
    int64_t activation, positions;
    bool norm_first, share_embeddings, tie_output;
} Opts;

static const KilnChoice activations[] = {
    { "relu", ACTIVATION_RELU },
    { "gelu", ACTIVATION_GELU },
    { NULL, 0 },
};
static const KilnChoice positions[] = {
    { "sinusoidal", POSITIONS_SINUSOIDAL },
    { "learned", POSITIONS_LEARNED },
    { NULL, 0 },
};

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, width, "512", 2, 65536, "features of each token's vector, an even number"),
    KILN_FIELD_I64(Opts, heads, "8", 1, 1024, "attention heads; they divide the width"),
    KILN_FIELD_I64(Opts, encoder_layers, "6", 1, KILN_TRANSFORMER_MAX, "layers of the encoder"),
    KILN_FIELD_I64(Opts, decoder_layers, "6", 1, KILN_TRANSFORMER_MAX, "layers of the decoder"),
    KILN_FIELD_I64(Opts, feedforward, "2048", 1, 1000000,
                   "width of the hidden layer in each feed-forward part"),
    KILN_FIELD_F64(Opts, dropout, "0.1", 0.0, 0.99,
                   "dropout of embeddings, attention weights, and what each part adds"),
    KILN_FIELD_ENUM(Opts, activation, "relu", activations, "of the feed-forward parts"),
    KILN_FIELD_BOOL(Opts, norm_first, "false",
                    "norm before each part (Xiong et al. 2020) instead of after the sum"),
    KILN_FIELD_ENUM(Opts, positions, "sinusoidal", positions,
                    "what is added to the embeddings: sines and cosines, or learned vectors"),
    KILN_FIELD_BOOL(Opts, share_embeddings, "false",
                    "source and target, with the same vocabulary, have one embedding"),
    KILN_FIELD_BOOL(Opts, tie_output, "true",
                    "the output layer's weight is the target's embedding (Press and Wolf 2017)"),
    KILN_FIELD_END,
};

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    *ret_option = "width";
    if (opts->width % 2 != 0)
        return kiln_error_set(err, KILN_E_RANGE, "expected an even number, got %lld",
                              (long long)opts->width);
    *ret_option = "heads";
    if (opts->width % opts->heads != 0)
        return kiln_error_set(err, KILN_E_RANGE,
                              "expected a number that divides the width %lld, got %lld",
                              (long long)opts->width, (long long)opts->heads);
    return KILN_OK;
}

/* ---- What it takes and gives -------------------------------------------------------------- */

enum { SOURCE, TARGET, SIDES };

static const KilnTensorSpec takes[] = {
    [SOURCE] = { .name = "source",
                 .content = KILN_TOKENS,
                 .dtype = KILN_I32,
                 .axes = "source_time",
                 .varies = true },
    [TARGET] = { .name = "target",
                 .content = KILN_TOKENS,
                 .dtype = KILN_I32,
                 .axes = "time",
                 .varies = true },
};

enum { TOKEN_LOGITS, HIDDEN };

static const KilnTensorSpec gives[] = {
    [TOKEN_LOGITS] = { .name = "token_logits",
                       .content = KILN_SEQUENCE,
                       .axes = "time classes",
                       .varies = true },
    [HIDDEN] = { .name = "hidden",
                 .content = KILN_SEQUENCE,
                 .axes = "time features",
                 .varies = true },
};

static const KilnSignature signature = KILN_SIGNATURE(takes, gives);

/* ---- Setup --------------------------------------------------------------------------------- */

typedef struct State {
    KilnEmbedding embedding[SIDES]; /* the same twice if they are shared */
    KilnEmbedding learned[SIDES];   /* positions; weight NULL: sinusoidal */
    float *sinusoidal;              /* [longest, width]; NULL: learned */
    int64_t longest[SIDES];
    KilnTransformer *encoder, *decoder;
    KilnLinear output; /* weight NULL: tied */
} State;

static KilnStatus embedding_init(KilnEmbedding *embedding, const KilnScope *scope, const char *name,
                                 const KilnFeature *tokens, int64_t width, KilnError *err)
{
    const KilnInit normal = { .kind = KILN_INIT_NORMAL, .a = 1.0 / sqrt((double)width) };

    if (tokens->n_ids < 1)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "needs the number of token ids, but feature \"%s\" has none; the "
                              "datamodule must set n_ids",
                              tokens->name);
    KilnStatus status = kiln_nn_embedding_init(embedding, scope, name, tokens->n_ids, width, -1,
                                               err);
    if (status >= 0)
        kiln_param_set_init(embedding->weight, normal);
    return status;
}

static KilnStatus embeddings_init(State *state, const Opts *opts, const KilnScope *scope,
                                  const KilnFeature *inputs, KilnError *err)
{
    if (!opts->share_embeddings) {
        KilnStatus status = embedding_init(&state->embedding[SOURCE], scope, "source_embedding",
                                           &inputs[SOURCE], opts->width, err);

        return status < 0 ? status
                          : embedding_init(&state->embedding[TARGET], scope, "target_embedding",
                                           &inputs[TARGET], opts->width, err);
    }
    if (inputs[SOURCE].n_ids != inputs[TARGET].n_ids)
        return kiln_error_set(
            err, KILN_E_SHAPE,
            "share_embeddings needs one vocabulary for both sides, but the source "
            "has %lld tokens and the target %lld",
            (long long)inputs[SOURCE].n_ids, (long long)inputs[TARGET].n_ids);
    KilnStatus status = embedding_init(&state->embedding[SOURCE], scope, "embedding",
                                       &inputs[SOURCE], opts->width, err);
    state->embedding[TARGET] = state->embedding[SOURCE];
    return status;
}

/* Positions as in the paper, with the sines in the first half of a vector and the cosines in the
 * second, as in tensor2tensor. */
static KilnStatus sinusoidal_init(State *state, int64_t length, int64_t width, KilnError *err)
{
    const int64_t half = width / 2;
    const size_t bytes = (size_t)(length * width) * sizeof(*state->sinusoidal);

    state->sinusoidal = malloc(bytes);
    if (state->sinusoidal == NULL)
        return kiln_error_nomem(err, bytes);
    for (int64_t t = 0; t < length; t++)
        for (int64_t i = 0; i < half; i++) {
            const double steps = half > 1 ? (double)(half - 1) : 1.0;
            const double angle = (double)t * exp(-log(10000.0) * (double)i / steps);

            state->sinusoidal[t * width + i] = (float)sin(angle);
            state->sinusoidal[t * width + half + i] = (float)cos(angle);
        }
    return KILN_OK;
}

static KilnStatus positions_init(State *state, const Opts *opts, const KilnScope *scope,
                                 KilnError *err)
{
    static const char *const names[] = { "source_positions", "target_positions" };
    const KilnInit normal = { .kind = KILN_INIT_NORMAL, .a = 1.0 / sqrt((double)opts->width) };
    const int64_t *longest = state->longest;
    KilnStatus status = KILN_OK;

    if (opts->positions == POSITIONS_SINUSOIDAL)
        return sinusoidal_init(
            state, longest[SOURCE] > longest[TARGET] ? longest[SOURCE] : longest[TARGET],
            opts->width, err);
    for (int side = 0; side < SIDES && status >= 0; side++) {
        status = kiln_nn_embedding_init(&state->learned[side], scope, names[side], longest[side],
                                        opts->width, -1, err);
        if (status >= 0)
            kiln_param_set_init(state->learned[side].weight, normal);
    }
    return status;
}

/* torch.nn.Transformer draws all matrices like this. */
static void draw_feed_forward(const KilnTransformer *stack)
{
    const KilnInit xavier = { .kind = KILN_INIT_XAVIER_UNIFORM, .a = 1.0 };

    for (int64_t i = 0; i < stack->count; i++) {
        kiln_param_set_init(stack->layers[i].linear1.weight, xavier);
        kiln_param_set_init(stack->layers[i].linear2.weight, xavier);
        kiln_param_set_init(stack->layers[i].self_attn.out_proj.weight, xavier);
        if (stack->layers[i].decoder)
            kiln_param_set_init(stack->layers[i].multihead_attn.out_proj.weight, xavier);
    }
}

static KilnStatus stacks_init(State *state, const Opts *opts, const KilnScope *scope,
                              KilnError *err)
{
    const KilnTransformerSpec spec = {
        .width = opts->width,
        .heads = opts->heads,
        .feedforward = opts->feedforward,
        .dropout = opts->dropout,
        .gelu = opts->activation == ACTIVATION_GELU,
        .norm_first = opts->norm_first,
    };

    state->encoder = calloc(1, sizeof(*state->encoder));
    state->decoder = calloc(1, sizeof(*state->decoder));
    if (state->encoder == NULL || state->decoder == NULL)
        return kiln_error_nomem(err, sizeof(*state->decoder));
    KilnStatus status = kiln_nn_transformer_encoder_init(state->encoder, scope, "encoder", spec,
                                                         opts->encoder_layers, true, err);
    if (status >= 0)
        status = kiln_nn_transformer_decoder_init(state->decoder, scope, "decoder", spec,
                                                  opts->decoder_layers, true, err);
    if (status < 0)
        return status;
    draw_feed_forward(state->encoder);
    draw_feed_forward(state->decoder);
    return KILN_OK;
}

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const int64_t classes = io->outputs[TOKEN_LOGITS].shape.dim[1];
    KilnStatus status = embeddings_init(state, opts, scope, io->inputs, err);

    io->outputs[HIDDEN].shape = KILN_SHAPE(io->inputs[TARGET].shape.dim[0], opts->width);
    for (int side = 0; side < SIDES; side++)
        state->longest[side] = io->inputs[side].shape.dim[0];
    if (status >= 0)
        status = positions_init(state, opts, scope, err);
    if (status >= 0)
        status = stacks_init(state, opts, scope, err);
    if (status < 0 || opts->tie_output)
        return status;
    return kiln_nn_linear_init(&state->output, scope, "output", opts->width, classes, false, err);
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    free(state->sinusoidal);
    free(state->encoder);
    free(state->decoder);
}

/* ---- Forward ------------------------------------------------------------------------------- */

/* The vectors of positions 0 to n - 1: [n, width]. */
static KilnTensor *positions_of(const State *state, KilnGraph *graph, int side, int64_t n,
                                int64_t width)
{
    if (state->sinusoidal == NULL)
        return kiln_narrow(kiln_param_tensor(state->learned[side].weight, graph), 0, 0, n);
    return kiln_graph_input(graph, KILN_F32, KILN_SHAPE(n, width), state->sinusoidal);
}

static KilnTensor *embed(const Opts *opts, const State *state, int side, KilnTensor *tokens,
                         KilnDropoutState *drop)
{
    KilnTensor *x = kiln_scale(kiln_nn_embedding(&state->embedding[side], tokens),
                               sqrt((double)opts->width));
    KilnTensor *at = positions_of(state, kiln_tensor_graph(tokens), side,
                                  kiln_tensor_dim(tokens, 1), opts->width);

    return kiln_nn_dropout(kiln_add(x, at), opts->dropout, drop);
}

/* u8 [batch, places]: 1 for the places before the end of each sequence. NULL: all are. */
static KilnTensor *present(const KilnModelValue *tokens)
{
    const int64_t batch = kiln_tensor_dim(tokens->tensor, 0);
    KilnGraph *graph = kiln_tensor_graph(tokens->tensor);

    if (tokens->lengths == NULL)
        return NULL;
    KilnTensor *lengths = kiln_reshape(kiln_to_float(tokens->lengths), KILN_SHAPE(batch, 1));
    KilnTensor *place = kiln_arange(graph, kiln_tensor_dtype(lengths), 0.0, 1.0,
                                    kiln_tensor_dim(tokens->tensor, 1));
    return kiln_cast(kiln_lt(place, lengths), KILN_U8);
}

/* The logits of each place of the decoder's result. */
static KilnTensor *logits_of(const State *state, KilnTensor *x)
{
    if (state->output.weight != NULL)
        return kiln_nn_linear(&state->output, x);
    return kiln_linear(x, kiln_param_tensor(state->embedding[TARGET].weight, kiln_tensor_graph(x)),
                       NULL);
}

static void forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    const KilnAttentionMasks causal = { .causal = true }, none = { 0 };
    KilnDropoutState drop_state = { 0 }, *drop = NULL;

    if (opts->dropout > 0.0 && kiln_step_training(step)) {
        drop_state = (KilnDropoutState) { .key = kiln_step_dropout_key(step),
                                          .stream = kiln_step_stream(step) << 32 };
        drop = &drop_state;
    }
    const KilnAttentionMasks source = { .padding = present(&inputs[SOURCE]) };
    KilnTensor *memory = embed(opts, state, SOURCE, inputs[SOURCE].tensor, drop);
    memory = kiln_nn_transformer(state->encoder, memory, NULL, source, none, drop);
    KilnTensor *x = embed(opts, state, TARGET, inputs[TARGET].tensor, drop);
    x = kiln_nn_transformer(state->decoder, x, memory, causal, source, drop);
    outputs[TOKEN_LOGITS] = (KilnModelValue) { logits_of(state, x), inputs[TARGET].lengths };
    outputs[HIDDEN] = (KilnModelValue) { x, inputs[TARGET].lengths };
}

/* ---- Token by token ------------------------------------------------------------------------- */

/* Rows first ... first + n of an attention layer's projection, in units of the width. */
static KilnTensor *project(const KilnMultiHeadAttention *attention, KilnTensor *x, int64_t first,
                           int64_t n)
{
    const int64_t width = attention->width;

    return kiln_nn_linear_rows(attention->in_proj_weight, attention->in_proj_bias, first * width,
                               n * width, x);
}

enum { KEYS_VALUES, PRESENT, MEMORIES };

/* The keys and values of all decoder layers side by side, and which places are there. */
static size_t encode(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                     KilnTensor **memories)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    const KilnAttentionMasks none = { 0 };
    KilnTensor *list[KILN_TRANSFORMER_MAX];

    (void)step;
    const KilnAttentionMasks source = { .padding = present(&inputs[SOURCE]) };
    KilnTensor *x = embed(opts, state, SOURCE, inputs[SOURCE].tensor, NULL);
    x = kiln_nn_transformer(state->encoder, x, NULL, source, none, NULL);
    for (int64_t i = 0; i < state->decoder->count; i++)
        list[i] = project(&state->decoder->layers[i].multihead_attn, x, 1, 2);
    memories[KEYS_VALUES] = kiln_concat(list, (int)state->decoder->count, 2);
    memories[PRESENT] = kiln_to_float(source.padding);
    return MEMORIES;
}

/* Each row looks at its earlier tokens, which the caches hold. */
static KilnTensor *look_back(const KilnMultiHeadAttention *attention, KilnStep *step, KilnTensor *x)
{
    const int64_t rows = kiln_tensor_dim(x, 0), heads = attention->heads;
    KilnTensor *qkv = kiln_reshape(project(attention, x, 0, 3),
                                   KILN_SHAPE(rows, 1, 3, heads, attention->width / heads));
    KilnTensor *keys = kiln_step_cache(step, kiln_select(qkv, 2, 1), 1);
    KilnTensor *values = kiln_step_cache(step, kiln_select(qkv, 2, 2), 1);
    KilnTensor *mask = kiln_cache_mask(kiln_step_position(step), 1, kiln_tensor_dim(keys, 1));
    KilnTensor *y = kiln_attention(kiln_select(qkv, 2, 0), keys, values,
                                   (KilnAttention) { .mask = mask });

    return kiln_nn_linear(&attention->out_proj, kiln_reshape(y, KILN_SHAPE(rows, 1, -1)));
}

/* Rows of one sample look at its source together, as queries of one sequence. */
static KilnTensor *look_at_source(const KilnMultiHeadAttention *attention, KilnTensor *x,
                                  KilnTensor *keys_values, KilnTensor *padding)
{
    const int64_t rows = kiln_tensor_dim(x, 0), heads = attention->heads;
    const int64_t batch = kiln_tensor_dim(keys_values, 0), time = kiln_tensor_dim(keys_values, 1);
    const int64_t size = attention->width / heads;
    KilnTensor *q = kiln_reshape(project(attention, x, 0, 1),
                                 KILN_SHAPE(batch, rows / batch, heads, size));
    KilnTensor *kv = kiln_reshape(keys_values, KILN_SHAPE(batch, time, 2, heads, size));
    KilnTensor *y = kiln_attention(q, kiln_select(kv, 2, 0), kiln_select(kv, 2, 1),
                                   (KilnAttention) { .padding = padding });

    return kiln_nn_linear(&attention->out_proj, kiln_reshape(y, KILN_SHAPE(rows, 1, -1)));
}

static KilnTensor *feed_forward(const KilnTransformerLayer *layer, KilnTensor *x)
{
    KilnTensor *y = kiln_nn_linear(&layer->linear1, x);

    y = layer->spec.gelu ? kiln_gelu(y, KILN_GELU_ERF) : kiln_relu(y);
    return kiln_nn_linear(&layer->linear2, y);
}

/* kiln_nn_transformer_layer of a decoder, with caches. */
static KilnTensor *continue_layer(const KilnTransformerLayer *layer, KilnStep *step, KilnTensor *x,
                                  KilnTensor *keys_values, KilnTensor *padding)
{
    const KilnLayerNorm *norms[] = { &layer->norm1, &layer->norm2, &layer->norm3 };
    const bool first = layer->spec.norm_first;

    for (size_t part = 0; part < KILN_COUNT(norms); part++) {
        KilnTensor *y = first ? kiln_nn_layer_norm(norms[part], x) : x;

        y = part == 0   ? look_back(&layer->self_attn, step, y)
            : part == 1 ? look_at_source(&layer->multihead_attn, y, keys_values, padding)
                        : feed_forward(layer, y);
        x = kiln_add(x, y);
        if (!first)
            x = kiln_nn_layer_norm(norms[part], x);
    }
    return x;
}

static KilnTensor *decode(KilnInstance *self, KilnStep *step, KilnTensor *const *memories,
                          KilnTensor *tokens)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    const KilnTransformer *decoder = state->decoder;
    KilnGraph *graph = kiln_step_graph(step);
    KilnTensor *padding = kiln_cast(memories[PRESENT], KILN_U8);
    KilnTensor *table = positions_of(state, graph, TARGET, state->longest[TARGET], opts->width);
    KilnTensor *x = kiln_scale(kiln_nn_embedding(&state->embedding[TARGET], tokens),
                               sqrt((double)opts->width));

    x = kiln_add(x, kiln_index_select(table, 0, kiln_step_places(step, 1)));
    for (int64_t i = 0; i < decoder->count; i++)
        x = continue_layer(
            &decoder->layers[i], step, x,
            kiln_narrow(memories[KEYS_VALUES], 2, 2 * i * opts->width, 2 * opts->width), padding);
    return logits_of(state, kiln_nn_layer_norm(&decoder->norm, x));
}

static const KilnModelOps ops = {
    .signature = &signature,
    .setup = setup,
    .forward = forward,
    .encode = encode,
    .decode = decode,
};

const KilnComponent kiln_model_encoder_decoder = {
    .kind = KILN_KIND_MODEL,
    .name = "encoder_decoder",
    .summary = "Transformer that reads one sequence of tokens and writes another",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .check = check,
    .release = release,
    .ops.model = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_model_encoder_decoder, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
