/* A transformer encoder (Vaswani et al., "Attention is all you need", 2017) with the norms before
 * or after its parts, over whatever its embedding makes a sequence of: patches of an image
 * (Dosovitskiy et al., "An image is worth 16x16 words", 2020), tokens, columns of a table
 * (Gorishniy et al., "Revisiting deep learning models for tabular data", 2021). Names, shapes and
 * initial distributions are those of torchvision's VisionTransformer. With the norms after its
 * parts it has the shape of BERT (Devlin et al., 2019), and `weights` also takes the names of
 * Hugging Face's. */
#include "kiln.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef enum Pool { POOL_CLASS_TOKEN, POOL_MEAN, POOL_FIRST, POOL_POOLER } Pool;
typedef enum Positions { POSITIONS_LEARNED, POSITIONS_NONE } Positions;
typedef enum FeedForward { FEED_GELU, FEED_REGLU } FeedForward;

typedef struct Opts {
    KilnInstance *embed;
    int64_t width, layers, heads, mlp_dim;
    double dropout, attention_dropout;
    int64_t pool, positions, max_length;
    bool norm_first, embed_norm, first_norm;
    double norm_eps;
    int64_t feed_forward;
    double *residual_dropout;
    bool head_relu;
} Opts;

static const KilnChoice pools[] = {
    { "class_token", POOL_CLASS_TOKEN }, { "mean", POOL_MEAN }, { "first", POOL_FIRST },
    { "pooler", POOL_POOLER },           { NULL, 0 },
};
static const KilnChoice positions[] = {
    { "learned", POSITIONS_LEARNED },
    { "none", POSITIONS_NONE },
    { NULL, 0 },
};

static const KilnChoice feed_forwards[] = {
    { "gelu", FEED_GELU },
    { "reglu", FEED_REGLU },
    { NULL, 0 },
};

static const KilnField fields[] = {
    KILN_FIELD_COMPONENT(Opts, embed, KILN_KIND_MODEL, "patch_embedding",
                         "what makes a sequence of vectors of a sample"),
    KILN_FIELD_I64(Opts, width, "64", 1, 65536, "features of each vector"),
    KILN_FIELD_I64(Opts, layers, "4", 1, 1000, "encoder layers"),
    KILN_FIELD_I64(Opts, heads, "4", 1, 1024, "attention heads; they divide the width"),
    KILN_FIELD_I64(Opts, mlp_dim, "128", 1, 1000000, "width of the hidden layer in each MLP"),
    KILN_FIELD_F64(Opts, dropout, "0.0", 0.0, 0.99,
                   "dropout after the positions, after attention, after each MLP and, with norms "
                   "first, within it"),
    KILN_FIELD_F64(Opts, attention_dropout, "0.0", 0.0, 0.99, "dropout of attention weights"),
    KILN_FIELD_ENUM(Opts, pool, "class_token", pools,
                    "what stands for the sample in its logits: a token of its own, the mean of "
                    "the sequence, its first place (BERT's [CLS]), or that through a linear layer "
                    "and tanh (BERT's pooler)"),
    KILN_FIELD_ENUM(Opts, positions, "learned", positions,
                    "learned: a vector for each place is added; none: order has no effect"),
    KILN_FIELD_I64(Opts, max_length, "0", 0, 1e7,
                   "places that have a vector; 0: those of a sample of the data"),
    KILN_FIELD_BOOL(Opts, norm_first, "true",
                    "norms before each part and one at the end (ViT); false: after each part "
                    "(BERT)"),
    KILN_FIELD_BOOL(Opts, embed_norm, "false", "a norm after the positions (BERT)"),
    KILN_FIELD_F64(Opts, norm_eps, "1.0e-06", 1e-12, 1.0,
                   "added to the variance in norms (BERT: 1e-12)"),
    KILN_FIELD_BOOL(Opts, first_norm, "true",
                    "with norms first, the first layer has one before its attention; false: it has "
                    "none, and the class token begins as the columns do (FT-Transformer)"),
    KILN_FIELD_ENUM(
        Opts, feed_forward, "gelu", feed_forwards,
        "between the layers of each MLP: gelu, or reglu, half of them times ReLU of the "
        "other half"),
    KILN_FIELD_F64_OPT(Opts, residual_dropout, "null", 0.0, 0.99,
                       "dropout after the positions, after attention and after each MLP, so that "
                       "`dropout` is only that within the MLPs; null: as dropout"),
    KILN_FIELD_BOOL(Opts, head_relu, "false", "ReLU before the linear layer of the classes"),
    KILN_FIELD_END,
};

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    *ret_option = "heads";
    if (opts->width % opts->heads != 0)
        return kiln_error_set(err, KILN_E_RANGE,
                              "expected a number that divides the width %lld, got %lld",
                              (long long)opts->width, (long long)opts->heads);
    return KILN_OK;
}

/* ---- What it takes and gives -------------------------------------------------------------- */

enum { LOGITS, TOKEN_LOGITS, HIDDEN };

static const KilnTensorSpec gives[] = {
    [LOGITS] = { .name = "logits", .content = KILN_VECTOR, .axes = "classes" },
    [TOKEN_LOGITS] = { .name = "token_logits",
                       .content = KILN_SEQUENCE,
                       .axes = "time classes",
                       .varies = true },
    [HIDDEN] = { .name = "hidden",
                 .content = KILN_SEQUENCE,
                 .axes = "time features",
                 .varies = true },
};

static const KilnSignature signature = { .inputs_of = "embed",
                                         .outputs = gives,
                                         .n_outputs = KILN_COUNT(gives) };

static const KilnTensorSpec embedded[] = {
    { .name = "sequence", .content = KILN_SEQUENCE, .axes = "time features" },
};

static const KilnModelUse models[] = {
    { .option = "embed", .needs = embedded, .n_needs = KILN_COUNT(embedded) },
};

/* ---- Setup --------------------------------------------------------------------------------- */

typedef struct Block {
    KilnLayerNorm ln_1, ln_2;
    KilnMultiHeadAttention attention;
    KilnLinear mlp_0, mlp_3;
} Block;

typedef struct State {
    KilnParam *class_token, *pos_embedding; /* NULL: none */
    Block *blocks;
    KilnLayerNorm embed_norm, ln;        /* weight NULL: none */
    KilnLinear pooler, head, token_head; /* weight NULL: not wanted */
} State;

static KilnStatus norm_init(KilnLayerNorm *norm, const KilnScope *scope, const char *name,
                            const Opts *opts, KilnError *err)
{
    KilnStatus status = kiln_nn_layer_norm_init(norm, scope, name, KILN_SHAPE(opts->width), true,
                                                err);

    norm->eps = opts->norm_eps;
    return status;
}

static KilnStatus mlp_init(KilnLinear *linear, const KilnScope *scope, const char *name, int64_t in,
                           int64_t out, KilnError *err)
{
    KilnStatus status = kiln_nn_linear_init(linear, scope, name, in, out, true, err);

    if (status < 0)
        return status;
    kiln_param_set_init(linear->weight, (KilnInit) { .kind = KILN_INIT_XAVIER_UNIFORM, .a = 1.0 });
    kiln_param_set_init(linear->bias, (KilnInit) { .kind = KILN_INIT_NORMAL, .a = 1e-6 });
    return KILN_OK;
}

/* `has_norm`: before the attention. */
static KilnStatus block_init(Block *block, const KilnScope *scope, const Opts *opts, bool has_norm,
                             KilnError *err)
{
    const KilnScope mlp = kiln_scope(scope, "mlp");
    const int64_t gates = opts->feed_forward == FEED_REGLU ? 2 : 1;
    KilnStatus status = has_norm ? norm_init(&block->ln_1, scope, "ln_1", opts, err) : KILN_OK;

    if (status >= 0)
        status = kiln_nn_multi_head_attention_init(&block->attention, scope, "self_attention",
                                                   opts->width, opts->heads,
                                                   opts->attention_dropout, err);
    if (status >= 0)
        status = norm_init(&block->ln_2, scope, "ln_2", opts, err);
    if (status >= 0)
        status = mlp_init(&block->mlp_0, &mlp, "0", opts->width, gates * opts->mlp_dim, err);
    return status < 0 ? status
                      : mlp_init(&block->mlp_3, &mlp, "3", opts->mlp_dim, opts->width, err);
}

/* The class token, then the embedding, at the root as in torchvision's model. */
static KilnStatus embed_init(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                             KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const KilnInit zero = { .kind = KILN_INIT_CONSTANT };
    const KilnInit as_columns = { .kind = KILN_INIT_UNIFORM, .a = 1.0 / sqrt((double)opts->width) };
    KilnStatus status = KILN_OK;

    if (opts->pool == POOL_CLASS_TOKEN && io->outputs[LOGITS].wanted)
        status = kiln_param_new(scope, "class_token", KILN_SHAPE(1, 1, opts->width),
                                opts->first_norm ? zero : as_columns, &state->class_token, err);
    return status < 0 ? status
                      : kiln_model_setup(opts->embed, scope, models, io->inputs, io->n_inputs,
                                         &opts->width, err);
}

/* Vectors of `length` places of the sequence, of a class token before it, or of max_length. */
static KilnStatus positions_init(State *state, const KilnScope *encoder, const Opts *opts,
                                 int64_t length, KilnError *err)
{
    const int64_t used = length + (state->class_token != NULL);
    const int64_t places = opts->max_length > 0 ? opts->max_length : used;

    if (opts->positions != POSITIONS_LEARNED)
        return KILN_OK;
    if (places < used)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "max_length: %lld places, but a sample of the data has %lld; raise "
                              "it or shorten the samples (datamodule.max_length)",
                              (long long)places, (long long)used);
    return kiln_param_new(encoder, "pos_embedding", KILN_SHAPE(1, places, opts->width),
                          (KilnInit) { .kind = KILN_INIT_NORMAL, .a = 0.02 }, &state->pos_embedding,
                          err);
}

static KilnStatus encoder_init(KilnInstance *self, const KilnScope *scope, int64_t length,
                               KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const KilnScope encoder = kiln_scope(scope, "encoder");

    state->blocks = calloc((size_t)opts->layers, sizeof(*state->blocks));
    if (state->blocks == NULL)
        return kiln_error_nomem(err, (size_t)opts->layers * sizeof(*state->blocks));
    KilnStatus status = positions_init(state, &encoder, opts, length, err);
    if (status >= 0 && opts->embed_norm)
        status = norm_init(&state->embed_norm, &encoder, "embed_norm", opts, err);
    for (int64_t i = 0; i < opts->layers && status >= 0; i++) {
        const KilnScope own = kiln_scope(&encoder, "layers.encoder_layer_%lld", (long long)i);

        status = block_init(&state->blocks[i], &own, opts,
                            !opts->norm_first || opts->first_norm || i > 0, err);
    }
    return status < 0 || !opts->norm_first ? status
                                           : norm_init(&state->ln, &encoder, "ln", opts, err);
}

/* A linear layer that starts at zero. */
static KilnStatus head_init(KilnLinear *head, const KilnScope *scope, const char *name,
                            int64_t width, int64_t classes, KilnError *err)
{
    const KilnInit zero = { .kind = KILN_INIT_CONSTANT };
    KilnStatus status = kiln_nn_linear_init(head, scope, name, width, classes, true, err);

    if (status < 0)
        return status;
    kiln_param_set_init(head->weight, zero);
    kiln_param_set_init(head->bias, zero);
    kiln_param_set_head(head->weight);
    kiln_param_set_head(head->bias);
    return KILN_OK;
}

static KilnStatus heads_init(State *state, const KilnScope *scope, const Opts *opts,
                             const KilnModelIo *io, KilnError *err)
{
    const KilnModelOutput *logits = &io->outputs[LOGITS], *tokens = &io->outputs[TOKEN_LOGITS];
    const KilnScope heads = kiln_scope(scope, "heads");
    KilnStatus status = KILN_OK;

    if (logits->wanted && opts->pool == POOL_POOLER)
        status = mlp_init(&state->pooler, &heads, "pooler", opts->width, opts->width, err);
    if (status >= 0 && logits->wanted)
        status = head_init(&state->head, &heads, "head", opts->width, logits->shape.dim[0], err);
    if (status >= 0 && tokens->wanted)
        status = head_init(&state->token_head, &heads, "token_head", opts->width,
                           tokens->shape.dim[1], err);
    return status;
}

/* ---- Weights of other programs ----------------------------------------------------------------
 */

static KilnStatus name_one(KilnParam *param, KilnForeignTensor part, const char *layer,
                           const char *ending, KilnError *err)
{
    KilnStatus status = kiln_param_foreign(param, part, err, "bert.%s.%s", layer, ending);

    return status < 0 ? status : kiln_param_foreign(param, part, err, "%s.%s", layer, ending);
}

/* A layer of Hugging Face's BERT, with and without a head above it, holds rows [row, row + rows) of
 * the weight and bias; rows 0: all. Older files call those of norms gamma and beta. */
static KilnStatus name_layer(KilnParam *weight, KilnParam *bias, int64_t row, int64_t rows,
                             const char *layer, KilnError *err)
{
    const int64_t all = kiln_param_shape(weight)->dim[0];
    const KilnForeignTensor part = { .row = row, .rows = rows > 0 ? rows : all };
    KilnStatus status = name_one(weight, part, layer, "weight", err);

    if (status >= 0)
        status = name_one(bias, part, layer, "bias", err);
    if (status >= 0 && kiln_param_shape(weight)->rank == 1)
        status = name_one(weight, part, layer, "gamma", err);
    if (status >= 0 && kiln_param_shape(weight)->rank == 1)
        status = name_one(bias, part, layer, "beta", err);
    return status;
}

/* The classifier above BERT has one name. */
static KilnStatus name_head(const KilnLinear *head, KilnError *err)
{
    const KilnForeignTensor all = { .rows = kiln_param_shape(head->weight)->dim[0] };
    KilnStatus status = kiln_param_foreign(head->weight, all, err, "classifier.weight");

    return status < 0 ? status : kiln_param_foreign(head->bias, all, err, "classifier.bias");
}

static KilnStatus name_block(const Block *block, int64_t width, int64_t i, KilnError *err)
{
    static const char *const parts[] = { "query", "key", "value" };
    const KilnMultiHeadAttention *attention = &block->attention;
    const struct {
        KilnParam *weight, *bias;
        const char *name;
    } layers[] = {
        { attention->out_proj.weight, attention->out_proj.bias, "attention.output.dense" },
        { block->ln_1.weight, block->ln_1.bias, "attention.output.LayerNorm" },
        { block->mlp_0.weight, block->mlp_0.bias, "intermediate.dense" },
        { block->mlp_3.weight, block->mlp_3.bias, "output.dense" },
        { block->ln_2.weight, block->ln_2.bias, "output.LayerNorm" },
    };
    KilnStatus status = KILN_OK;
    char name[96];

    for (size_t k = 0; k < KILN_COUNT(parts) && status >= 0; k++) {
        snprintf(name, sizeof(name), "encoder.layer.%lld.attention.self.%s", (long long)i,
                 parts[k]);
        status = name_layer(attention->in_proj_weight, attention->in_proj_bias, (int64_t)k * width,
                            width, name, err);
    }
    for (size_t k = 0; k < KILN_COUNT(layers) && status >= 0; k++) {
        snprintf(name, sizeof(name), "encoder.layer.%lld.%s", (long long)i, layers[k].name);
        status = name_layer(layers[k].weight, layers[k].bias, 0, 0, name, err);
    }
    return status;
}

/* Name the tensors of Hugging Face's BERT. */
static KilnStatus name_bert(const State *state, const Opts *opts, KilnError *err)
{
    const KilnForeignTensor row = { .rows = 1 };
    const char *places = "embeddings.position_embeddings";
    KilnStatus status = KILN_OK;

    if (state->pos_embedding != NULL)
        status = name_one(state->pos_embedding, row, places, "weight", err);
    if (status >= 0 && state->pos_embedding != NULL) /* numbers in older files */
        status = name_one(state->pos_embedding, (KilnForeignTensor) { 0 }, "embeddings",
                          "position_ids", err);
    if (status >= 0 && state->embed_norm.weight != NULL)
        status = name_layer(state->embed_norm.weight, state->embed_norm.bias, 0, 0,
                            "embeddings.LayerNorm", err);
    for (int64_t i = 0; i < opts->layers && status >= 0; i++)
        status = name_block(&state->blocks[i], opts->width, i, err);
    if (status >= 0 && state->pooler.weight != NULL)
        status = name_layer(state->pooler.weight, state->pooler.bias, 0, 0, "pooler.dense", err);
    if (status >= 0 && state->head.weight != NULL)
        status = name_head(&state->head, err);
    return status < 0 || state->token_head.weight == NULL ? status
                                                          : name_head(&state->token_head, err);
}

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    KilnStatus status = embed_init(self, scope, io, err);

    if (status < 0)
        return status;
    const int64_t length = kiln_model_need_shape(opts->embed, 0).dim[0];
    status = encoder_init(self, scope, length, err);
    if (status >= 0)
        status = heads_init(state, scope, opts, io, err);
    if (status >= 0 && !opts->norm_first)
        status = name_bert(state, opts, err);
    io->outputs[TOKEN_LOGITS].shape.dim[0] = length;
    io->outputs[HIDDEN].shape = KILN_SHAPE(length, opts->width);
    return status;
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    free(state->blocks);
}

/* ---- Forward ------------------------------------------------------------------------------- */

/* 1 for the places before each sample's length (as float), else 0: [batch, places]. */
static KilnTensor *present(KilnTensor *x, KilnTensor *lengths)
{
    const int64_t batch = kiln_tensor_dim(x, 0), places = kiln_tensor_dim(x, 1);
    KilnTensor *place = kiln_arange(kiln_tensor_graph(x), kiln_tensor_dtype(x), 0.0, 1.0, places);

    return kiln_lt(place, kiln_reshape(lengths, KILN_SHAPE(batch, 1)));
}

/* What is added to attention's products: -infinity for places after the end. */
static KilnAttentionMasks padding_mask(KilnTensor *x, KilnTensor *present_places)
{
    const int64_t batch = kiln_tensor_dim(x, 0), places = kiln_tensor_dim(x, 1);

    if (present_places == NULL)
        return (KilnAttentionMasks) { 0 };
    KilnTensor *here = kiln_reshape(present_places, KILN_SHAPE(batch, 1, 1, places));
    KilnTensor *zeros = kiln_scale(here, 0.0);
    KilnTensor *absent = kiln_shift(kiln_neg(here), 1.0);
    return (KilnAttentionMasks) { .mask = kiln_masked_fill(zeros, absent, (double)-INFINITY) };
}

static double residual_dropout(const Opts *opts)
{
    return opts->residual_dropout != NULL ? *opts->residual_dropout : opts->dropout;
}

/* What is between the layers of the MLP. */
static KilnTensor *activate(const Opts *opts, KilnTensor *x)
{
    if (opts->feed_forward == FEED_GELU)
        return kiln_gelu(x, KILN_GELU_ERF);
    KilnTensor *half = kiln_narrow(x, -1, 0, opts->mlp_dim);
    return kiln_mul(half, kiln_relu(kiln_narrow(x, -1, opts->mlp_dim, opts->mlp_dim)));
}

/* BERT's: the norms come after the sums. */
static KilnTensor *run_post_block(const Opts *opts, const Block *block, KilnTensor *x,
                                  KilnAttentionMasks masks, KilnDropoutState *drop)
{
    const double p = residual_dropout(opts);
    KilnTensor *y = kiln_nn_multi_head_attention(&block->attention, x, NULL, masks, drop);

    x = kiln_nn_layer_norm(&block->ln_1, kiln_add(x, kiln_nn_dropout(y, p, drop)));
    y = kiln_nn_linear(&block->mlp_3, activate(opts, kiln_nn_linear(&block->mlp_0, x)));
    return kiln_nn_layer_norm(&block->ln_2, kiln_add(x, kiln_nn_dropout(y, p, drop)));
}

static KilnTensor *run_block(const Opts *opts, const Block *block, KilnTensor *x,
                             KilnAttentionMasks masks, KilnDropoutState *drop)
{
    const double p = residual_dropout(opts);
    KilnTensor *y = block->ln_1.weight != NULL ? kiln_nn_layer_norm(&block->ln_1, x) : x;

    y = kiln_nn_multi_head_attention(&block->attention, y, NULL, masks, drop);
    x = kiln_add(x, kiln_nn_dropout(y, p, drop));
    y = kiln_nn_linear(&block->mlp_0, kiln_nn_layer_norm(&block->ln_2, x));
    y = kiln_nn_dropout(activate(opts, y), opts->dropout, drop);
    return kiln_add(x, kiln_nn_dropout(kiln_nn_linear(&block->mlp_3, y), p, drop));
}

/* The class token before the sequence, and the positions. */
static KilnTensor *add_places(const State *state, KilnTensor *x)
{
    KilnGraph *graph = kiln_tensor_graph(x);
    const int64_t batch = kiln_tensor_dim(x, 0), width = kiln_tensor_dim(x, 2);

    if (state->class_token != NULL) {
        KilnTensor *token = kiln_param_tensor(state->class_token, graph);

        token = kiln_broadcast_to(token, KILN_SHAPE(batch, 1, width));
        x = kiln_concat((KilnTensor *[]) { token, x }, 2, 1);
    }
    if (state->pos_embedding == NULL)
        return x;
    KilnTensor *places = kiln_param_tensor(state->pos_embedding, graph);
    return kiln_add(x, kiln_narrow(places, 1, 0, kiln_tensor_dim(x, 1)));
}

/* The mean of the places that are in the sequence. */
static KilnTensor *mean(KilnTensor *x, KilnTensor *present_places)
{
    const int64_t batch = kiln_tensor_dim(x, 0), places = kiln_tensor_dim(x, 1);
    const int time[] = { 1 };

    if (present_places == NULL)
        return kiln_mean_axes(x, time, 1, false);
    KilnTensor *weight = kiln_reshape(present_places, KILN_SHAPE(batch, places, 1));
    KilnTensor *count = kiln_clamp(kiln_sum_axes(present_places, time, 1, true), 1.0,
                                   (double)INFINITY);
    return kiln_div(kiln_sum_axes(kiln_mul(x, weight), time, 1, false), count);
}

/* What stands for each sample: [batch, width]. `here` as in mean(). */
static KilnTensor *pool(const Opts *opts, const State *state, KilnTensor *x, KilnTensor *here,
                        KilnDropoutState *drop)
{
    if (opts->pool == POOL_MEAN)
        return mean(x, here);
    KilnTensor *first = kiln_select(x, 1, 0);
    if (opts->pool != POOL_POOLER)
        return first;
    return kiln_nn_dropout(kiln_tanh(kiln_nn_linear(&state->pooler, first)), opts->dropout, drop);
}

static void forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    const bool drops = (opts->dropout > 0.0 || opts->attention_dropout > 0.0 ||
                        residual_dropout(opts) > 0.0) &&
                       kiln_step_training(step);
    const int first = state->class_token != NULL;
    KilnDropoutState drop_state = { 0 }, *drop = drops ? &drop_state : NULL;
    KilnModelValue sequence;

    if (drops)
        drop_state = (KilnDropoutState) { .key = kiln_step_dropout_key(step),
                                          .stream = kiln_step_stream(step) << 32 };
    kiln_model_forward(opts->embed, step, inputs, &sequence);
    KilnTensor *x = add_places(state, sequence.tensor);
    KilnTensor *here = NULL;
    if (sequence.lengths != NULL)
        here = present(x, kiln_shift(kiln_to_float(sequence.lengths), (double)first));
    const KilnAttentionMasks masks = padding_mask(x, here);
    if (state->embed_norm.weight != NULL)
        x = kiln_nn_layer_norm(&state->embed_norm, x);
    x = kiln_nn_dropout(x, residual_dropout(opts), drop);
    for (int64_t i = 0; i < opts->layers; i++)
        x = opts->norm_first ? run_block(opts, &state->blocks[i], x, masks, drop)
                             : run_post_block(opts, &state->blocks[i], x, masks, drop);
    if (state->ln.weight != NULL)
        x = kiln_nn_layer_norm(&state->ln, x);
    KilnTensor *hidden = kiln_narrow(x, 1, first, kiln_tensor_dim(sequence.tensor, 1));
    outputs[HIDDEN] = (KilnModelValue) { hidden, sequence.lengths };
    if (state->head.weight != NULL) {
        KilnTensor *sample = pool(opts, state, x, here, drop);

        outputs[LOGITS].tensor = kiln_nn_linear(&state->head,
                                                opts->head_relu ? kiln_relu(sample) : sample);
    }
    if (state->token_head.weight != NULL)
        outputs[TOKEN_LOGITS] = (KilnModelValue) { kiln_nn_linear(&state->token_head, hidden),
                                                   sequence.lengths };
}

static const KilnModelOps ops = {
    .signature = &signature,
    .models = models,
    .n_models = KILN_COUNT(models),
    .setup = setup,
    .forward = forward,
};

const KilnComponent kiln_model_transformer = {
    .kind = KILN_KIND_MODEL,
    .name = "transformer",
    .summary = "Transformer encoder over patches, tokens or columns",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .check = check,
    .release = release,
    .ops.model = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_model_transformer, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
