/* The plans of a graph by plan key, most recently used first, within a limit of bytes. */
#ifndef KILN_GRAPH_PLAN_PLAN_CACHE_H
#define KILN_GRAPH_PLAN_PLAN_CACHE_H

#include "graph/plan/plan.h"

/* The default of KilnPlanCache.limit. */
#define KILN_PLAN_CACHE_BYTES ((size_t)256 << 20)

/* Moves the recorded step's plan to the front of graph->plans; makes it if there is none. Then
 * evicts the plans that were used longest ago, until all fit the limit; the plan at the front
 * always stays, and so do all while the graph profiles, because a plan has the times of its calls.
 * A step whose plan was evicted is planned again, to the same plan. */
KILN_NODISCARD KilnStatus kiln_plan_cache_get(KilnGraph *graph, KilnTensor *const *outputs,
                                              size_t n, KilnError *err);

#endif
