/* What is computed twice is computed once. */
#ifndef KILN_GRAPH_PASSES_COMMON_SUBEXPRESSIONS_H
#define KILN_GRAPH_PASSES_COMMON_SUBEXPRESSIONS_H

#include "graph/passes/passes.h"

KILN_NODISCARD KilnStatus kiln_pass_common_subexpressions(KilnRewrite *rewrite, KilnError *err);

#endif
