/* Joins batch normalization with the sum of a residual branch and the relu that
 * follow, and the gradients of all of them, so that each activation is read and
 * written as few times as possible. */
#ifndef KILN_GRAPH_PASSES_FUSE_NORM_H
#define KILN_GRAPH_PASSES_FUSE_NORM_H

#include "graph/passes/passes.h"

KILN_NODISCARD KilnStatus kiln_pass_fuse_norm(KilnRewrite *rewrite, KilnError *err);

#endif
