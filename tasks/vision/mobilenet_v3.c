/* MobileNet V3 (Howard et al., "Searching for MobileNetV3", 2019) with torchvision's names, shapes
 * and initial distributions. */
#include "kiln.h"
#include "kiln/images/image_nets.h"

#include <stdio.h>

typedef enum Size { SIZE_SMALL, SIZE_LARGE } Size;

enum { BLOCKS = 15, STEM = 16 };

typedef struct Opts {
    int64_t size;
    double width, dropout;
} Opts;

static const KilnChoice sizes[] = {
    { "small", SIZE_SMALL },
    { "large", SIZE_LARGE },
    { NULL, 0 },
};

static const KilnField fields[] = {
    KILN_FIELD_ENUM(Opts, size, "small", sizes, "which of the paper's two networks"),
    KILN_FIELD_F64(Opts, width, "1.0", 0.05, 10.0, "factor on all numbers of channels"),
    KILN_FIELD_F64(Opts, dropout, "0.2", 0.0, 0.99, "dropout before the last layer"),
    KILN_FIELD_END,
};

/* Tables 1 and 2 of the paper. */
typedef struct Row {
    int kernel, expanded, out;
    bool squeezes, hard_swish;
    int stride;
} Row;

static const struct {
    int count, last;
    Row rows[BLOCKS];
} networks[] = {
    [SIZE_SMALL] = { 11,
                     1024,
                     { { 3, 16, 16, true, false, 2 },
                       { 3, 72, 24, false, false, 2 },
                       { 3, 88, 24, false, false, 1 },
                       { 5, 96, 40, true, true, 2 },
                       { 5, 240, 40, true, true, 1 },
                       { 5, 240, 40, true, true, 1 },
                       { 5, 120, 48, true, true, 1 },
                       { 5, 144, 48, true, true, 1 },
                       { 5, 288, 96, true, true, 2 },
                       { 5, 576, 96, true, true, 1 },
                       { 5, 576, 96, true, true, 1 } } },
    [SIZE_LARGE] = { 15,
                     1280,
                     { { 3, 16, 16, false, false, 1 },
                       { 3, 64, 24, false, false, 2 },
                       { 3, 72, 24, false, false, 1 },
                       { 5, 72, 40, true, false, 2 },
                       { 5, 120, 40, true, false, 1 },
                       { 5, 120, 40, true, false, 1 },
                       { 3, 240, 80, false, true, 2 },
                       { 3, 200, 80, false, true, 1 },
                       { 3, 184, 80, false, true, 1 },
                       { 3, 184, 80, false, true, 1 },
                       { 3, 480, 112, true, true, 1 },
                       { 3, 672, 112, true, true, 1 },
                       { 5, 672, 160, true, true, 2 },
                       { 5, 960, 160, true, true, 1 },
                       { 5, 960, 160, true, true, 1 } } },
};

/* torchvision's of this network. */
static const double norm_eps = 0.001, norm_momentum = 0.01;

typedef struct State {
    KilnConvNorm stem, last;
    KilnInvertedResidual blocks[BLOCKS];
    int count;
    KilnLinear hidden, head; /* head's weight NULL: not wanted */
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

static int64_t channels(const Opts *opts, int n)
{
    return kiln_round_channels((double)n * opts->width);
}

static KilnStatus conv_init(KilnConvNorm *layer, const KilnScope *scope, int64_t in, int64_t out,
                            int64_t kernel, int64_t stride, KilnError *err)
{
    const KilnConvNormSpec spec = { .in = in,
                                    .out = out,
                                    .kernel = kernel,
                                    .stride = stride,
                                    .activation = KILN_ACTIVATION_HARD_SWISH,
                                    .kaiming_fan_out = true,
                                    .eps = norm_eps,
                                    .momentum = norm_momentum };

    return kiln_conv_norm_init(layer, scope, "0", "1", spec, err);
}

static KilnStatus blocks_init(State *state, const KilnScope *features, const Opts *opts,
                              int64_t *in, KilnError *err)
{
    KilnStatus status = KILN_OK;

    state->count = networks[opts->size].count;
    for (int i = 0; i < state->count && status >= 0; i++) {
        const Row *row = &networks[opts->size].rows[i];
        const int64_t expanded = channels(opts, row->expanded);
        const KilnInvertedResidualSpec spec = {
            .in = *in,
            .expanded = expanded,
            .out = channels(opts, row->out),
            .kernel = row->kernel,
            .stride = row->stride,
            .squeezed = row->squeezes ? kiln_round_channels((double)(expanded / 4)) : 0,
            .activation = row->hard_swish ? KILN_ACTIVATION_HARD_SWISH : KILN_ACTIVATION_RELU,
            .squeeze_activation = KILN_ACTIVATION_RELU,
            .hard_gate = true,
            .eps = norm_eps,
            .momentum = norm_momentum,
        };
        char name[24];

        snprintf(name, sizeof(name), "%d", i + 1);
        status = kiln_inverted_residual_init(&state->blocks[i], features, name, spec, err);
        *in = spec.out;
    }
    return status;
}

static KilnStatus linear_init(KilnLinear *linear, const KilnScope *scope, const char *name,
                              int64_t in, int64_t out, KilnError *err)
{
    KilnStatus status = kiln_nn_linear_init(linear, scope, name, in, out, true, err);

    if (status < 0)
        return status;
    kiln_param_set_init(linear->weight, (KilnInit) { .kind = KILN_INIT_NORMAL, .a = 0.01 });
    kiln_param_set_init(linear->bias, (KilnInit) { .kind = KILN_INIT_CONSTANT });
    return KILN_OK;
}

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const KilnScope features = kiln_scope(scope, "features");
    const KilnScope classifier = kiln_scope(scope, "classifier");
    const KilnScope stem = kiln_scope(&features, "0");
    const int64_t width = channels(opts, networks[opts->size].last);
    int64_t in = channels(opts, STEM);

    KilnStatus status = conv_init(&state->stem, &stem, io->inputs[0].shape.dim[2], in, 3, 2, err);
    if (status >= 0)
        status = blocks_init(state, &features, opts, &in, err);
    const KilnScope last = kiln_scope(&features, "%d", state->count + 1);
    if (status >= 0)
        status = conv_init(&state->last, &last, in, 6 * in, 1, 1, err);
    if (status >= 0)
        status = linear_init(&state->hidden, &classifier, "0", 6 * in, width, err);
    io->outputs[HIDDEN].shape.dim[0] = width;
    if (status < 0 || !io->outputs[LOGITS].wanted)
        return status;
    status = linear_init(&state->head, &classifier, "3", width, io->outputs[LOGITS].shape.dim[0],
                         err);
    if (status < 0)
        return status;
    kiln_param_set_head(state->head.weight);
    kiln_param_set_head(state->head.bias);
    return KILN_OK;
}

/* ---- Recording ------------------------------------------------------------------------------ */

static void forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    const bool training = kiln_step_training(step), drops = training && opts->dropout > 0.0;
    KilnGraph *graph = kiln_step_graph(step);
    KilnDropoutState drop = { 0 };

    if (drops)
        drop = (KilnDropoutState) { .key = kiln_step_dropout_key(step),
                                    .stream = kiln_step_stream(step) << 32 };
    KilnTensor *x = kiln_conv_norm(&state->stem, inputs[0].tensor, training);
    for (int i = 0; i < state->count; i++)
        x = kiln_inverted_residual(&state->blocks[i], x, training, NULL);
    x = kiln_conv_norm(&state->last, x, training);
    kiln_graph_layer(graph, "avgpool");
    x = kiln_flatten(kiln_adaptive_avg_pool2d(x, 1, 1));
    kiln_graph_layer(graph, "");
    x = kiln_hard_swish(kiln_nn_linear(&state->hidden, x));
    outputs[HIDDEN].tensor = x;
    if (state->head.weight != NULL)
        outputs[LOGITS].tensor =
            kiln_nn_linear(&state->head, kiln_nn_dropout(x, opts->dropout, drops ? &drop : NULL));
}

static const KilnModelOps ops = { .signature = &signature, .setup = setup, .forward = forward };

const KilnComponent kiln_model_mobilenet_v3 = {
    .kind = KILN_KIND_MODEL,
    .name = "mobilenet_v3",
    .summary = "MobileNet V3, small or large, as torchvision's",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .ops.model = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_model_mobilenet_v3, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
