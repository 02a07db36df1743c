/* Times of a plan's calls, measured in runs with graph->profile set. */
#ifndef KILN_GRAPH_PLAN_PROFILE_H
#define KILN_GRAPH_PLAN_PROFILE_H

#include "graph/graph.h"

typedef struct KilnProfileRow {
    const char *layer; /* "" for an operation outside layers */
    const char *op;    /* "reorder" for a layout conversion */
    double seconds;    /* total of all runs */
    int64_t runs;
} KilnProfileRow;

/* Call number `i` of the plan that ran last, in order of execution; false past the end. Names are
 * borrowed until the graph plans again. */
bool kiln_graph_profile(const KilnGraph *graph, size_t i, KilnProfileRow *ret);

#endif
