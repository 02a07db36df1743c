/* Which values are bf16. */
#ifndef KILN_GRAPH_PASSES_PRECISION_H
#define KILN_GRAPH_PASSES_PRECISION_H

#include "graph/passes/passes.h"

KILN_NODISCARD KilnStatus kiln_pass_precision(KilnRewrite *rewrite, KilnError *err);

#endif
