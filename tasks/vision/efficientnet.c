/* EfficientNet (Tan and Le, "EfficientNet: rethinking model scaling for convolutional neural
 * networks", 2019) with torchvision's names, shapes and initial distributions. */
#include "kiln.h"
#include "kiln/images/image_nets.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { STAGES = 7, STEM = 32, LAST_RATIO = 4, SQUEEZE = 4, SIZES = 8 };

typedef struct Opts {
    int64_t size;
    double *width, *depth, *dropout;
    double stochastic_depth;
} Opts;

static const KilnChoice size_names[] = {
    { "b0", 0 }, { "b1", 1 }, { "b2", 2 }, { "b3", 3 }, { "b4", 4 },
    { "b5", 5 }, { "b6", 6 }, { "b7", 7 }, { NULL, 0 },
};

static const KilnField fields[] = {
    KILN_FIELD_ENUM(Opts, size, "b0", size_names, "width, depth and dropout as in the paper"),
    KILN_FIELD_F64_OPT(Opts, width, "null", 0.05, 10.0,
                       "factor on all numbers of channels; null: the size's"),
    KILN_FIELD_F64_OPT(Opts, depth, "null", 0.05, 10.0,
                       "factor on the numbers of blocks; null: the size's"),
    KILN_FIELD_F64_OPT(Opts, dropout, "null", 0.0, 0.99,
                       "dropout before the last layer; null: the size's"),
    KILN_FIELD_F64(Opts, stochastic_depth, "0.2", 0.0, 0.99,
                   "in training, probability that a block after the last is skipped for a sample; "
                   "earlier ones proportionally less"),
    KILN_FIELD_END,
};

/* torchvision's. The norms of the largest have other numbers. */
typedef struct Scale {
    double width, depth, dropout, norm_eps, norm_momentum;
} Scale;

static const Scale scales[SIZES] = {
    { 1.0, 1.0, 0.2, 1e-5, 0.1 },   { 1.0, 1.1, 0.2, 1e-5, 0.1 },   { 1.1, 1.2, 0.3, 1e-5, 0.1 },
    { 1.2, 1.4, 0.3, 1e-5, 0.1 },   { 1.4, 1.8, 0.4, 1e-5, 0.1 },   { 1.6, 2.2, 0.4, 0.001, 0.01 },
    { 1.8, 2.6, 0.5, 0.001, 0.01 }, { 2.0, 3.1, 0.5, 0.001, 0.01 },
};

/* Table 1 of the paper. */
static const struct {
    int expand, kernel, stride, out, blocks;
} stages[STAGES] = {
    { 1, 3, 1, 16, 1 },  { 6, 3, 2, 24, 2 },  { 6, 5, 2, 40, 2 },  { 6, 3, 2, 80, 3 },
    { 6, 5, 1, 112, 3 }, { 6, 5, 2, 192, 4 }, { 6, 3, 1, 320, 1 },
};

typedef struct State {
    Scale scale;
    KilnConvNorm stem, last;
    KilnInvertedResidual *blocks;
    size_t count;
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

static int64_t channels(const Scale *scale, int n)
{
    return kiln_round_channels((double)n * scale->width);
}

static size_t blocks_of(const Scale *scale, size_t stage)
{
    return (size_t)ceil((double)stages[stage].blocks * scale->depth);
}

static KilnStatus conv_init(KilnConvNorm *layer, const KilnScope *scope, const Scale *scale,
                            KilnConvNormSpec spec, KilnError *err)
{
    spec.activation = KILN_ACTIVATION_SILU;
    spec.kaiming_fan_out = true;
    spec.eps = scale->norm_eps;
    spec.momentum = scale->norm_momentum;
    return kiln_conv_norm_init(layer, scope, "0", "1", spec, err);
}

/* Stage `stage` from `in` channels, of which the result's remain in *in. */
static KilnStatus stage_init(State *state, const KilnScope *features, size_t stage, size_t total,
                             double stochastic_depth, int64_t *in, KilnError *err)
{
    const KilnScope own = kiln_scope(features, "%zu", stage + 1);
    const Scale *scale = &state->scale;
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < blocks_of(scale, stage) && status >= 0; i++, state->count++) {
        const KilnInvertedResidualSpec spec = {
            .in = *in,
            .expanded = kiln_round_channels((double)(*in * stages[stage].expand)),
            .out = channels(scale, stages[stage].out),
            .kernel = stages[stage].kernel,
            .stride = i == 0 ? stages[stage].stride : 1,
            .squeezed = *in / SQUEEZE > 1 ? *in / SQUEEZE : 1,
            .activation = KILN_ACTIVATION_SILU,
            .squeeze_activation = KILN_ACTIVATION_SILU,
            .depth_dropout = stochastic_depth * (double)state->count / (double)total,
            .eps = scale->norm_eps,
            .momentum = scale->norm_momentum,
        };
        char name[24];

        snprintf(name, sizeof(name), "%zu", i);
        status = kiln_inverted_residual_init(&state->blocks[state->count], &own, name, spec, err);
        *in = spec.out;
    }
    return status;
}

static KilnStatus features_init(State *state, const KilnScope *scope, const Opts *opts, int64_t *in,
                                KilnError *err)
{
    const KilnScope features = kiln_scope(scope, "features");
    const KilnScope stem = kiln_scope(&features, "0"), last = kiln_scope(&features, "8");
    const Scale *scale = &state->scale;
    const KilnConvNormSpec first = {
        .in = *in, .out = channels(scale, STEM), .kernel = 3, .stride = 2
    };
    size_t total = 0;

    for (size_t i = 0; i < STAGES; i++)
        total += blocks_of(scale, i);
    state->blocks = calloc(total, sizeof(*state->blocks));
    if (state->blocks == NULL)
        return kiln_error_nomem(err, total * sizeof(*state->blocks));
    KilnStatus status = conv_init(&state->stem, &stem, scale, first, err);
    *in = first.out;
    for (size_t i = 0; i < STAGES && status >= 0; i++)
        status = stage_init(state, &features, i, total, opts->stochastic_depth, in, err);
    const KilnConvNormSpec to_last = { .in = *in, .out = LAST_RATIO * *in, .kernel = 1 };
    *in = to_last.out;
    return status < 0 ? status : conv_init(&state->last, &last, scale, to_last, err);
}

static KilnStatus head_init(State *state, const KilnScope *scope, int64_t in, int64_t classes,
                            KilnError *err)
{
    const KilnScope classifier = kiln_scope(scope, "classifier");
    const KilnInit uniform = { .kind = KILN_INIT_UNIFORM, .a = 1.0 / sqrt((double)classes) };
    KilnStatus status = kiln_nn_linear_init(&state->head, &classifier, "1", in, classes, true, err);

    if (status < 0)
        return status;
    kiln_param_set_init(state->head.weight, uniform);
    kiln_param_set_init(state->head.bias, (KilnInit) { .kind = KILN_INIT_CONSTANT });
    kiln_param_set_head(state->head.weight);
    kiln_param_set_head(state->head.bias);
    return KILN_OK;
}

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    int64_t in = io->inputs[0].shape.dim[2];

    state->scale = scales[opts->size];
    state->count = 0;
    if (opts->width != NULL)
        state->scale.width = *opts->width;
    if (opts->depth != NULL)
        state->scale.depth = *opts->depth;
    if (opts->dropout != NULL)
        state->scale.dropout = *opts->dropout;
    KilnStatus status = features_init(state, scope, opts, &in, err);
    io->outputs[HIDDEN].shape.dim[0] = in;
    return status < 0 || !io->outputs[LOGITS].wanted
               ? status
               : head_init(state, scope, in, io->outputs[LOGITS].shape.dim[0], err);
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    free(state->blocks);
}

/* ---- Recording ------------------------------------------------------------------------------ */

static void forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    const bool training = kiln_step_training(step);
    const bool drops = training && (state->scale.dropout > 0.0 || opts->stochastic_depth > 0.0);
    KilnGraph *graph = kiln_step_graph(step);
    KilnDropoutState drop_state = { 0 }, *drop = drops ? &drop_state : NULL;

    if (drops)
        drop_state = (KilnDropoutState) { .key = kiln_step_dropout_key(step),
                                          .stream = kiln_step_stream(step) << 32 };
    KilnTensor *x = kiln_conv_norm(&state->stem, inputs[0].tensor, training);
    for (size_t i = 0; i < state->count; i++)
        x = kiln_inverted_residual(&state->blocks[i], x, training, drop);
    x = kiln_conv_norm(&state->last, x, training);
    kiln_graph_layer(graph, "avgpool");
    x = kiln_flatten(kiln_adaptive_avg_pool2d(x, 1, 1));
    kiln_graph_layer(graph, "");
    outputs[HIDDEN].tensor = x;
    if (state->head.weight != NULL)
        outputs[LOGITS].tensor = kiln_nn_linear(&state->head,
                                                kiln_nn_dropout(x, state->scale.dropout, drop));
}

static const KilnModelOps ops = { .signature = &signature, .setup = setup, .forward = forward };

const KilnComponent kiln_model_efficientnet = {
    .kind = KILN_KIND_MODEL,
    .name = "efficientnet",
    .summary = "EfficientNet B0 to B7, as torchvision's",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .release = release,
    .ops.model = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_model_efficientnet, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
