/* The layers of a recorded step, as a table for people. */
#ifndef KILN_GRAPH_LAYERS_H
#define KILN_GRAPH_LAYERS_H

#include "graph/graph.h"

typedef struct KilnLayerRow {
    const char *path; /* borrowed for the step */
    const char *op;   /* the last operation recorded under that path that has a result */
    KilnShape output; /* of that operation */
    double flops, flops_backward;
} KilnLayerRow;

/* One row per layer path, in order of first use; operations outside of any
 * layer and gradients are left out. Fills at most `capacity` rows (`rows` may
 * be NULL when it is 0) and returns how many there are. */
size_t kiln_graph_layers(const KilnGraph *graph, KilnLayerRow *rows, size_t capacity);

#endif
