/* Nodes whose results nobody reads are left out. */
#ifndef KILN_GRAPH_PASSES_DEAD_CODE_H
#define KILN_GRAPH_PASSES_DEAD_CODE_H

#include "graph/passes/passes.h"

KILN_NODISCARD KilnStatus kiln_pass_dead_code(KilnRewrite *rewrite, KilnError *err);

#endif
