/* All passes, in the order in which they run. */
#include "graph/passes/common_subexpressions.h"
#include "graph/passes/dead_code.h"
#include "graph/passes/fuse_elementwise.h"
#include "graph/passes/fuse_norm.h"
#include "graph/passes/precision.h"

const KilnPass kiln_passes[] = {
    { "dead_code", "leave out what nobody reads", kiln_pass_dead_code },
    { "common_subexpressions", "compute once what is recorded twice",
      kiln_pass_common_subexpressions },
    { "fuse_norm", "join batch normalization with the sum and the relu after it",
      kiln_pass_fuse_norm },
    { "precision", "keep activations in bf16 where trainer.precision says so",
      kiln_pass_precision },
    { "fuse_elementwise", "join elementwise operations that follow each other",
      kiln_pass_fuse_elementwise },
};
const size_t kiln_passes_count = KILN_COUNT(kiln_passes);
