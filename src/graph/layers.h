/* The layers of a recorded step, as rows for the layer table. */
#ifndef KILN_GRAPH_LAYERS_H
#define KILN_GRAPH_LAYERS_H

#include "graph/graph.h"

typedef struct KilnLayerRow {
    const char *path; /* borrowed for the step */
    const char *op;   /* the last operation with a result recorded under that path */
    KilnShape output; /* of that operation */
    double flops, flops_backward;
} KilnLayerRow;

/* One row per layer path, in order of first use; operations outside layers and gradients are
 * omitted. Fills at most `capacity` rows (`rows` may be NULL if 0) and returns the total. */
size_t kiln_graph_layers(const KilnGraph *graph, KilnLayerRow *rows, size_t capacity);

#endif
