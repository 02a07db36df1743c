/* What planning does to a step besides choosing kernels, as passes, so that each can be
 * left out: they only allow it, plan.c and plan_memory.c do it. */
#ifndef KILN_GRAPH_PASSES_PLANNING_H
#define KILN_GRAPH_PASSES_PLANNING_H

#include "graph/passes/passes.h"

KILN_NODISCARD KilnStatus kiln_pass_layouts(KilnRewrite *rewrite, KilnError *err);
KILN_NODISCARD KilnStatus kiln_pass_in_place(KilnRewrite *rewrite, KilnError *err);
KILN_NODISCARD KilnStatus kiln_pass_share_memory(KilnRewrite *rewrite, KilnError *err);

#endif
