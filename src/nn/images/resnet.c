/* Residual networks without their last layers. The stride of a bottleneck is on its 3×3
 * convolution, as torchvision's. */
#include "kiln/images/image_nets.h"

#include <stdio.h>
#include <stdlib.h>

#include "nn/images/residual.h"
#include "nn/layer.h"

enum {
    BASIC_WIDTH = 64, /* of the stem and the first layer */
    EXPANSION = 4,
    BOTTLENECKS_FROM = 50, /* depth */
    SMALL_SHRINKS = 8,
    LARGE_SHRINKS = 32
};

struct KilnResnet {
    KilnResnetSpec spec;
    KilnConv2d conv1;
    KilnBatchNorm2d bn1;
    KilnResidualBlock *blocks;
    size_t count;
    size_t ends[KILN_RESNET_LAYERS]; /* of the layers, in blocks */
};

/* Blocks of each layer. */
static const struct {
    int64_t depth;
    int blocks[KILN_RESNET_LAYERS];
} depths[] = {
    { 18, { 2, 2, 2, 2 } },   { 34, { 3, 4, 6, 3 } },   { 50, { 3, 4, 6, 3 } },
    { 101, { 3, 4, 23, 3 } }, { 152, { 3, 8, 36, 3 } },
};

static const int *blocks_of(int64_t depth)
{
    for (size_t i = 0; i < KILN_COUNT(depths); i++)
        if (depths[i].depth == depth)
            return depths[i].blocks;
    return NULL;
}

static KilnStatus check(const KilnResnetSpec *spec, const KilnShape *image, KilnError *err)
{
    const long long least = spec->large_stem ? LARGE_SHRINKS : SMALL_SHRINKS;

    if (blocks_of(spec->depth) == NULL)
        return kiln_error_set(err, KILN_E_RANGE, "depth: expected 18, 34, 50, 101 or 152, got %lld",
                              (long long)spec->depth);
    if (spec->depth < BOTTLENECKS_FROM &&
        (spec->groups != 1 || spec->width_per_group != BASIC_WIDTH || spec->dilated > 0))
        return kiln_error_set(err, KILN_E_RANGE,
                              "groups, width_per_group and dilation need bottleneck blocks, but "
                              "depth %lld has none; use depth 50, 101 or 152",
                              (long long)spec->depth);
    if (image->dim[0] < least || image->dim[1] < least)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "images of %lld×%lld are too small: with the %s stem the network "
                              "shrinks them %lld times and needs at least %lld×%lld; %s",
                              (long long)image->dim[0], (long long)image->dim[1],
                              spec->large_stem ? "large" : "small", least, least, least,
                              spec->large_stem ? "use stem=small or larger images"
                                               : "use larger images");
    return KILN_OK;
}

static KilnStatus stem_init(KilnResnet *net, const KilnScope *scope, KilnError *err)
{
    KilnConv2dSpec spec = { .in = net->spec.channels,
                            .out = net->spec.width,
                            .kernel = 3,
                            .conv = { .padding = 1 },
                            .kaiming_fan_out = true };

    if (net->spec.large_stem) {
        spec.kernel = 7;
        spec.conv = (KilnConv) { .stride = 2, .padding = 3 };
    }
    KilnStatus status = kiln_nn_conv2d_init(&net->conv1, scope, "conv1", spec, err);
    return status < 0 ? status : kiln_nn_batch_norm2d_init(&net->bn1, scope, "bn1", spec.out, err);
}

/* Layer number `layer` from 0, of n blocks with `in` channels before it. A dilated layer's first
 * block still has the dilation of the layer before. */
static KilnStatus layer_init(KilnResnet *net, const KilnScope *scope, int layer, int n, int64_t in,
                             int64_t *dilation, KilnError *err)
{
    const KilnScope own = kiln_scope(scope, "layer%d", layer + 1);
    const KilnResnetSpec *spec = &net->spec;
    const int64_t planes = spec->width << layer;
    const bool bottleneck = spec->depth >= BOTTLENECKS_FROM;
    const bool dilates = layer >= KILN_RESNET_LAYERS - spec->dilated;
    KilnResidualShape shape = { .in = in,
                                .width = planes,
                                .out = bottleneck ? EXPANSION * planes : planes,
                                .stride = layer > 0 && !dilates ? 2 : 1,
                                .dilation = *dilation,
                                .groups = 1,
                                .bottleneck = bottleneck,
                                .zero_init = spec->zero_init };
    KilnStatus status = KILN_OK;

    if (bottleneck) {
        shape.groups = spec->groups;
        shape.width = planes * spec->width_per_group / BASIC_WIDTH * spec->groups;
    }
    for (int i = 0; i < n && status == KILN_OK; i++) {
        KilnResidualBlock *block = &net->blocks[net->count++];
        char name[24];

        snprintf(name, sizeof(name), "%d", i);
        status = kiln_residual_block_declare(block, &own, name, shape, err);
        if (dilates)
            *dilation = shape.dilation = i == 0 ? 2 * shape.dilation : shape.dilation;
        shape.in = shape.out;
        shape.stride = 1;
    }
    net->ends[layer] = net->count;
    return status;
}

static KilnStatus declare(KilnResnet *net, const KilnScope *scope, KilnError *err)
{
    const int *blocks = blocks_of(net->spec.depth);
    int64_t in = net->spec.width, dilation = 1;
    size_t count = 0;

    for (int layer = 0; layer < KILN_RESNET_LAYERS; layer++)
        count += (size_t)blocks[layer];
    net->blocks = calloc(count, sizeof(*net->blocks));
    if (net->blocks == NULL)
        return kiln_error_nomem(err, count * sizeof(*net->blocks));
    KilnStatus status = stem_init(net, scope, err);
    for (int layer = 0; layer < KILN_RESNET_LAYERS && status == KILN_OK; layer++) {
        status = layer_init(net, scope, layer, blocks[layer], in, &dilation, err);
        in = net->blocks[net->count - 1].out;
    }
    return status;
}

KilnStatus kiln_resnet_new(const KilnScope *scope, KilnResnetSpec spec, const KilnShape *image,
                           KilnResnet **ret, KilnError *err)
{
    spec.groups = spec.groups > 0 ? spec.groups : 1;
    spec.width_per_group = spec.width_per_group > 0 ? spec.width_per_group : BASIC_WIDTH;
    spec.width = spec.width > 0 ? spec.width : BASIC_WIDTH;
    if (check(&spec, image, err) < 0)
        return err->status;
    KilnResnet *net = calloc(1, sizeof(*net));
    if (net == NULL)
        return kiln_error_nomem(err, sizeof(*net));
    net->spec = spec;
    KilnStatus status = declare(net, scope, err);
    if (status < 0)
        kiln_resnet_free(net);
    else
        *ret = net;
    return status;
}

void kiln_resnet_free(KilnResnet *net)
{
    if (net == NULL)
        return;
    free(net->blocks);
    free(net);
}

int64_t kiln_resnet_channels(const KilnResnet *net)
{
    return kiln_resnet_layer_channels(net, KILN_RESNET_LAYERS - 1);
}

int64_t kiln_resnet_layer_channels(const KilnResnet *net, int layer)
{
    return net->blocks[net->ends[layer] - 1].out;
}

void kiln_resnet_layers(const KilnResnet *net, KilnTensor *images, bool training,
                        KilnTensor *ret[KILN_RESNET_LAYERS])
{
    KilnGraph *graph = kiln_tensor_graph(images);
    KilnTensor *x = kiln_nn_conv2d(&net->conv1, images);
    size_t at = 0;

    x = kiln_nn_batch_norm2d(&net->bn1, x, training);
    kiln_graph_layer(graph, "relu");
    x = kiln_relu(x);
    if (net->spec.large_stem) {
        kiln_graph_layer(graph, "maxpool");
        x = kiln_max_pool2d(x, (KilnPool) { .kernel = 3, .stride = 2, .padding = 1 });
    }
    for (int layer = 0; layer < KILN_RESNET_LAYERS; layer++) {
        for (; at < net->ends[layer]; at++)
            x = kiln_nn_residual_block(&net->blocks[at], x, training);
        ret[layer] = x;
    }
    kiln_graph_layer(graph, "");
}

KilnTensor *kiln_resnet(const KilnResnet *net, KilnTensor *images, bool training)
{
    KilnTensor *layers[KILN_RESNET_LAYERS];

    kiln_resnet_layers(net, images, training, layers);
    return layers[KILN_RESNET_LAYERS - 1];
}
