/* Records the gradients of all parameters, also of those that a step does not use. */
#include "graph/graph.h"
#include "graph/ops/sequence/embedding.h"
#include "nn/params.h"

static bool wants_gradient(const KilnParam *param)
{
    return param->trained && !param->frozen;
}

/* The gradient is 0 in every row. */
static void empty_sparse_rows(const KilnParam *param, KilnGraph *graph)
{
    static const int32_t none = 0;
    KilnTensor *count = kiln_graph_variable_at(graph, KILN_I32, KILN_SHAPE(1),
                                               kiln_param_sparse_rows_location(param), false,
                                               (KilnLocation) { 0 });

    kiln_store(count, kiln_graph_input(graph, KILN_I32, KILN_SHAPE(1), &none));
}

void kiln_params_backward(KilnParams *params, KilnGraph *graph, KilnTensor *loss)
{
    for (size_t i = 0; i < params->count; i++)
        if (wants_gradient(params->items[i]))
            kiln_param_tensor(params->items[i], graph);
    kiln_graph_backward(graph, loss);
    for (size_t i = 0; i < params->count && !graph->accumulates; i++) {
        KilnParam *param = params->items[i];

        if (wants_gradient(param) && param->sparse_rows >= 0 &&
            kiln_param_tensor(param, graph)->grad == NULL)
            empty_sparse_rows(param, graph);
    }
}
