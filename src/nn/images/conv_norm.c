/* A convolution with its batch normalization and activation. */
#include "kiln/images/image_nets.h"
#include "kiln/field.h"

KilnTensor *kiln_activate(KilnTensor *x, KilnActivation activation)
{
    switch (activation) {
    case KILN_ACTIVATION_NONE:
        break;
    case KILN_ACTIVATION_RELU:
        return kiln_relu(x);
    case KILN_ACTIVATION_HARD_SWISH:
        return kiln_hard_swish(x);
    case KILN_ACTIVATION_SILU:
        return kiln_silu(x);
    }
    return x;
}

KilnStatus kiln_conv_norm_init(KilnConvNorm *layer, const KilnScope *scope, const char *conv,
                               const char *norm, KilnConvNormSpec spec, KilnError *err)
{
    const int64_t dilation = spec.dilation > 0 ? spec.dilation : 1;
    const KilnConv2dSpec conv_spec = { .in = spec.in,
                                       .out = spec.out,
                                       .kernel = spec.kernel,
                                       .conv = { .stride = spec.stride,
                                                 .padding = (spec.kernel - 1) / 2 * dilation,
                                                 .dilation = dilation,
                                                 .groups = spec.groups },
                                       .kaiming_fan_out = spec.kaiming_fan_out };
    KilnStatus status = kiln_nn_conv2d_init(&layer->conv, scope, conv, conv_spec, err);

    layer->activation = spec.activation;
    if (status == KILN_OK)
        status = kiln_nn_batch_norm2d_init(&layer->norm, scope, norm, spec.out, err);
    if (status == KILN_OK)
        kiln_nn_batch_norm2d_set(&layer->norm, spec.eps > 0.0 ? spec.eps : 1e-5,
                                 spec.momentum > 0.0 ? spec.momentum : 0.1);
    return status;
}

KilnTensor *kiln_conv_norm(const KilnConvNorm *layer, KilnTensor *x, bool training)
{
    KilnTensor *y = kiln_nn_conv2d(&layer->conv, x);

    return kiln_activate(kiln_nn_batch_norm2d(&layer->norm, y, training), layer->activation);
}
