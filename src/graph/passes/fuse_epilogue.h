/* Elementwise operations join the kernel that makes their input. */
#ifndef KILN_GRAPH_PASSES_FUSE_EPILOGUE_H
#define KILN_GRAPH_PASSES_FUSE_EPILOGUE_H

#include "graph/passes/passes.h"

KILN_NODISCARD KilnStatus kiln_pass_fuse_epilogue(KilnRewrite *rewrite, KilnError *err);

#endif
