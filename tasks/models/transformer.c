/* A transformer encoder (Vaswani et al., "Attention is all you need", 2017) with the norms before
 * its parts, over whatever its embedding makes a sequence of: patches of an image (Dosovitskiy et
 * al., "An image is worth 16x16 words", 2020), tokens, columns of a table (Gorishniy et al.,
 * "Revisiting deep learning models for tabular data", 2021). Names, shapes and initial
 * distributions are those of torchvision's VisionTransformer. */
#include "kiln.h"

#include <math.h>
#include <stdlib.h>

typedef enum Pool { POOL_CLASS_TOKEN, POOL_MEAN } Pool;
typedef enum Positions { POSITIONS_LEARNED, POSITIONS_NONE } Positions;

typedef struct Opts {
    KilnInstance *embed;
    int64_t width, layers, heads, mlp_dim;
    double dropout, attention_dropout;
    int64_t pool, positions;
} Opts;

static const KilnChoice pools[] = {
    { "class_token", POOL_CLASS_TOKEN },
    { "mean", POOL_MEAN },
    { NULL, 0 },
};
static const KilnChoice positions[] = {
    { "learned", POSITIONS_LEARNED },
    { "none", POSITIONS_NONE },
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
                   "dropout after the positions, after attention and within each MLP"),
    KILN_FIELD_F64(Opts, attention_dropout, "0.0", 0.0, 0.99, "dropout of attention weights"),
    KILN_FIELD_ENUM(Opts, pool, "class_token", pools,
                    "what stands for the sample in its logits: a token of its own, or the mean of "
                    "the sequence"),
    KILN_FIELD_ENUM(Opts, positions, "learned", positions,
                    "learned: a vector for each place is added; none: order has no effect"),
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
    KilnLayerNorm ln;
    KilnLinear head, token_head; /* weight NULL: not wanted */
} State;

/* torchvision's layer norms have a smaller eps than PyTorch's. */
static KilnStatus norm_init(KilnLayerNorm *norm, const KilnScope *scope, const char *name,
                            int64_t width, KilnError *err)
{
    KilnStatus status = kiln_nn_layer_norm_init(norm, scope, name, KILN_SHAPE(width), true, err);

    norm->eps = 1e-6;
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

static KilnStatus block_init(Block *block, const KilnScope *scope, const Opts *opts, KilnError *err)
{
    const KilnScope mlp = kiln_scope(scope, "mlp");
    KilnStatus status = norm_init(&block->ln_1, scope, "ln_1", opts->width, err);

    if (status >= 0)
        status = kiln_nn_multi_head_attention_init(&block->attention, scope, "self_attention",
                                                   opts->width, opts->heads,
                                                   opts->attention_dropout, err);
    if (status >= 0)
        status = norm_init(&block->ln_2, scope, "ln_2", opts->width, err);
    if (status >= 0)
        status = mlp_init(&block->mlp_0, &mlp, "0", opts->width, opts->mlp_dim, err);
    return status < 0 ? status
                      : mlp_init(&block->mlp_3, &mlp, "3", opts->mlp_dim, opts->width, err);
}

/* The class token, then the embedding, at the root as in torchvision's model. */
static KilnStatus embed_init(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                             KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    KilnStatus status = KILN_OK;

    if (opts->pool == POOL_CLASS_TOKEN && io->outputs[LOGITS].wanted)
        status = kiln_param_new(scope, "class_token", KILN_SHAPE(1, 1, opts->width),
                                (KilnInit) { .kind = KILN_INIT_CONSTANT }, &state->class_token,
                                err);
    return status < 0 ? status
                      : kiln_model_setup(opts->embed, scope, models, io->inputs, io->n_inputs,
                                         &opts->width, err);
}

static KilnStatus encoder_init(KilnInstance *self, const KilnScope *scope, int64_t length,
                               KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const KilnScope encoder = kiln_scope(scope, "encoder");
    const int64_t places = length + (state->class_token != NULL);
    KilnStatus status = KILN_OK;

    state->blocks = calloc((size_t)opts->layers, sizeof(*state->blocks));
    if (state->blocks == NULL)
        return kiln_error_nomem(err, (size_t)opts->layers * sizeof(*state->blocks));
    if (opts->positions == POSITIONS_LEARNED)
        status = kiln_param_new(&encoder, "pos_embedding", KILN_SHAPE(1, places, opts->width),
                                (KilnInit) { .kind = KILN_INIT_NORMAL, .a = 0.02 },
                                &state->pos_embedding, err);
    for (int64_t i = 0; i < opts->layers && status >= 0; i++) {
        const KilnScope own = kiln_scope(&encoder, "layers.encoder_layer_%lld", (long long)i);

        status = block_init(&state->blocks[i], &own, opts, err);
    }
    return status < 0 ? status : norm_init(&state->ln, &encoder, "ln", opts->width, err);
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
    return KILN_OK;
}

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const KilnScope heads = kiln_scope(scope, "heads");
    KilnModelOutput *logits = &io->outputs[LOGITS], *tokens = &io->outputs[TOKEN_LOGITS];
    KilnStatus status = embed_init(self, scope, io, err);

    if (status < 0)
        return status;
    const int64_t length = kiln_model_need_shape(opts->embed, 0).dim[0];
    status = encoder_init(self, scope, length, err);
    if (status >= 0 && logits->wanted)
        status = head_init(&state->head, &heads, "head", opts->width, logits->shape.dim[0], err);
    if (status >= 0 && tokens->wanted)
        status = head_init(&state->token_head, &heads, "token_head", opts->width,
                           tokens->shape.dim[1], err);
    tokens->shape.dim[0] = length;
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

static KilnTensor *run_block(const Block *block, KilnTensor *x, KilnAttentionMasks masks, double p,
                             KilnDropoutState *drop)
{
    KilnTensor *y = kiln_nn_layer_norm(&block->ln_1, x);

    y = kiln_nn_multi_head_attention(&block->attention, y, NULL, masks, drop);
    x = kiln_add(x, kiln_nn_dropout(y, p, drop));
    y = kiln_nn_linear(&block->mlp_0, kiln_nn_layer_norm(&block->ln_2, x));
    y = kiln_nn_dropout(kiln_gelu(y, KILN_GELU_ERF), p, drop);
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

static void forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    const bool drops = (opts->dropout > 0.0 || opts->attention_dropout > 0.0) &&
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
    x = kiln_nn_dropout(x, opts->dropout, drop);
    for (int64_t i = 0; i < opts->layers; i++)
        x = run_block(&state->blocks[i], x, masks, opts->dropout, drop);
    x = kiln_nn_layer_norm(&state->ln, x);
    KilnTensor *hidden = kiln_narrow(x, 1, first, kiln_tensor_dim(sequence.tensor, 1));
    outputs[HIDDEN] = (KilnModelValue) { hidden, sequence.lengths };
    if (state->head.weight != NULL)
        outputs[LOGITS].tensor = kiln_nn_linear(&state->head,
                                                first ? kiln_select(x, 1, 0) : mean(x, here));
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
