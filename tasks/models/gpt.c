/* Decoder-only transformers that predict the next token: the shapes of GPT-2 (Radford et al.,
 * "Language models are unsupervised multitask learners", 2019) and of Llama (Touvron et al.,
 * "LLaMA: Open and efficient foundation language models", 2023), and what lies between them.
 * `weights` also takes files with the names and layouts of Hugging Face's GPT-2 and Llama. */
#include "kiln.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef enum Positions { POSITIONS_LEARNED, POSITIONS_ROTARY } Positions;
typedef enum Norm { NORM_LAYER, NORM_RMS } Norm;
typedef enum FeedForward { FF_GELU, FF_GELU_TANH, FF_RELU, FF_SWIGLU } FeedForward;

typedef struct Opts {
    int64_t width, layers, heads, kv_heads, hidden, context;
    int64_t positions, norm, feed_forward;
    bool bias, tied;
    double dropout, norm_eps, rotary_base;
} Opts;

static const KilnChoice positions[] = {
    { "learned", POSITIONS_LEARNED },
    { "rotary", POSITIONS_ROTARY },
    { NULL, 0 },
};
static const KilnChoice norms[] = {
    { "layer", NORM_LAYER },
    { "rms", NORM_RMS },
    { NULL, 0 },
};
static const KilnChoice feed_forwards[] = {
    { "gelu", FF_GELU }, { "gelu_tanh", FF_GELU_TANH },
    { "relu", FF_RELU }, { "swiglu", FF_SWIGLU },
    { NULL, 0 },
};

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, width, "128", 1, 65536, "features of each token"),
    KILN_FIELD_I64(Opts, layers, "4", 1, 1000, "blocks of attention and feed-forward layers"),
    KILN_FIELD_I64(Opts, heads, "4", 1, 1024, "attention heads; they divide the width"),
    KILN_FIELD_I64(Opts, kv_heads, "0", 0, 1024,
                   "heads of keys and values, each for a group of heads (grouped-query "
                   "attention); they divide the heads; 0: as many as heads"),
    KILN_FIELD_I64(Opts, hidden, "0", 0, 1000000,
                   "width of the hidden layer in each feed-forward part; 0: four times the width"),
    KILN_FIELD_I64(Opts, context, "0", 0, 1e7,
                   "the most tokens that it reads; 0: those of a sample of the data"),
    KILN_FIELD_ENUM(Opts, positions, "learned", positions,
                    "learned: a vector for each position is added (GPT-2); rotary: queries and "
                    "keys are turned (Su et al. 2021; Llama)"),
    KILN_FIELD_F64(Opts, rotary_base, "10000.0", 1.0, 1e12, "base of rotary positions"),
    KILN_FIELD_ENUM(Opts, norm, "layer", norms,
                    "normalization before each part: layer (GPT-2) or rms (Llama)"),
    KILN_FIELD_F64(Opts, norm_eps, "1.0e-05", 1e-12, 1.0, "added to the variance in norms"),
    KILN_FIELD_ENUM(Opts, feed_forward, "gelu", feed_forwards,
                    "activation of the feed-forward parts: gelu, its tanh approximation (GPT-2), "
                    "relu, or swiglu (Shazeer 2020; Llama)"),
    KILN_FIELD_BOOL(Opts, bias, "true", "biases in linear layers and layer norms"),
    KILN_FIELD_BOOL(Opts, tied, "true",
                    "the output layer has the weights of the token embedding (Press and Wolf "
                    "2017)"),
    KILN_FIELD_F64(Opts, dropout, "0.0", 0.0, 0.99,
                   "dropout of embeddings, attention weights and the results of each part"),
    KILN_FIELD_END,
};

static int64_t kv_heads_of(const Opts *opts)
{
    return opts->kv_heads > 0 ? opts->kv_heads : opts->heads;
}

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    *ret_option = "heads";
    if (opts->width % opts->heads != 0)
        return kiln_error_set(err, KILN_E_RANGE,
                              "expected a number that divides the width %lld, got %lld",
                              (long long)opts->width, (long long)opts->heads);
    if (opts->positions == POSITIONS_ROTARY && opts->width / opts->heads % 2 != 0)
        return kiln_error_set(err, KILN_E_RANGE,
                              "rotary positions need heads of even width; %lld heads of width "
                              "%lld have %lld",
                              (long long)opts->heads, (long long)opts->width,
                              (long long)(opts->width / opts->heads));
    *ret_option = "kv_heads";
    if (opts->heads % kv_heads_of(opts) != 0)
        return kiln_error_set(err, KILN_E_RANGE,
                              "expected a number that divides the %lld heads, got %lld",
                              (long long)opts->heads, (long long)opts->kv_heads);
    return KILN_OK;
}

/* ---- What it takes and gives -------------------------------------------------------------- */

enum { TOKEN_LOGITS, HIDDEN };

enum { TOKENS, POSITIONS };

static const KilnTensorSpec takes[] = {
    [TOKENS] = { .name = "tokens",
                 .content = KILN_TOKENS,
                 .dtype = KILN_I32,
                 .axes = "time",
                 .varies = true },
    /* Of tokens in their documents; absent: a sample is one document. */
    [POSITIONS] = { .name = "positions",
                    .content = KILN_TOKENS,
                    .dtype = KILN_I32,
                    .axes = "time",
                    .varies = true,
                    .optional = true },
};

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

typedef struct GptNorm {
    KilnLayerNorm layer; /* weight NULL: rms */
    KilnRmsNorm rms;
} GptNorm;

typedef struct Block {
    GptNorm attention_norm, mlp_norm;
    KilnLinear qkv, attention_out;        /* rows of qkv: queries, keys, values */
    KilnLinear mlp_in, mlp_gate, mlp_out; /* mlp_gate.weight NULL: no gate */
} Block;

typedef struct State {
    KilnEmbedding tokens;
    KilnParam *positions; /* [context, width]; NULL: rotary */
    Block *blocks;
    GptNorm norm;
    KilnLinear head; /* weight NULL: tied, or no logits are wanted */
    int64_t context;
} State;

static KilnStatus norm_init(GptNorm *norm, const KilnScope *scope, const char *name,
                            const Opts *opts, KilnError *err)
{
    const KilnShape shape = KILN_SHAPE(opts->width);
    KilnStatus status;

    if (opts->norm == NORM_RMS) {
        status = kiln_nn_rms_norm_init(&norm->rms, scope, name, shape, err);
        norm->rms.eps = opts->norm_eps;
    } else {
        status = kiln_nn_layer_norm_init(&norm->layer, scope, name, shape, opts->bias, err);
        norm->layer.eps = opts->norm_eps;
    }
    return status;
}

static KilnTensor *run_norm(const GptNorm *norm, KilnTensor *x)
{
    return norm->layer.weight != NULL ? kiln_nn_layer_norm(&norm->layer, x)
                                      : kiln_nn_rms_norm(&norm->rms, x);
}

/* GPT-2's initial values: N(0, 0.02), for layers that add to the residual stream smaller by the
 * root of their number; biases 0. */
static KilnStatus linear_init(KilnLinear *linear, const KilnScope *scope, const char *name,
                              int64_t in, int64_t out, const Opts *opts, bool adds, KilnError *err)
{
    const double deviation = adds ? 0.02 / sqrt(2.0 * (double)opts->layers) : 0.02;
    KilnStatus status = kiln_nn_linear_init(linear, scope, name, in, out, opts->bias, err);

    if (status < 0)
        return status;
    kiln_param_set_init(linear->weight, (KilnInit) { .kind = KILN_INIT_NORMAL, .a = deviation });
    if (linear->bias != NULL)
        kiln_param_set_init(linear->bias, (KilnInit) { .kind = KILN_INIT_CONSTANT });
    return KILN_OK;
}

static KilnStatus block_init(Block *block, const KilnScope *scope, const Opts *opts, KilnError *err)
{
    const int64_t width = opts->width, hidden = opts->hidden > 0 ? opts->hidden : 4 * width;
    const int64_t qkv = width + 2 * kv_heads_of(opts) * (width / opts->heads);
    KilnStatus status = norm_init(&block->attention_norm, scope, "attention_norm", opts, err);

    if (status >= 0)
        status = linear_init(&block->qkv, scope, "qkv", width, qkv, opts, false, err);
    if (status >= 0)
        status = linear_init(&block->attention_out, scope, "attention_out", width, width, opts,
                             true, err);
    if (status >= 0)
        status = norm_init(&block->mlp_norm, scope, "mlp_norm", opts, err);
    if (status >= 0)
        status = linear_init(&block->mlp_in, scope, "mlp_in", width, hidden, opts, false, err);
    if (status >= 0 && opts->feed_forward == FF_SWIGLU)
        status = linear_init(&block->mlp_gate, scope, "mlp_gate", width, hidden, opts, false, err);
    if (status >= 0)
        status = linear_init(&block->mlp_out, scope, "mlp_out", hidden, width, opts, true, err);
    return status;
}

static KilnStatus blocks_init(State *state, const KilnScope *scope, const Opts *opts,
                              KilnError *err)
{
    KilnStatus status = KILN_OK;

    state->blocks = calloc((size_t)opts->layers, sizeof(*state->blocks));
    if (state->blocks == NULL)
        return kiln_error_nomem(err, (size_t)opts->layers * sizeof(*state->blocks));
    for (int64_t i = 0; i < opts->layers && status >= 0; i++) {
        const KilnScope own = kiln_scope(scope, "blocks.%lld", (long long)i);

        status = block_init(&state->blocks[i], &own, opts, err);
    }
    return status < 0 ? status : norm_init(&state->norm, scope, "norm", opts, err);
}

/* ---- Weights of other programs ----------------------------------------------------------------
 */

/* Hugging Face's GPT-2 keeps linear weights as [in, out]; names with and without a prefix are in
 * use. `name` is below the block (below the model, if block is -1). */
static KilnStatus gpt2_name(KilnParam *param, int64_t block, const char *name, KilnError *err)
{
    const KilnShape *shape = param != NULL ? kiln_param_shape(param) : NULL;
    KilnStatus status = KILN_OK;

    for (int i = 0; i < 2 && param != NULL && status >= 0; i++) {
        const KilnForeignTensor all = { .rows = shape->dim[0],
                                        .transposed = block >= 0 && shape->rank == 2 };
        const char *prefix = i == 0 ? "transformer." : "";

        status = block < 0 ? kiln_param_foreign(param, all, err, "%s%s", prefix, name)
                           : kiln_param_foreign(param, all, err, "%sh.%lld.%s", prefix,
                                                (long long)block, name);
    }
    return status;
}

static KilnStatus gpt2_linear(const KilnLinear *linear, int64_t block, const char *name,
                              KilnError *err)
{
    char full[64];
    KilnStatus status;

    snprintf(full, sizeof(full), "%s.weight", name);
    status = gpt2_name(linear->weight, block, full, err);
    snprintf(full, sizeof(full), "%s.bias", name);
    return status < 0 ? status : gpt2_name(linear->bias, block, full, err);
}

static KilnStatus gpt2_norm(const GptNorm *norm, int64_t block, const char *name, KilnError *err)
{
    const KilnLinear like = { .weight = norm->layer.weight, .bias = norm->layer.bias };

    return gpt2_linear(&like, block, name, err);
}

/* Rows of a linear layer in Hugging Face's Llama; rows 0: all. */
static KilnStatus llama_linear(const KilnLinear *linear, int64_t block, const char *name,
                               int64_t row, int64_t rows, KilnError *err)
{
    const KilnForeignTensor part = { .row = row,
                                     .rows = rows > 0 ? rows
                                                      : kiln_param_shape(linear->weight)->dim[0] };
    KilnStatus status = kiln_param_foreign(linear->weight, part, err, "model.layers.%lld.%s.weight",
                                           (long long)block, name);

    return status < 0 || linear->bias == NULL
               ? status
               : kiln_param_foreign(linear->bias, part, err, "model.layers.%lld.%s.bias",
                                    (long long)block, name);
}

static KilnStatus llama_weight(KilnParam *weight, const char *name, KilnError *err)
{
    const KilnForeignTensor all = { .rows = kiln_param_shape(weight)->dim[0] };

    return kiln_param_foreign(weight, all, err, "%s", name);
}

static KilnStatus name_gpt2_block(const Block *block, int64_t i, KilnError *err)
{
    const KilnForeignTensor mask = { 0 };
    const KilnLinear *linear[] = { &block->qkv, &block->attention_out, &block->mlp_in,
                                   &block->mlp_out };
    static const char *const names[] = { "attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj" };
    KilnStatus status = gpt2_norm(&block->attention_norm, i, "ln_1", err);

    if (status >= 0)
        status = gpt2_norm(&block->mlp_norm, i, "ln_2", err);
    for (size_t n = 0; n < KILN_COUNT(names) && status >= 0; n++)
        status = gpt2_linear(linear[n], i, names[n], err);
    /* Older files have the causal mask. */
    if (status >= 0)
        status = kiln_param_foreign(block->qkv.weight, mask, err, "h.%lld.attn.bias", (long long)i);
    return status < 0 ? status
                      : kiln_param_foreign(block->qkv.weight, mask, err,
                                           "transformer.h.%lld.attn.bias", (long long)i);
}

static KilnStatus name_llama_block(const Opts *opts, const Block *block, int64_t i, KilnError *err)
{
    const int64_t width = opts->width, kv = kv_heads_of(opts) * (width / opts->heads);
    const KilnLinear attention_norm = { .weight = block->attention_norm.rms.weight };
    const KilnLinear mlp_norm = { .weight = block->mlp_norm.rms.weight };
    const struct {
        const KilnLinear *linear;
        const char *name;
        int64_t row, rows;
    } parts[] = {
        { &attention_norm, "input_layernorm", 0, 0 },
        { &block->qkv, "self_attn.q_proj", 0, width },
        { &block->qkv, "self_attn.k_proj", width, kv },
        { &block->qkv, "self_attn.v_proj", width + kv, kv },
        { &block->attention_out, "self_attn.o_proj", 0, 0 },
        { &mlp_norm, "post_attention_layernorm", 0, 0 },
        { &block->mlp_gate, "mlp.gate_proj", 0, 0 },
        { &block->mlp_in, "mlp.up_proj", 0, 0 },
        { &block->mlp_out, "mlp.down_proj", 0, 0 },
    };
    KilnStatus status = KILN_OK;

    for (size_t n = 0; n < KILN_COUNT(parts) && status >= 0; n++)
        status = llama_linear(parts[n].linear, i, parts[n].name, parts[n].row, parts[n].rows, err);
    return status;
}

/* Name the tensors of Hugging Face's files for the two shapes that they come in. */
static KilnStatus name_foreign(const State *state, const Opts *opts, KilnError *err)
{
    const bool llama = opts->norm == NORM_RMS && opts->feed_forward == FF_SWIGLU;
    KilnParam *head = state->head.weight != NULL ? state->head.weight : state->tokens.weight;
    KilnStatus status;

    if (llama) {
        status = llama_weight(state->tokens.weight, "model.embed_tokens.weight", err);
        if (status >= 0)
            status = llama_weight(state->norm.rms.weight, "model.norm.weight", err);
    } else {
        status = gpt2_name(state->tokens.weight, -1, "wte.weight", err);
        if (status >= 0)
            status = gpt2_name(state->positions, -1, "wpe.weight", err);
        if (status >= 0)
            status = gpt2_norm(&state->norm, -1, "ln_f", err);
    }
    for (int64_t i = 0; i < opts->layers && status >= 0; i++)
        status = llama ? name_llama_block(opts, &state->blocks[i], i, err)
                       : name_gpt2_block(&state->blocks[i], i, err);
    return status < 0 ? status : llama_weight(head, "lm_head.weight", err);
}

static KilnStatus embeddings_init(State *state, const KilnScope *scope, const Opts *opts,
                                  int64_t n_ids, KilnError *err)
{
    const KilnInit normal = { .kind = KILN_INIT_NORMAL, .a = 0.02 };
    const KilnScope own = kiln_scope(scope, "position_embedding");
    KilnStatus status = kiln_nn_embedding_init(&state->tokens, scope, "token_embedding", n_ids,
                                               opts->width, -1, err);

    if (status < 0)
        return status;
    kiln_param_set_init(state->tokens.weight, normal);
    return opts->positions == POSITIONS_ROTARY
               ? KILN_OK
               : kiln_param_new(&own, "weight", KILN_SHAPE(state->context, opts->width), normal,
                                &state->positions, err);
}

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const KilnFeature *tokens = &io->inputs[TOKENS];
    KilnModelOutput *logits = &io->outputs[TOKEN_LOGITS];
    const int64_t length = tokens->shape.dim[0];

    if (tokens->n_ids < 1)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "needs the number of token ids, but feature \"%s\" has none; the "
                              "datamodule must set n_ids",
                              tokens->name);
    if (opts->context > 0 && opts->context < length)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "context: %lld tokens, but a sample of the data has %lld; raise it "
                              "or shorten the samples (datamodule.context)",
                              (long long)opts->context, (long long)length);
    state->context = opts->context > 0 ? opts->context : length;
    KilnStatus status = embeddings_init(state, scope, opts, tokens->n_ids, err);
    if (status >= 0)
        status = blocks_init(state, scope, opts, err);
    if (status >= 0 && logits->wanted && (!opts->tied || logits->shape.dim[1] != tokens->n_ids)) {
        status = kiln_nn_linear_init(&state->head, scope, "head", opts->width, logits->shape.dim[1],
                                     false, err);
        if (status >= 0)
            kiln_param_set_init(state->head.weight,
                                (KilnInit) { .kind = KILN_INIT_NORMAL, .a = 0.02 });
    }
    if (status >= 0)
        status = name_foreign(state, opts, err);
    logits->shape.dim[0] = length;
    io->outputs[HIDDEN].shape = KILN_SHAPE(length, opts->width);
    return status;
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    free(state->blocks);
}

/* ---- Forward ------------------------------------------------------------------------------- */

/* What all blocks of a step share. */
typedef struct Forward {
    const Opts *opts;
    KilnStep *step;
    KilnTensor *position; /* of the first token, where a step continues earlier ones; else NULL */
    KilnTensor *places;   /* [batch, time]: of tokens in their documents; NULL: in one document */
    KilnDropoutState *drop;
} Forward;

static KilnTensor *turn(const Forward *forward, KilnTensor *x)
{
    const KilnRotary rotary = { .base = forward->opts->rotary_base };

    return forward->position != NULL ? kiln_rotary_at(x, forward->position, rotary)
                                     : kiln_rotary(x, rotary);
}

/* Queries and rows of keys and values among all of qkv [batch, time, heads, width of a head]. */
static KilnTensor *attend_rows(const Forward *forward, KilnTensor *qkv, KilnAttention attention)
{
    const Opts *opts = forward->opts;
    const int64_t heads = opts->heads, groups = kv_heads_of(opts);
    KilnTensor *q = kiln_narrow(qkv, 2, 0, heads);
    KilnTensor *k = kiln_narrow(qkv, 2, heads, groups);
    KilnTensor *v = kiln_narrow(qkv, 2, heads + groups, groups);

    if (opts->positions == POSITIONS_ROTARY) {
        q = turn(forward, q);
        k = turn(forward, k);
    }
    if (forward->position != NULL) {
        k = kiln_step_cache(forward->step, k, 1);
        v = kiln_step_cache(forward->step, v, 1);
        attention.causal = false;
        attention.mask = kiln_cache_mask(forward->position, kiln_tensor_dim(q, 1),
                                         kiln_tensor_dim(k, 1));
    }
    return kiln_attention_within(q, k, v, forward->places, attention);
}

static KilnTensor *attend(const Forward *forward, const Block *block, KilnTensor *x)
{
    const Opts *opts = forward->opts;
    const int64_t batch = kiln_tensor_dim(x, 0), time = kiln_tensor_dim(x, 1);
    const int64_t heads = opts->heads, groups = kv_heads_of(opts), size = opts->width / heads;
    KilnTensor *qkv = kiln_nn_linear(&block->qkv, x), *y;
    KilnAttention attention = { .causal = true };

    if (forward->drop != NULL && opts->dropout > 0.0) {
        attention.dropout = opts->dropout;
        attention.key = forward->drop->key;
        attention.stream = forward->drop->stream++;
    }
    if (forward->position == NULL && opts->positions == POSITIONS_LEARNED && groups == heads)
        y = kiln_attention_packed_within(kiln_reshape(qkv, KILN_SHAPE(batch, time, 3, heads, size)),
                                         forward->places, attention);
    else
        y = attend_rows(forward,
                        kiln_reshape(qkv, KILN_SHAPE(batch, time, heads + 2 * groups, size)),
                        attention);
    return kiln_nn_linear(&block->attention_out,
                          kiln_reshape(y, KILN_SHAPE(batch, time, opts->width)));
}

static KilnTensor *feed_forward(const Opts *opts, const Block *block, KilnTensor *x)
{
    KilnTensor *y = kiln_nn_linear(&block->mlp_in, x);

    switch ((FeedForward)opts->feed_forward) {
    case FF_GELU:
        y = kiln_gelu(y, KILN_GELU_ERF);
        break;
    case FF_GELU_TANH:
        y = kiln_gelu(y, KILN_GELU_TANH);
        break;
    case FF_RELU:
        y = kiln_relu(y);
        break;
    case FF_SWIGLU:
        y = kiln_mul(kiln_silu(kiln_nn_linear(&block->mlp_gate, x)), y);
        break;
    }
    return kiln_nn_linear(&block->mlp_out, y);
}

static KilnTensor *run_block(const Forward *forward, const Block *block, KilnTensor *x)
{
    const double p = forward->opts->dropout;
    KilnTensor *y = attend(forward, block, run_norm(&block->attention_norm, x));

    x = kiln_add(x, kiln_nn_dropout(y, p, forward->drop));
    y = feed_forward(forward->opts, block, run_norm(&block->mlp_norm, x));
    return kiln_add(x, kiln_nn_dropout(y, p, forward->drop));
}

static KilnTensor *embed(const Forward *forward, const State *state, KilnTensor *tokens)
{
    const int64_t time = kiln_tensor_dim(tokens, 1);
    KilnTensor *x = kiln_nn_embedding(&state->tokens, tokens);

    if (state->positions == NULL)
        return x;
    KilnTensor *all = kiln_param_tensor(state->positions, kiln_tensor_graph(x));
    KilnTensor *places = forward->position != NULL ? kiln_step_places(forward->step, time)
                                                   : forward->places;
    return kiln_add(x, places != NULL ? kiln_embedding(all, places, -1)
                                      : kiln_narrow(all, 0, 0, time));
}

static void forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    KilnTensor *tokens = inputs[TOKENS].tensor, *lengths = inputs[TOKENS].lengths;
    KilnDropoutState drop = { 0 };
    Forward shared = { .opts = opts,
                       .step = step,
                       .position = kiln_step_position(step),
                       .places = inputs[POSITIONS].tensor };

    if (opts->dropout > 0.0 && kiln_step_training(step)) {
        drop = (KilnDropoutState) { .key = kiln_step_dropout_key(step),
                                    .stream = kiln_step_stream(step) << 32 };
        shared.drop = &drop;
    }
    KilnTensor *x = kiln_nn_dropout(embed(&shared, state, tokens), opts->dropout, shared.drop);
    for (int64_t i = 0; i < opts->layers; i++)
        x = run_block(&shared, &state->blocks[i], x);
    x = run_norm(&state->norm, x);
    outputs[HIDDEN] = (KilnModelValue) { x, lengths };
    KilnTensor *logits =
        state->head.weight != NULL
            ? kiln_nn_linear(&state->head, x)
            : kiln_linear(x, kiln_param_tensor(state->tokens.weight, kiln_tensor_graph(x)), NULL);
    outputs[TOKEN_LOGITS] = (KilnModelValue) { logits, lengths };
}

static const KilnModelOps ops = {
    .signature = &signature,
    .setup = setup,
    .forward = forward,
};

const KilnComponent kiln_model_gpt = {
    .kind = KILN_KIND_MODEL,
    .name = "gpt",
    .summary = "Decoder-only transformer: the shapes of GPT-2 and Llama",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .check = check,
    .release = release,
    .ops.model = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_model_gpt, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
