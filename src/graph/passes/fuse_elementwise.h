/* Elementwise operations that follow each other become one: a map, which reads and
 * writes memory once. */
#ifndef KILN_GRAPH_PASSES_FUSE_ELEMENTWISE_H
#define KILN_GRAPH_PASSES_FUSE_ELEMENTWISE_H

#include "graph/passes/passes.h"

KILN_NODISCARD KilnStatus kiln_pass_fuse_elementwise(KilnRewrite *rewrite, KilnError *err);

#endif
