/* SGD with momentum for test networks. */
#ifndef KILN_TESTS_NETS_SGD_H
#define KILN_TESTS_NETS_SGD_H

#include "kiln/nn.h"

typedef struct NetSgd {
    double lr, momentum;
    float *buffer; /* [kiln_params_size] */
    int64_t steps; /* taken so far */
    float hyper[2];
} NetSgd;

/* Record the update; to be called after kiln_graph_backward. */
void net_sgd_update(NetSgd *sgd, KilnParams *params, KilnGraph *graph);

#endif
