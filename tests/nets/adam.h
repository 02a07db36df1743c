/* Adam for test and benchmark networks. */
#ifndef KILN_TESTS_NETS_ADAM_H
#define KILN_TESTS_NETS_ADAM_H

#include "kiln/nn.h"

typedef struct NetAdam {
    double lr, weight_decay; /* decoupled, as in AdamW */
    float *average, *square; /* [kiln_params_size], zero at first */
    int64_t steps;           /* taken so far */
    float hyper[3], rates[2];
    int64_t end;
} NetAdam;

/* Record the update; to be called after kiln_graph_backward. */
void net_adam_update(NetAdam *adam, KilnParams *params, KilnGraph *graph);

#endif
