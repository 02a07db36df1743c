/* All passes, in the order in which they run. */
#include "graph/passes/dead_code.h"
#include "graph/passes/fuse_norm.h"

const KilnPass kiln_passes[] = {
    { "dead_code", "leave out what nobody reads", kiln_pass_dead_code },
    { "fuse_norm", "join batch normalization with the sum and the relu after it",
      kiln_pass_fuse_norm },
};
const size_t kiln_passes_count = KILN_COUNT(kiln_passes);
