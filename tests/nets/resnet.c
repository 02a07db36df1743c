#include "tests/nets/resnet.h"

static KilnStatus resnet_part_init(ResNetPart *part, const KilnScope *scope, const char *conv,
                                   const char *bn, KilnConv2dSpec spec, KilnError *err)
{
    KilnStatus status = kiln_nn_conv2d_init(&part->conv, scope, conv, spec, err);

    return status < 0 ? status : kiln_nn_batch_norm2d_init(&part->bn, scope, bn, spec.out, err);
}

static KilnStatus resnet_block_init(ResNetBlock *block, const KilnScope *scope, int64_t in,
                                    int64_t out, KilnError *err)
{
    const int64_t stride = in != out ? 2 : 1;
    const KilnScope down = kiln_scope(scope, "downsample");
    KilnConv2dSpec spec = {
        .in = in, .out = out, .kernel = 3, .conv = { .stride = stride, .padding = 1 }
    };
    KilnStatus status = resnet_part_init(&block->first, scope, "conv1", "bn1", spec, err);

    block->shrinks = in != out;
    spec.in = out;
    spec.conv.stride = 1;
    if (status == KILN_OK)
        status = resnet_part_init(&block->second, scope, "conv2", "bn2", spec, err);
    spec = (KilnConv2dSpec) { .in = in, .out = out, .kernel = 1, .conv = { .stride = stride } };
    if (status == KILN_OK && block->shrinks)
        status = resnet_part_init(&block->down, &down, "0", "1", spec, err);
    return status;
}

KilnStatus resnet_net_init(ResNet *net, const KilnScope *scope, int64_t width, int64_t classes,
                           KilnError *err)
{
    const KilnConv2dSpec stem = {
        .in = 3,
        .out = width,
        .kernel = net->large_stem ? 7 : 3,
        .conv = { .stride = net->large_stem ? 2 : 1, .padding = net->large_stem ? 3 : 1 },
    };
    KilnStatus status = resnet_part_init(&net->stem, scope, "conv1", "bn1", stem, err);

    for (int i = 0; i < RESNET_BLOCKS && status == KILN_OK; i++) {
        const KilnScope own = kiln_scope(scope, "layer%d.%d", i / 2 + 1, i % 2);
        const int64_t out = width << (i / 2), in = i > 0 && i % 2 == 0 ? out / 2 : out;

        status = resnet_block_init(&net->blocks[i], &own, in, out, err);
    }
    if (status == KILN_OK)
        status = kiln_nn_linear_init(&net->fc, scope, "fc", 8 * width, classes, true, err);
    return status;
}

static KilnTensor *resnet_part(const ResNetPart *part, KilnTensor *x, bool training)
{
    return kiln_nn_batch_norm2d(&part->bn, kiln_nn_conv2d(&part->conv, x), training);
}

KilnTensor *resnet_net_scores(const ResNet *net, KilnTensor *x, bool training)
{
    x = kiln_relu(resnet_part(&net->stem, x, training));
    if (net->large_stem)
        x = kiln_max_pool2d(x, (KilnPool) { .kernel = 3, .stride = 2, .padding = 1 });
    for (int i = 0; i < RESNET_BLOCKS; i++) {
        const ResNetBlock *block = &net->blocks[i];
        KilnTensor *y = kiln_relu(resnet_part(&block->first, x, training));

        y = resnet_part(&block->second, y, training);
        x = kiln_relu(kiln_add(y, block->shrinks ? resnet_part(&block->down, x, training) : x));
    }
    return kiln_nn_linear(&net->fc, kiln_flatten(kiln_adaptive_avg_pool2d(x, 1, 1)));
}

KilnTensor *resnet_net_loss(const ResNet *net, KilnTensor *x, KilnTensor *labels)
{
    return kiln_cross_entropy(resnet_net_scores(net, x, true), labels, (KilnCrossEntropy) { 0 });
}
