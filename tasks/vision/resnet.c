/* Residual networks (He et al., "Deep residual learning for image recognition",
 * 2016) with torchvision's names, shapes, layout and initial distributions. The
 * stride of a bottleneck is on its 3×3 convolution, as there. */
#include "kiln.h"

typedef enum Stem { STEM_AUTO, STEM_SMALL, STEM_LARGE } Stem;

typedef struct Opts {
    int64_t depth, stem;
    bool zero_init_residual;
} Opts;

enum {
    MOST_BLOCKS = 16,
    BASIC_CONVS = 2,
    MOST_CONVS = 3,
    SMALL_BELOW = 64, /* pixels: what stem=auto takes for a small image */
    SMALL_SHRINKS = 8,
    LARGE_SHRINKS = 32,
};

/* Convolutions with their batch normalizations, and the shortcut's. */
typedef struct Block {
    char path[128];
    KilnConv2d conv[MOST_CONVS];
    KilnBatchNorm2d bn[MOST_CONVS];
    bool downsample;
    KilnConv2d down_conv;
    KilnBatchNorm2d down_bn;
} Block;

typedef struct State {
    bool large;   /* stem */
    size_t convs; /* in a block: 2 basic, 3 bottleneck */
    size_t count;
    KilnConv2d conv1;
    KilnBatchNorm2d bn1;
    Block blocks[MOST_BLOCKS];
    KilnLinear fc;
} State;

static const KilnChoice depths[] = { { "18", 18 }, { "34", 34 }, { "50", 50 }, { NULL, 0 } };
static const KilnChoice stems[] = {
    { "auto", STEM_AUTO },
    { "small", STEM_SMALL },
    { "large", STEM_LARGE },
    { NULL, 0 },
};

static const KilnField fields[] = {
    KILN_FIELD_ENUM(Opts, depth, "18", depths, "layers with weights; 50 has bottleneck blocks"),
    KILN_FIELD_ENUM(Opts, stem, "auto", stems,
                    "small: one 3x3 convolution; large: 7x7 with stride 2 and max-pooling, as "
                    "torchvision; auto: small for images below 64 pixels"),
    KILN_FIELD_BOOL(Opts, zero_init_residual, "false",
                    "start with blocks that pass their input through"),
    KILN_FIELD_END,
};

/* ---- Declaring ------------------------------------------------------------------ */

static KilnStatus check_images(const KilnShape *in, bool large, KilnError *err)
{
    int64_t least = large ? LARGE_SHRINKS : SMALL_SHRINKS;
    char text[KILN_SHAPE_TEXT];

    if (in->rank != 3)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "needs images [height, width, channels], but samples have shape %s",
                              kiln_shape_text(in, text, sizeof(text)));
    if (in->dim[0] < least || in->dim[1] < least)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "images of %lld×%lld are too small: with the %s stem the network "
                              "shrinks them %lld times and needs at least %lld×%lld; %s",
                              (long long)in->dim[0], (long long)in->dim[1],
                              large ? "large" : "small", (long long)least, (long long)least,
                              (long long)least,
                              large ? "use stem=small or larger images" : "use larger images");
    return KILN_OK;
}

static KilnStatus conv_bn(KilnConv2d *conv, KilnBatchNorm2d *bn, const KilnScope *scope,
                          const char *conv_name, const char *bn_name, KilnConv2dSpec spec,
                          KilnError *err)
{
    spec.kaiming_fan_out = true;
    KilnStatus status = kiln_nn_conv2d_init(conv, scope, conv_name, spec, err);
    if (status == KILN_OK)
        status = kiln_nn_batch_norm2d_init(bn, scope, bn_name, spec.out, err);
    return status;
}

static KilnStatus stem_init(State *state, const KilnScope *scope, int64_t channels, KilnError *err)
{
    KilnConv2dSpec spec = {
        .in = channels, .out = 64, .kernel = 3, .conv = { .stride = 1, .padding = 1 }
    };

    if (state->large) {
        spec.kernel = 7;
        spec.conv = (KilnConv) { .stride = 2, .padding = 3 };
    }
    return conv_bn(&state->conv1, &state->bn1, scope, "conv1", "bn1", spec, err);
}

/* The convolutions of a block, from `in` channels over `width` to `out`. */
static KilnStatus block_convs(Block *block, size_t convs, const KilnScope *scope, int64_t in,
                              int64_t width, int64_t out, int64_t stride, KilnError *err)
{
    static const char *const conv_names[] = { "conv1", "conv2", "conv3" };
    static const char *const bn_names[] = { "bn1", "bn2", "bn3" };
    const KilnConv same = { .stride = 1, .padding = 1 };
    const KilnConv strided = { .stride = stride, .padding = 1 };
    const KilnConv point = { .stride = 1 };
    const KilnConv2dSpec basic[] = {
        { .in = in, .out = width, .kernel = 3, .conv = strided },
        { .in = width, .out = out, .kernel = 3, .conv = same },
    };
    const KilnConv2dSpec bottleneck[] = {
        { .in = in, .out = width, .kernel = 1, .conv = point },
        { .in = width, .out = width, .kernel = 3, .conv = strided },
        { .in = width, .out = out, .kernel = 1, .conv = point },
    };
    const KilnConv2dSpec *specs = convs == BASIC_CONVS ? basic : bottleneck;
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < convs && status == KILN_OK; i++)
        status = conv_bn(&block->conv[i], &block->bn[i], scope, conv_names[i], bn_names[i],
                         specs[i], err);
    return status;
}

static KilnStatus block_init(Block *block, size_t convs, const KilnScope *scope, int64_t in,
                             int64_t width, int64_t stride, bool zero, KilnError *err)
{
    int64_t out = convs == BASIC_CONVS ? width : 4 * width;
    KilnStatus status = block_convs(block, convs, scope, in, width, out, stride, err);

    if (status < 0)
        return status;
    for (size_t i = 0; i < sizeof(block->path); i++)
        block->path[i] = scope->path[i];
    if (zero)
        kiln_param_set_init(block->bn[convs - 1].weight,
                            (KilnInit) { .kind = KILN_INIT_CONSTANT, .a = 0.0 });
    block->downsample = stride != 1 || in != out;
    if (!block->downsample)
        return KILN_OK;
    KilnConv2dSpec spec = { .in = in, .out = out, .kernel = 1, .conv = { .stride = stride } };
    KilnScope down = kiln_scope(scope, "downsample");
    return conv_bn(&block->down_conv, &block->down_bn, &down, "0", "1", spec, err);
}

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnShape *in,
                        int64_t out, KilnError *err)
{
    static const int blocks_18[] = { 2, 2, 2, 2 }, blocks_34[] = { 3, 4, 6, 3 };
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const int *blocks = opts->depth == 18 ? blocks_18 : blocks_34; /* 50 has 34's */
    int64_t channels = 64;

    state->large = opts->stem == STEM_LARGE ||
                   (opts->stem == STEM_AUTO && in->dim[0] >= SMALL_BELOW &&
                    in->dim[1] >= SMALL_BELOW);
    state->convs = opts->depth < 50 ? BASIC_CONVS : MOST_CONVS;
    state->count = 0;
    KilnStatus status = check_images(in, state->large, err);
    if (status == KILN_OK)
        status = stem_init(state, scope, in->dim[2], err);
    for (int layer = 0; layer < 4 && status == KILN_OK; layer++) {
        int64_t width = (int64_t)64 << layer;

        for (int i = 0; i < blocks[layer] && status == KILN_OK; i++) {
            KilnScope own = kiln_scope(scope, "layer%d.%d", layer + 1, i);
            int64_t stride = layer > 0 && i == 0 ? 2 : 1;

            status = block_init(&state->blocks[state->count++], state->convs, &own, channels, width,
                                stride, opts->zero_init_residual, err);
            channels = state->convs == BASIC_CONVS ? width : 4 * width;
        }
    }
    if (status == KILN_OK)
        status = kiln_nn_linear_init(&state->fc, scope, "fc", channels, out, true, err);
    return status;
}

/* ---- Recording ------------------------------------------------------------------- */

static KilnTensor *block_forward(const Block *block, size_t convs, KilnGraph *graph, KilnTensor *x,
                                 bool training)
{
    KilnTensor *y = x;

    kiln_graph_layer(graph, block->path);
    for (size_t i = 0; i < convs; i++) {
        y = kiln_nn_batch_norm2d(&block->bn[i], kiln_nn_conv2d(&block->conv[i], y), training);
        if (i + 1 < convs)
            y = kiln_relu(y);
    }
    if (block->downsample)
        x = kiln_nn_batch_norm2d(&block->down_bn, kiln_nn_conv2d(&block->down_conv, x), training);
    return kiln_relu(kiln_add(y, x));
}

static KilnTensor *forward(KilnInstance *self, KilnStep *step, KilnTensor *x)
{
    const State *state = kiln_state(self);
    KilnGraph *graph = kiln_step_graph(step);
    bool training = kiln_step_training(step);

    x = kiln_nn_batch_norm2d(&state->bn1, kiln_nn_conv2d(&state->conv1, x), training);
    kiln_graph_layer(graph, "relu");
    x = kiln_relu(x);
    if (state->large) {
        kiln_graph_layer(graph, "maxpool");
        x = kiln_max_pool2d(x, (KilnPool) { .kernel = 3, .stride = 2, .padding = 1 });
    }
    for (size_t i = 0; i < state->count; i++)
        x = block_forward(&state->blocks[i], state->convs, graph, x, training);
    kiln_graph_layer(graph, "avgpool");
    x = kiln_flatten(kiln_adaptive_avg_pool2d(x, 1, 1));
    kiln_graph_layer(graph, "");
    return kiln_nn_linear(&state->fc, x);
}

static const KilnModelOps ops = { .setup = setup, .forward = forward };

const KilnComponent kiln_model_resnet = {
    .kind = KILN_KIND_MODEL,
    .name = "resnet",
    .summary = "Residual network of 18, 34 or 50 layers, as torchvision's",
    .fields = fields,
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .ops.model = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_model_resnet, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
