/* Shared by the layers: their path, and recording under it. */
#include "nn/layer.h"

#include <string.h>

#include "graph/graph.h"

void kiln_layer_path(char path[KILN_LAYER_PATH], const KilnScope *scope)
{
    memcpy(path, scope->path, KILN_LAYER_PATH);
}

const char *kiln_layer_enter(KilnTensor *x, const char *path)
{
    KilnGraph *graph = kiln_tensor_graph(x);
    const char *before = graph->layer;

    kiln_graph_layer(graph, path);
    return before;
}

KilnTensor *kiln_layer_param(KilnParam *param, KilnTensor *x)
{
    return param != NULL ? kiln_param_tensor(param, kiln_tensor_graph(x)) : NULL;
}
