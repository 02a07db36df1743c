/* The fully connected layer. */
#include <math.h>

#include "nn/layer.h"
#include "nn/params.h"

KilnStatus kiln_nn_linear_init(KilnLinear *layer, const KilnScope *scope, const char *name,
                               int64_t in, int64_t out, bool bias, KilnError *err)
{
    KilnScope own = kiln_scope(scope, "%s", name);
    KilnInit init = { .kind = KILN_INIT_UNIFORM, .a = 1.0 / sqrt((double)in) };
    KilnStatus status;

    *layer = (KilnLinear) { 0 };
    kiln_layer_path(layer->path, &own);
    status = kiln_param_new(&own, "weight", KILN_SHAPE(out, in), init, &layer->weight, err);
    if (status == KILN_OK && bias)
        status = kiln_param_new(&own, "bias", KILN_SHAPE(out), init, &layer->bias, err);
    if (status == KILN_OK)
        layer->weight->linear = true;
    return status;
}

KilnTensor *kiln_nn_linear(const KilnLinear *layer, KilnTensor *x)
{
    KilnGraph *graph = kiln_tensor_graph(x);
    const char *before = kiln_layer_enter(x, layer->path);
    KilnTensor *y = kiln_nn_linear_rows(layer->weight, layer->bias, 0,
                                        kiln_param_shape(layer->weight)->dim[0], x);

    kiln_graph_layer(graph, before);
    return y;
}
