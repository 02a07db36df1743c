/* The embedding layer. */
#include "nn/layer.h"

KilnStatus kiln_nn_embedding_init(KilnEmbedding *layer, const KilnScope *scope, const char *name,
                                  int64_t rows, int64_t width, KilnError *err)
{
    KilnScope own = kiln_scope(scope, "%s", name);
    KilnInit init = { .kind = KILN_INIT_NORMAL, .a = 1.0 };

    *layer = (KilnEmbedding) { 0 };
    kiln_layer_path(layer->path, &own);
    return kiln_param_new(&own, "weight", KILN_SHAPE(rows, width), init, &layer->weight, err);
}

KilnTensor *kiln_nn_embedding(const KilnEmbedding *layer, KilnTensor *index)
{
    KilnGraph *graph = kiln_tensor_graph(index);
    const char *before = kiln_layer_enter(index, layer->path);
    KilnTensor *y = kiln_embedding(kiln_param_tensor(layer->weight, graph), index, -1);

    kiln_graph_layer(graph, before);
    return y;
}
