/* The two halves of kiln_graph_run, for callers that record and plan under a lock and run outside
 * of it. Graphs may run at the same time in several threads if each has a backend of its own; they
 * may read the same buffers. */
#ifndef KILN_GRAPH_PLAN_EXECUTE_H
#define KILN_GRAPH_PLAN_EXECUTE_H

#include "graph/graph.h"

/* The plan that kiln_graph_run would use for the recorded step: an existing one or a new one.
 * Leaves need no data. Owned by the graph. */
KILN_NODISCARD KilnStatus kiln_graph_plan(KilnGraph *graph, KilnTensor *const *outputs, size_t n,
                                          KilnPlan **ret, KilnError *err);
/* Run that plan, with the same outputs, before anything else is planned or recorded in the graph.
 */
KILN_NODISCARD KilnStatus kiln_graph_execute(KilnGraph *graph, KilnPlan *plan,
                                             KilnTensor *const *outputs, size_t n, KilnError *err);

#endif
