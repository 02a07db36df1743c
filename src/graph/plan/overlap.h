/* Which of a recorded step's bytes lie over each other: a part of what decides a plan. */
#ifndef KILN_GRAPH_PLAN_OVERLAP_H
#define KILN_GRAPH_PLAN_OVERLAP_H

#include "graph/graph.h"

/* Append to the trace which leaves and places share bytes. The addresses themselves do not
 * count. False when memory is out. */
bool kiln_overlap_add_to_key(KilnGraph *graph);

#endif
