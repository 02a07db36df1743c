/* Residual blocks, with torchvision's names and initial distributions. */
#include "nn/images/residual.h"
#include "nn/layer.h"

enum { BASIC_CONVS = 2, EXPANSION = 4 };

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

/* Declares the branch's convolutions. The stride and the dilation are on the first 3×3 one. */
static KilnStatus branch_init(KilnResidualBlock *block, const KilnScope *own,
                              const KilnResidualShape *shape, KilnError *err)
{
    static const char *const conv_names[] = { "conv1", "conv2", "conv3" };
    static const char *const bn_names[] = { "bn1", "bn2", "bn3" };
    const int64_t width = shape->width;
    const KilnConv same = { .padding = 1 }, point = { .stride = 1 };
    const KilnConv strided = { .stride = shape->stride,
                               .padding = shape->dilation,
                               .dilation = shape->dilation,
                               .groups = shape->groups };
    const KilnConv2dSpec basic[BASIC_CONVS] = {
        { .in = shape->in, .out = width, .kernel = 3, .conv = strided },
        { .in = width, .out = shape->out, .kernel = 3, .conv = same },
    };
    const KilnConv2dSpec bottleneck[KILN_RESIDUAL_MAX] = {
        { .in = shape->in, .out = width, .kernel = 1, .conv = point },
        { .in = width, .out = width, .kernel = 3, .conv = strided },
        { .in = width, .out = shape->out, .kernel = 1, .conv = point },
    };
    const KilnConv2dSpec *specs = shape->bottleneck ? bottleneck : basic;
    KilnStatus status = KILN_OK;

    for (int i = 0; i < block->convs && status == KILN_OK; i++)
        status = conv_bn(&block->conv[i], &block->bn[i], own, conv_names[i], bn_names[i], specs[i],
                         err);
    return status;
}

KilnStatus kiln_residual_block_declare(KilnResidualBlock *block, const KilnScope *scope,
                                       const char *name, KilnResidualShape shape, KilnError *err)
{
    const KilnScope own = kiln_scope(scope, "%s", name), down = kiln_scope(&own, "downsample");
    const KilnConv2dSpec shortcut = {
        .in = shape.in, .out = shape.out, .kernel = 1, .conv = { .stride = shape.stride }
    };

    *block = (KilnResidualBlock) { .convs = shape.bottleneck ? KILN_RESIDUAL_MAX : BASIC_CONVS,
                                   .out = shape.out,
                                   .downsample = shape.stride > 1 || shape.in != shape.out };
    kiln_layer_path(block->path, &own);
    KilnStatus status = branch_init(block, &own, &shape, err);
    if (status == KILN_OK && shape.zero_init)
        kiln_param_set_init(block->bn[block->convs - 1].weight,
                            (KilnInit) { .kind = KILN_INIT_CONSTANT, .a = 0.0 });
    if (status == KILN_OK && block->downsample)
        status = conv_bn(&block->down_conv, &block->down_bn, &down, "0", "1", shortcut, err);
    return status;
}

KilnStatus kiln_nn_residual_block_init(KilnResidualBlock *block, const KilnScope *scope,
                                       const char *name, KilnResidualSpec spec, KilnError *err)
{
    const KilnScope own = kiln_scope(scope, "%s", name);

    if (spec.in < 1 || spec.width < 1 || spec.width > INT32_MAX || spec.stride < 0)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "%s: a residual block from %lld channels with width %lld and stride "
                              "%lld; they must be positive and the width below 2^31",
                              own.path, (long long)spec.in, (long long)spec.width,
                              (long long)spec.stride);
    const KilnResidualShape shape = { .in = spec.in,
                                      .width = spec.width,
                                      .out = spec.bottleneck ? EXPANSION * spec.width : spec.width,
                                      .stride = spec.stride,
                                      .dilation = 1,
                                      .groups = 1,
                                      .bottleneck = spec.bottleneck,
                                      .zero_init = spec.zero_init };
    return kiln_residual_block_declare(block, scope, name, shape, err);
}

KilnTensor *kiln_nn_residual_block(const KilnResidualBlock *block, KilnTensor *x, bool training)
{
    const char *before = kiln_layer_enter(x, block->path);
    KilnGraph *graph = kiln_tensor_graph(x);
    KilnTensor *y = x;

    for (int i = 0; i < block->convs; i++) {
        y = kiln_nn_batch_norm2d(&block->bn[i], kiln_nn_conv2d(&block->conv[i], y), training);
        if (i + 1 < block->convs)
            y = kiln_relu(y);
    }
    if (block->downsample)
        x = kiln_nn_batch_norm2d(&block->down_bn, kiln_nn_conv2d(&block->down_conv, x), training);
    y = kiln_relu(kiln_add(y, x));
    kiln_graph_layer(graph, before);
    return y;
}
