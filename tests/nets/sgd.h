/* SGD with momentum on the parameters of a network of tests. */
#ifndef KILN_TEST_NETS_SGD_H
#define KILN_TEST_NETS_SGD_H

#include "kiln/nn.h"

typedef struct NetSgd {
    double lr, momentum;
    float *buffer; /* [kiln_params_size] */
    int64_t steps; /* taken so far */
    float hyper[2];
} NetSgd;

/* Record the update; to be called after kiln_graph_backward. */
static inline void net_sgd_update(NetSgd *sgd, KilnParams *params, KilnGraph *graph)
{
    const KilnShape flat = KILN_SHAPE(kiln_params_size(params));

    sgd->hyper[0] = (float)sgd->lr;
    sgd->hyper[1] = sgd->steps++ == 0 ? 1.0f : 0.0f;

    const KilnFlat update = {
        .param = kiln_graph_variable(graph, KILN_F32, flat, kiln_params_values(params), false,
                                     NULL),
        .grad = kiln_graph_input(graph, KILN_F32, flat, kiln_params_gradients(params)),
        .slots = { kiln_graph_variable(graph, KILN_F32, flat, sgd->buffer, false, NULL) },
        .hyper = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(2), sgd->hyper),
    };

    kiln_sgd_update(&update, (KilnSgd) { .momentum = sgd->momentum });
}

#endif
