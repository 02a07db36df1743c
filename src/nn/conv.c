/* The two-dimensional convolution layer. */
#include <math.h>

#include "nn/layer.h"

KilnStatus kiln_nn_conv2d_init(KilnConv2d *layer, const KilnScope *scope, const char *name,
                               KilnConv2dSpec spec, KilnError *err)
{
    KilnScope own = kiln_scope(scope, "%s", name);
    double area = (double)spec.kernel * (double)spec.kernel;
    KilnInit uniform = { .kind = KILN_INIT_UNIFORM, .a = 1.0 / sqrt((double)spec.in * area) };
    KilnInit kaiming = { .kind = KILN_INIT_NORMAL, .a = sqrt(2.0 / ((double)spec.out * area)) };
    KilnStatus status;

    *layer = (KilnConv2d) { .conv = spec.conv };
    kiln_layer_path(layer->path, &own);
    status = kiln_param_new(&own, "weight", KILN_SHAPE(spec.out, spec.in, spec.kernel, spec.kernel),
                            spec.kaiming_fan_out ? kaiming : uniform, &layer->weight, err);
    if (status == KILN_OK && spec.bias)
        status = kiln_param_new(&own, "bias", KILN_SHAPE(spec.out), uniform, &layer->bias, err);
    return status;
}

KilnTensor *kiln_nn_conv2d(const KilnConv2d *layer, KilnTensor *x)
{
    KilnGraph *graph = kiln_tensor_graph(x);
    const char *before = kiln_layer_enter(x, layer->path);
    KilnTensor *weight = kiln_param_tensor(layer->weight, graph);
    KilnTensor *bias = layer->bias != NULL ? kiln_param_tensor(layer->bias, graph) : NULL;
    KilnTensor *y = kiln_conv2d(x, weight, bias, layer->conv);

    kiln_graph_layer(graph, before);
    return y;
}
