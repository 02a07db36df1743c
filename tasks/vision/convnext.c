/* ConvNeXt (Liu et al., "A ConvNet for the 2020s", 2022) with torchvision's names, shapes and
 * initial distributions. */
#include "kiln.h"

#include <stdlib.h>

typedef enum Size { SIZE_TINY, SIZE_SMALL, SIZE_BASE, SIZE_LARGE } Size;

enum { STAGES = 4, PATCH = 4, SHRINKS = 32, MLP_RATIO = 4 };

typedef struct Opts {
    int64_t size, *depths, *widths;
    size_t depths_count, widths_count;
    double stochastic_depth, layer_scale;
} Opts;

static const KilnChoice sizes[] = {
    { "tiny", SIZE_TINY }, { "small", SIZE_SMALL }, { "base", SIZE_BASE }, { "large", SIZE_LARGE },
    { NULL, 0 },
};

static const struct {
    int64_t depths[STAGES], widths[STAGES];
} shapes[] = {
    [SIZE_TINY] = { { 3, 3, 9, 3 }, { 96, 192, 384, 768 } },
    [SIZE_SMALL] = { { 3, 3, 27, 3 }, { 96, 192, 384, 768 } },
    [SIZE_BASE] = { { 3, 3, 27, 3 }, { 128, 256, 512, 1024 } },
    [SIZE_LARGE] = { { 3, 3, 27, 3 }, { 192, 384, 768, 1536 } },
};

static const KilnField fields[] = {
    KILN_FIELD_ENUM(Opts, size, "tiny", sizes, "depths and widths as in the paper"),
    KILN_FIELD_I64_LIST(Opts, depths, "[]", 1, 1000,
                        "blocks of each of the 4 stages; empty: the size's"),
    KILN_FIELD_I64_LIST(Opts, widths, "[]", 1, 65536,
                        "channels of each of the 4 stages; empty: the size's"),
    KILN_FIELD_F64(Opts, stochastic_depth, "0.1", 0.0, 0.99,
                   "in training, probability that the last block is skipped for a sample; earlier "
                   "ones proportionally less (torchvision: tiny 0.1, small 0.4, base and large "
                   "0.5)"),
    KILN_FIELD_F64(Opts, layer_scale, "1.0e-06", 0.0, 1.0, "initial factor of each block's branch"),
    KILN_FIELD_END,
};

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;
    const size_t wrong = opts->depths_count != 0 && opts->depths_count != STAGES
                             ? opts->depths_count
                             : opts->widths_count;

    *ret_option = wrong == opts->widths_count ? "widths" : "depths";
    if (wrong != 0 && wrong != STAGES)
        return kiln_error_set(err, KILN_E_RANGE,
                              "expected one number for each of the %d stages, got %zu", STAGES,
                              wrong);
    return KILN_OK;
}

typedef struct Block {
    KilnConv2d depthwise;
    KilnLayerNorm norm;
    KilnLinear up, down;
    KilnParam *scale;
    double depth_dropout;
} Block;

typedef struct Stage {
    KilnLayerNorm norm;  /* before the convolution; of the stem after it */
    KilnConv2d conv;     /* shrinks */
    size_t first, count; /* of the blocks */
} Stage;

typedef struct State {
    Stage stages[STAGES];
    Block *blocks;
    KilnLayerNorm norm;
    KilnLinear head; /* weight NULL: not wanted */
} State;

static const KilnTensorSpec takes[] = {
    { .name = "image", .content = KILN_IMAGE, .dtype = KILN_F32, .axes = "height width channels" },
};

enum { LOGITS, HIDDEN };

static const KilnTensorSpec gives[] = {
    [LOGITS] = { .name = "logits", .content = KILN_VECTOR, .dtype = KILN_F32, .axes = "classes" },
    [HIDDEN] = { .name = "hidden", .content = KILN_VECTOR, .dtype = KILN_F32, .axes = "features" },
};

static const KilnSignature signature = KILN_SIGNATURE(takes, gives);

/* ---- Declaring ------------------------------------------------------------------------------ */

static KilnStatus norm_init(KilnLayerNorm *norm, const KilnScope *scope, const char *name,
                            int64_t width, KilnError *err)
{
    KilnStatus status = kiln_nn_layer_norm_init(norm, scope, name, KILN_SHAPE(width), true, err);

    norm->eps = 1e-6;
    return status;
}

static void draw(KilnParam *weight, KilnParam *bias)
{
    kiln_param_set_init(weight, (KilnInit) { .kind = KILN_INIT_TRUNC_NORMAL, .a = 0.02, .b = 2.0 });
    kiln_param_set_init(bias, (KilnInit) { .kind = KILN_INIT_CONSTANT });
}

static KilnStatus conv_init(KilnConv2d *conv, const KilnScope *scope, const char *name,
                            KilnConv2dSpec spec, KilnError *err)
{
    spec.bias = true;
    KilnStatus status = kiln_nn_conv2d_init(conv, scope, name, spec, err);
    if (status >= 0)
        draw(conv->weight, conv->bias);
    return status;
}

static KilnStatus linear_init(KilnLinear *linear, const KilnScope *scope, const char *name,
                              int64_t in, int64_t out, KilnError *err)
{
    KilnStatus status = kiln_nn_linear_init(linear, scope, name, in, out, true, err);

    if (status >= 0)
        draw(linear->weight, linear->bias);
    return status;
}

static KilnStatus block_init(Block *block, const KilnScope *scope, int64_t width, double scale,
                             KilnError *err)
{
    const KilnScope own = kiln_scope(scope, "block");
    const KilnConv2dSpec depthwise = {
        .in = width, .out = width, .kernel = 7, .conv = { .padding = 3, .groups = width }
    };
    KilnStatus status = kiln_param_new(scope, "layer_scale", KILN_SHAPE(width, 1, 1),
                                       (KilnInit) { .kind = KILN_INIT_CONSTANT, .a = scale },
                                       &block->scale, err);

    if (status >= 0)
        status = conv_init(&block->depthwise, &own, "0", depthwise, err);
    if (status >= 0)
        status = norm_init(&block->norm, &own, "2", width, err);
    if (status >= 0)
        status = linear_init(&block->up, &own, "3", width, MLP_RATIO * width, err);
    return status < 0 ? status
                      : linear_init(&block->down, &own, "5", MLP_RATIO * width, width, err);
}

/* What shrinks the image before stage `i`, from `in` channels. */
static KilnStatus shrink_init(Stage *stage, const KilnScope *features, size_t i, int64_t in,
                              int64_t out, KilnError *err)
{
    const int64_t size = i == 0 ? PATCH : 2;
    const KilnConv2dSpec spec = {
        .in = in, .out = out, .kernel = size, .conv = { .stride = size }
    };
    const KilnScope own = kiln_scope(features, "%zu", 2 * i);
    KilnStatus status = KILN_OK;

    if (i > 0)
        status = norm_init(&stage->norm, &own, "0", in, err);
    if (status >= 0)
        status = conv_init(&stage->conv, &own, i == 0 ? "0" : "1", spec, err);
    return status < 0 || i > 0 ? status : norm_init(&stage->norm, &own, "1", out, err);
}

static KilnStatus stages_init(State *state, const KilnScope *scope, const Opts *opts,
                              const int64_t *depths, const int64_t *widths, int64_t channels,
                              KilnError *err)
{
    const KilnScope features = kiln_scope(scope, "features");
    size_t count = 0, at = 0;
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < STAGES; i++)
        count += (size_t)depths[i];
    state->blocks = calloc(count, sizeof(*state->blocks));
    if (state->blocks == NULL)
        return kiln_error_nomem(err, count * sizeof(*state->blocks));
    for (size_t i = 0; i < STAGES && status >= 0; i++) {
        Stage *stage = &state->stages[i];

        *stage = (Stage) { .first = at, .count = (size_t)depths[i] };
        status = shrink_init(stage, &features, i, i == 0 ? channels : widths[i - 1], widths[i],
                             err);
        for (size_t k = 0; k < stage->count && status >= 0; k++, at++) {
            const KilnScope own = kiln_scope(&features, "%zu.%zu", 2 * i + 1, k);

            state->blocks[at].depth_dropout = opts->stochastic_depth * (double)at /
                                              ((double)count - 1.0);
            status = block_init(&state->blocks[at], &own, widths[i], opts->layer_scale, err);
        }
    }
    return status;
}

static KilnStatus head_init(State *state, const KilnScope *scope, int64_t width,
                            const KilnModelOutput *logits, KilnError *err)
{
    const KilnScope classifier = kiln_scope(scope, "classifier");
    KilnStatus status = norm_init(&state->norm, &classifier, "0", width, err);

    if (status < 0 || !logits->wanted)
        return status;
    status = linear_init(&state->head, &classifier, "2", width, logits->shape.dim[0], err);
    if (status < 0)
        return status;
    kiln_param_set_head(state->head.weight);
    kiln_param_set_head(state->head.bias);
    return KILN_OK;
}

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                        KilnError *err)
{
    const KilnShape *in = &io->inputs[0].shape;
    const Opts *opts = kiln_opts(self);
    const int64_t *depths = opts->depths_count > 0 ? opts->depths : shapes[opts->size].depths;
    const int64_t *widths = opts->widths_count > 0 ? opts->widths : shapes[opts->size].widths;

    if (in->dim[0] < SHRINKS || in->dim[1] < SHRINKS)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "images of %lld×%lld are too small: the network shrinks them %d "
                              "times and needs at least %d×%d; resize them (transform resize)",
                              (long long)in->dim[0], (long long)in->dim[1], SHRINKS, SHRINKS,
                              SHRINKS);
    KilnStatus status = stages_init(kiln_state(self), scope, opts, depths, widths, in->dim[2], err);
    io->outputs[HIDDEN].shape.dim[0] = widths[STAGES - 1];
    return status < 0
               ? status
               : head_init(kiln_state(self), scope, widths[STAGES - 1], &io->outputs[LOGITS], err);
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    free(state->blocks);
}

/* ---- Recording ------------------------------------------------------------------------------ */

static KilnTensor *run_block(const Block *block, KilnTensor *x, KilnDropoutState *drop)
{
    KilnTensor *scale = kiln_param_tensor(block->scale, kiln_tensor_graph(x));
    KilnTensor *y = kiln_nn_layer_norm(&block->norm, kiln_nn_conv2d(&block->depthwise, x));

    y = kiln_nn_linear(&block->down, kiln_gelu(kiln_nn_linear(&block->up, y), KILN_GELU_ERF));
    y = kiln_mul(y, kiln_reshape(scale, KILN_SHAPE(kiln_tensor_dim(x, 3))));
    return kiln_add(kiln_nn_stochastic_depth(y, block->depth_dropout, drop), x);
}

static void forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    KilnGraph *graph = kiln_step_graph(step);
    const bool drops = opts->stochastic_depth > 0.0 && kiln_step_training(step);
    KilnDropoutState drop = { 0 };
    KilnTensor *x = inputs[0].tensor;

    if (drops)
        drop = (KilnDropoutState) { .key = kiln_step_dropout_key(step),
                                    .stream = kiln_step_stream(step) << 32 };
    for (size_t i = 0; i < STAGES; i++) {
        const Stage *stage = &state->stages[i];

        x = i == 0 ? kiln_nn_layer_norm(&stage->norm, kiln_nn_conv2d(&stage->conv, x))
                   : kiln_nn_conv2d(&stage->conv, kiln_nn_layer_norm(&stage->norm, x));
        for (size_t k = 0; k < stage->count; k++)
            x = run_block(&state->blocks[stage->first + k], x, drops ? &drop : NULL);
    }
    kiln_graph_layer(graph, "avgpool");
    x = kiln_flatten(kiln_adaptive_avg_pool2d(x, 1, 1));
    kiln_graph_layer(graph, "");
    x = kiln_nn_layer_norm(&state->norm, x);
    outputs[HIDDEN].tensor = x;
    if (state->head.weight != NULL)
        outputs[LOGITS].tensor = kiln_nn_linear(&state->head, x);
}

static const KilnModelOps ops = { .signature = &signature, .setup = setup, .forward = forward };

const KilnComponent kiln_model_convnext = {
    .kind = KILN_KIND_MODEL,
    .name = "convnext",
    .summary = "ConvNeXt, tiny to large, as torchvision's",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .check = check,
    .release = release,
    .ops.model = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_model_convnext, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
