/* Times of the calls of a plan, taken in runs with graph->profile set. */
#ifndef KILN_GRAPH_PLAN_PROFILE_H
#define KILN_GRAPH_PLAN_PROFILE_H

#include "graph/graph.h"

typedef struct KilnProfileRow {
    const char *layer; /* "" when the operation belongs to none */
    const char *op;    /* "reorder" for a conversion between layouts */
    double seconds;    /* in all runs together */
    int64_t runs;
} KilnProfileRow;

/* Call number `i` of the plan that ran last, in order of execution; false past
 * the last one. Names are borrowed until the graph plans again. */
bool kiln_graph_profile(const KilnGraph *graph, size_t i, KilnProfileRow *ret);

#endif
