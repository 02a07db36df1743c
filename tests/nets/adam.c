#include "tests/nets/adam.h"

#include <math.h>

#include "nn/params.h"

void net_adam_update(NetAdam *adam, KilnParams *params, KilnGraph *graph)
{
    const KilnAdam options = {
        .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .decoupled = adam->weight_decay != 0.0
    };
    const double t = (double)++adam->steps;

    adam->end = kiln_params_size(params);
    adam->hyper[0] = (float)adam->lr;
    adam->hyper[1] = (float)(1.0 - pow(options.beta1, t));
    adam->hyper[2] = (float)(1.0 - pow(options.beta2, t));
    adam->rates[0] = 1.0f;
    adam->rates[1] = (float)adam->weight_decay;

    const KilnShape flat = KILN_SHAPE(adam->end);
    const KilnFlat update = {
        .param = kiln_params_flat_values(params, graph),
        .grad = kiln_params_flat_gradients(params, graph),
        .slots = { kiln_graph_variable(graph, KILN_F32, flat, adam->average, false, NULL),
                   kiln_graph_variable(graph, KILN_F32, flat, adam->square, false, NULL) },
        .hyper = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(3), adam->hyper),
        .segment_ends = kiln_graph_input(graph, KILN_I64, KILN_SHAPE(1), &adam->end),
        .rates = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(1, 2), adam->rates),
    };

    kiln_adam_update(&update, options);
}
