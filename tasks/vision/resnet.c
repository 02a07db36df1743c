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
    LAYERS = 4, /* of residual blocks */
    MOST_BLOCKS = 16,
    MOST_IN_LAYER = 6,
    SMALL_BELOW = 64, /* pixels: stem=auto treats smaller images as small */
    SMALL_SHRINKS = 8,
    LARGE_SHRINKS = 32,
};

typedef struct State {
    bool large; /* stem */
    size_t count;
    KilnConv2d conv1;
    KilnBatchNorm2d bn1;
    KilnResidualBlock blocks[MOST_BLOCKS];
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
                    "initialize residual blocks as the identity"),
    KILN_FIELD_END,
};

/* ---- Declaring ------------------------------------------------------------------ */

static KilnStatus check_images(const KilnShape *in, bool large, KilnError *err)
{
    int64_t least = large ? LARGE_SHRINKS : SMALL_SHRINKS;

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

static KilnStatus stem_init(State *state, const KilnScope *scope, int64_t channels, KilnError *err)
{
    KilnConv2dSpec spec = {
        .in = channels, .out = 64, .kernel = 3, .conv = { .padding = 1 }, .kaiming_fan_out = true
    };

    if (state->large) {
        spec.kernel = 7;
        spec.conv = (KilnConv) { .stride = 2, .padding = 3 };
    }
    KilnStatus status = kiln_nn_conv2d_init(&state->conv1, scope, "conv1", spec, err);
    return status < 0 ? status
                      : kiln_nn_batch_norm2d_init(&state->bn1, scope, "bn1", spec.out, err);
}

/* Layer number `layer` from 0, of n blocks. */
static KilnStatus layer_init(State *state, const KilnScope *scope, int layer, int n,
                             KilnResidualSpec spec, KilnError *err)
{
    static const char *const names[MOST_IN_LAYER] = { "0", "1", "2", "3", "4", "5" };
    const KilnScope own = kiln_scope(scope, "layer%d", layer + 1);
    KilnStatus status = KILN_OK;

    for (int i = 0; i < n && status == KILN_OK; i++) {
        KilnResidualBlock *block = &state->blocks[state->count++];

        spec.stride = layer > 0 && i == 0 ? 2 : 1;
        status = kiln_nn_residual_block_init(block, &own, names[i], spec, err);
        spec.in = block->out;
    }
    return status;
}

static const KilnTensorSpec takes[] = {
    { .name = "image", .content = KILN_IMAGE, .dtype = KILN_F32, .axes = "height width channels" },
};

enum { LOGITS, HIDDEN };

static const KilnTensorSpec gives[] = {
    [LOGITS] = { .name = "logits", .content = KILN_VECTOR, .dtype = KILN_F32, .axes = "classes" },
    [HIDDEN] = { .name = "hidden", .content = KILN_VECTOR, .dtype = KILN_F32, .axes = "features" },
};

static const KilnSignature signature = KILN_SIGNATURE(takes, gives);

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                        KilnError *err)
{
    const KilnShape *in = &io->inputs[0].shape;
    static const int blocks_18[] = { 2, 2, 2, 2 }, blocks_34[] = { 3, 4, 6, 3 };
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const int *blocks = opts->depth == 18 ? blocks_18 : blocks_34; /* 50 has 34's */
    int64_t channels = 64;

    state->large = opts->stem == STEM_LARGE ||
                   (opts->stem == STEM_AUTO && in->dim[0] >= SMALL_BELOW &&
                    in->dim[1] >= SMALL_BELOW);
    state->count = 0;
    KilnStatus status = check_images(in, state->large, err);
    if (status == KILN_OK)
        status = stem_init(state, scope, in->dim[2], err);
    for (int layer = 0; layer < LAYERS && status == KILN_OK; layer++) {
        const KilnResidualSpec spec = { .in = channels,
                                        .width = (int64_t)64 << layer,
                                        .bottleneck = opts->depth >= 50,
                                        .zero_init = opts->zero_init_residual };

        status = layer_init(state, scope, layer, blocks[layer], spec, err);
        channels = state->blocks[state->count - 1].out;
    }
    io->outputs[HIDDEN].shape.dim[0] = channels;
    if (status == KILN_OK && io->outputs[LOGITS].wanted)
        status = kiln_nn_linear_init(&state->fc, scope, "fc", channels,
                                     io->outputs[LOGITS].shape.dim[0], true, err);
    return status;
}

/* ---- Recording ------------------------------------------------------------------- */

static void forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs)
{
    const State *state = kiln_state(self);
    KilnGraph *graph = kiln_step_graph(step);
    bool training = kiln_step_training(step);

    KilnTensor *x = kiln_nn_conv2d(&state->conv1, inputs[0].tensor);
    x = kiln_nn_batch_norm2d(&state->bn1, x, training);
    kiln_graph_layer(graph, "relu");
    x = kiln_relu(x);
    if (state->large) {
        kiln_graph_layer(graph, "maxpool");
        x = kiln_max_pool2d(x, (KilnPool) { .kernel = 3, .stride = 2, .padding = 1 });
    }
    for (size_t i = 0; i < state->count; i++)
        x = kiln_nn_residual_block(&state->blocks[i], x, training);
    kiln_graph_layer(graph, "avgpool");
    x = kiln_flatten(kiln_adaptive_avg_pool2d(x, 1, 1));
    kiln_graph_layer(graph, "");
    outputs[HIDDEN].tensor = x;
    if (state->fc.weight != NULL)
        outputs[LOGITS].tensor = kiln_nn_linear(&state->fc, x);
}

static const KilnModelOps ops = { .signature = &signature, .setup = setup, .forward = forward };

const KilnComponent kiln_model_resnet = {
    .kind = KILN_KIND_MODEL,
    .name = "resnet",
    .summary = "Residual network of 18, 34 or 50 layers, as torchvision's",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .ops.model = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_model_resnet, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
