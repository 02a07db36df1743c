/* The layer normalization layer. */
#include "nn/layer.h"

KilnStatus kiln_nn_layer_norm_init(KilnLayerNorm *layer, const KilnScope *scope, const char *name,
                                   int64_t width, KilnError *err)
{
    KilnScope own = kiln_scope(scope, "%s", name);
    KilnShape shape = KILN_SHAPE(width);
    KilnInit one = { .kind = KILN_INIT_CONSTANT, .a = 1.0 };
    KilnInit zero = { .kind = KILN_INIT_CONSTANT, .a = 0.0 };

    *layer = (KilnLayerNorm) { .eps = 1e-5 };
    kiln_layer_path(layer->path, &own);
    KilnStatus status = kiln_param_new(&own, "weight", shape, one, &layer->weight, err);
    if (status == KILN_OK)
        status = kiln_param_new(&own, "bias", shape, zero, &layer->bias, err);
    return status;
}

KilnTensor *kiln_nn_layer_norm(const KilnLayerNorm *layer, KilnTensor *x)
{
    KilnGraph *graph = kiln_tensor_graph(x);
    const char *before = kiln_layer_enter(x, layer->path);
    KilnTensor *y = kiln_layer_norm(x, kiln_param_tensor(layer->weight, graph),
                                    kiln_param_tensor(layer->bias, graph), 1, layer->eps);

    kiln_graph_layer(graph, before);
    return y;
}
