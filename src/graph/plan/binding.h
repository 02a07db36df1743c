/* The memory of a plan's run. */
#ifndef KILN_GRAPH_PLAN_BINDING_H
#define KILN_GRAPH_PLAN_BINDING_H

#include "graph/plan/plan.h"

/* Gives every call of the plan its addresses in the memory of the graph's backend. Inputs in the
 * host's memory are copied there unless it is the same. KILN_E_MISSING if a leaf has no bytes. */
KILN_NODISCARD KilnStatus kiln_plan_bind(KilnGraph *graph, KilnPlan *plan, KilnError *err);
/* After the run: makes the outputs that the plan was made for readable on the host, in place or as
 * copies that the graph owns until the next run. Waits for the backend. */
KILN_NODISCARD KilnStatus kiln_plan_read_outputs(KilnGraph *graph, const KilnPlan *plan,
                                                 KilnTensor *const *outputs, size_t n,
                                                 KilnError *err);

#endif
