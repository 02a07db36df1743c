#include "tests/nets/sgd.h"

#include "nn/params.h"

void net_sgd_update(NetSgd *sgd, KilnParams *params, KilnGraph *graph)
{
    const KilnShape flat = KILN_SHAPE(kiln_params_size(params));

    sgd->hyper[0] = (float)sgd->lr;
    sgd->hyper[1] = sgd->steps++ == 0 ? 1.0f : 0.0f;

    const KilnFlat update = {
        .param = kiln_params_flat_values(params, graph),
        .grad = kiln_params_flat_gradients(params, graph),
        .slots = { kiln_graph_variable(graph, KILN_F32, flat, sgd->buffer, false, NULL) },
        .hyper = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(2), sgd->hyper),
    };

    kiln_sgd_update(&update, (KilnSgd) { .momentum = sgd->momentum });
}
