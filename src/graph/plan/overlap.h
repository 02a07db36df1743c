/* Finds which bytes of a recorded step overlap, as part of the plan key. */
#ifndef KILN_GRAPH_PLAN_OVERLAP_H
#define KILN_GRAPH_PLAN_OVERLAP_H

#include "graph/graph.h"

/* Appends to the plan key which leaves and destinations share bytes, regardless of their addresses.
 * False when out of memory. */
bool kiln_overlap_add_to_key(KilnGraph *graph);

#endif
