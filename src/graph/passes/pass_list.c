/* All passes, in the order in which they run. */
#include "graph/passes/pass_list.h"

#include "graph/passes/common_subexpressions.h"
#include "graph/passes/dead_code.h"
#include "graph/passes/fuse_elementwise.h"
#include "graph/passes/fuse_epilogue.h"
#include "graph/passes/fuse_norm.h"
#include "graph/passes/planning.h"
#include "graph/passes/precision.h"

const KilnPass kiln_passes[] = {
#define PASS(name, joins, summary) { #name, summary, kiln_pass_##name, joins },
    KILN_PASS_TABLE(PASS)
#undef PASS
};
const size_t kiln_passes_count = KILN_COUNT(kiln_passes);
