/* Constants of a plan: what a step computes from parameters alone, such as weights in the layout
 * that a kernel wants. They are computed in the plan's first run and kept until a parameter that
 * they depend on is written. */
#ifndef KILN_GRAPH_PLAN_CONSTANTS_H
#define KILN_GRAPH_PLAN_CONSTANTS_H

#include "graph/passes/passes.h"
#include "graph/plan/plan.h"

/* Sets ret[id] of every tensor that is a variable which the step leaves as it is, or depends on
 * nothing else and is not read after the run. `ret` is zeroed, one for each tensor. */
void kiln_constants_find(const KilnRewrite *step, bool *ret);
/* When all calls are pushed: moves those of constants to the front, and gives memory in the plan's
 * constants to what the other calls read of them. */
KILN_NODISCARD KilnStatus kiln_constants_place(KilnPlan *plan, KilnError *err);
/* A number that stays the same while the constants do, but for parameters in other layouts; 0:
 * unknown, since a parameter is in the host's memory. */
uint64_t kiln_constants_stamp(const KilnGraph *graph, const KilnPlan *plan);

#endif
