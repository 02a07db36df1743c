/* The inverted residual block of MobileNet V3 and EfficientNet. */
#include "kiln/images/image_nets.h"
#include "nn/layer.h"

int64_t kiln_round_channels(double channels)
{
    enum { DIVISOR = 8 };
    const int64_t near = ((int64_t)(channels + DIVISOR / 2.0) / DIVISOR) * DIVISOR;
    const int64_t rounded = near > DIVISOR ? near : DIVISOR;

    return (double)rounded < 0.9 * channels ? rounded + DIVISOR : rounded;
}

static KilnStatus squeeze_init(KilnInvertedResidual *block, const KilnScope *scope, KilnError *err)
{
    const KilnInvertedResidualSpec *spec = &block->spec;
    const KilnConv2dSpec fc1 = { .in = spec->expanded,
                                 .out = spec->squeezed,
                                 .kernel = 1,
                                 .bias = true,
                                 .kaiming_fan_out = true };
    const KilnConv2dSpec fc2 = { .in = spec->squeezed,
                                 .out = spec->expanded,
                                 .kernel = 1,
                                 .bias = true,
                                 .kaiming_fan_out = true };
    const KilnInit zero = { .kind = KILN_INIT_CONSTANT };
    KilnStatus status = kiln_nn_conv2d_init(&block->fc1, scope, "fc1", fc1, err);

    if (status >= 0)
        status = kiln_nn_conv2d_init(&block->fc2, scope, "fc2", fc2, err);
    if (status < 0)
        return status;
    kiln_param_set_init(block->fc1.bias, zero);
    kiln_param_set_init(block->fc2.bias, zero);
    return KILN_OK;
}

KilnStatus kiln_inverted_residual_init(KilnInvertedResidual *block, const KilnScope *scope,
                                       const char *name, KilnInvertedResidualSpec spec,
                                       KilnError *err)
{
    const KilnScope own = kiln_scope(scope, "%s", name);
    const KilnConvNormSpec common = { .kaiming_fan_out = true,
                                      .eps = spec.eps,
                                      .momentum = spec.momentum };
    KilnConvNormSpec expand = common, depthwise = common, project = common;
    KilnStatus status = KILN_OK;
    int parts = 0;

    *block = (KilnInvertedResidual) { .spec = spec };
    kiln_layer_path(block->path, &own);
    expand.in = spec.in;
    expand.out = depthwise.in = depthwise.out = depthwise.groups = project.in = spec.expanded;
    expand.kernel = project.kernel = 1;
    expand.activation = depthwise.activation = spec.activation;
    depthwise.kernel = spec.kernel;
    depthwise.stride = spec.stride;
    project.out = spec.out;
    if (spec.expanded != spec.in) {
        const KilnScope part = kiln_scope(&own, "block.%d", parts++);
        status = kiln_conv_norm_init(&block->expand, &part, "0", "1", expand, err);
    }
    if (status >= 0) {
        const KilnScope part = kiln_scope(&own, "block.%d", parts++);
        status = kiln_conv_norm_init(&block->depthwise, &part, "0", "1", depthwise, err);
    }
    if (status >= 0 && spec.squeezed > 0) {
        const KilnScope part = kiln_scope(&own, "block.%d", parts++);
        status = squeeze_init(block, &part, err);
    }
    const KilnScope last = kiln_scope(&own, "block.%d", parts);
    return status < 0 ? status
                      : kiln_conv_norm_init(&block->project, &last, "0", "1", project, err);
}

/* x, with each channel of each image times what its mean over the image says. */
static KilnTensor *squeeze_excite(const KilnInvertedResidual *block, KilnTensor *x)
{
    KilnTensor *scale = kiln_adaptive_avg_pool2d(x, 1, 1);

    scale = kiln_activate(kiln_nn_conv2d(&block->fc1, scale), block->spec.squeeze_activation);
    scale = kiln_nn_conv2d(&block->fc2, scale);
    scale = block->spec.hard_gate ? kiln_hard_sigmoid(scale) : kiln_sigmoid(scale);
    return kiln_mul(x, scale);
}

KilnTensor *kiln_inverted_residual(const KilnInvertedResidual *block, KilnTensor *x, bool training,
                                   KilnDropoutState *drop)
{
    const char *before = kiln_layer_enter(x, block->path);
    const KilnInvertedResidualSpec *spec = &block->spec;
    KilnGraph *graph = kiln_tensor_graph(x);
    KilnTensor *y = x;

    if (spec->expanded != spec->in)
        y = kiln_conv_norm(&block->expand, y, training);
    y = kiln_conv_norm(&block->depthwise, y, training);
    if (spec->squeezed > 0)
        y = squeeze_excite(block, y);
    y = kiln_conv_norm(&block->project, y, training);
    if (spec->stride <= 1 && spec->in == spec->out)
        y = kiln_add(kiln_nn_stochastic_depth(y, spec->depth_dropout, drop), x);
    kiln_graph_layer(graph, before);
    return y;
}
