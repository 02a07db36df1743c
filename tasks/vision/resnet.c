/* Residual networks (He et al., "Deep residual learning for image recognition",
 * 2016) with torchvision's names, shapes and initial distributions: ResNet, ResNeXt
 * (groups; Xie et al. 2017) and wide ResNets (Zagoruyko and Komodakis 2016). */
#include "kiln.h"
#include "kiln/images/image_nets.h"

typedef enum Stem { STEM_AUTO, STEM_SMALL, STEM_LARGE } Stem;

typedef struct Opts {
    int64_t depth, stem, groups, width_per_group;
    bool zero_init_residual;
} Opts;

enum { SMALL_BELOW = 64 }; /* pixels: stem=auto treats smaller images as small */

typedef struct State {
    KilnResnet *net;
    KilnLinear fc; /* weight NULL: not wanted */
} State;

static const KilnChoice depths[] = {
    { "18", 18 }, { "34", 34 }, { "50", 50 }, { "101", 101 }, { "152", 152 }, { NULL, 0 },
};
static const KilnChoice stems[] = {
    { "auto", STEM_AUTO },
    { "small", STEM_SMALL },
    { "large", STEM_LARGE },
    { NULL, 0 },
};

static const KilnField fields[] = {
    KILN_FIELD_ENUM(Opts, depth, "18", depths,
                    "layers with weights; from 50 on, blocks are bottlenecks"),
    KILN_FIELD_ENUM(Opts, stem, "auto", stems,
                    "small: one 3x3 convolution; large: 7x7 with stride 2 and max-pooling, as "
                    "torchvision; auto: small for images below 64 pixels"),
    KILN_FIELD_I64(Opts, groups, "1", 1, 1024,
                   "groups of the 3x3 convolutions in bottlenecks (ResNeXt-50 32x4d: 32)"),
    KILN_FIELD_I64(
        Opts, width_per_group, "64", 1, 65536,
        "channels of each group in the first layer (ResNeXt-50 32x4d: 4; wide ResNet-50: "
        "128)"),
    KILN_FIELD_BOOL(Opts, zero_init_residual, "false",
                    "initialize residual blocks as the identity"),
    KILN_FIELD_END,
};

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
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const KilnResnetSpec spec = {
        .channels = in->dim[2],
        .depth = opts->depth,
        .groups = opts->groups,
        .width_per_group = opts->width_per_group,
        .large_stem = opts->stem == STEM_LARGE ||
                      (opts->stem == STEM_AUTO && in->dim[0] >= SMALL_BELOW &&
                       in->dim[1] >= SMALL_BELOW),
        .zero_init = opts->zero_init_residual,
    };
    KilnStatus status = kiln_resnet_new(scope, spec, in, &state->net, err);

    if (status < 0)
        return status;
    const int64_t channels = kiln_resnet_channels(state->net);
    io->outputs[HIDDEN].shape.dim[0] = channels;
    if (!io->outputs[LOGITS].wanted)
        return KILN_OK;
    status = kiln_nn_linear_init(&state->fc, scope, "fc", channels,
                                 io->outputs[LOGITS].shape.dim[0], true, err);
    if (status < 0)
        return status;
    kiln_param_set_head(state->fc.weight);
    kiln_param_set_head(state->fc.bias);
    return KILN_OK;
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    kiln_resnet_free(state->net);
}

static void forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs)
{
    const State *state = kiln_state(self);
    KilnGraph *graph = kiln_step_graph(step);
    KilnTensor *x = kiln_resnet(state->net, inputs[0].tensor, kiln_step_training(step));

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
    .summary = "Residual network of 18 to 152 layers, as torchvision's",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .release = release,
    .ops.model = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_model_resnet, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
