/* The normalization layers with statistics of each sample: layer, rms and group norm. */
#include "nn/layer.h"

static KilnStatus declare(const KilnScope *own, KilnShape shape, KilnParam **weight,
                          KilnParam **bias, KilnError *err)
{
    const KilnInit one = { .kind = KILN_INIT_CONSTANT, .a = 1.0 };
    const KilnInit zero = { .kind = KILN_INIT_CONSTANT, .a = 0.0 };
    KilnStatus status = kiln_param_new(own, "weight", shape, one, weight, err);

    if (status == KILN_OK && bias != NULL)
        status = kiln_param_new(own, "bias", shape, zero, bias, err);
    return status;
}

KilnStatus kiln_nn_layer_norm_init(KilnLayerNorm *layer, const KilnScope *scope, const char *name,
                                   KilnShape shape, bool bias, KilnError *err)
{
    const KilnScope own = kiln_scope(scope, "%s", name);

    *layer = (KilnLayerNorm) { .axes = shape.rank, .eps = 1e-5 };
    kiln_layer_path(layer->path, &own);
    return declare(&own, shape, &layer->weight, bias ? &layer->bias : NULL, err);
}

KilnTensor *kiln_nn_layer_norm(const KilnLayerNorm *layer, KilnTensor *x)
{
    const char *before = kiln_layer_enter(x, layer->path);
    KilnTensor *y = kiln_layer_norm(x, kiln_layer_param(layer->weight, x),
                                    kiln_layer_param(layer->bias, x), layer->axes, layer->eps);

    kiln_graph_layer(kiln_tensor_graph(x), before);
    return y;
}

KilnStatus kiln_nn_rms_norm_init(KilnRmsNorm *layer, const KilnScope *scope, const char *name,
                                 KilnShape shape, KilnError *err)
{
    const KilnScope own = kiln_scope(scope, "%s", name);

    *layer = (KilnRmsNorm) { .axes = shape.rank, .eps = 0x1p-23 };
    kiln_layer_path(layer->path, &own);
    return declare(&own, shape, &layer->weight, NULL, err);
}

KilnTensor *kiln_nn_rms_norm(const KilnRmsNorm *layer, KilnTensor *x)
{
    const char *before = kiln_layer_enter(x, layer->path);
    KilnTensor *y = kiln_rms_norm(x, kiln_layer_param(layer->weight, x), layer->axes, layer->eps);

    kiln_graph_layer(kiln_tensor_graph(x), before);
    return y;
}

KilnStatus kiln_nn_group_norm_init(KilnGroupNorm *layer, const KilnScope *scope, const char *name,
                                   int64_t groups, int64_t channels, KilnError *err)
{
    const KilnScope own = kiln_scope(scope, "%s", name);

    *layer = (KilnGroupNorm) { .groups = groups, .eps = 1e-5 };
    kiln_layer_path(layer->path, &own);
    return declare(&own, KILN_SHAPE(channels), &layer->weight, &layer->bias, err);
}

KilnTensor *kiln_nn_group_norm(const KilnGroupNorm *layer, KilnTensor *x)
{
    const char *before = kiln_layer_enter(x, layer->path);
    KilnTensor *y = kiln_group_norm(x, kiln_layer_param(layer->weight, x),
                                    kiln_layer_param(layer->bias, x), layer->groups, layer->eps);

    kiln_graph_layer(kiln_tensor_graph(x), before);
    return y;
}
