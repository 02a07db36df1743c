/* All passes, in the order in which they run. */
#include "graph/passes/dead_code.h"

const KilnPass kiln_passes[] = {
    { "dead_code", "leave out what nobody reads", kiln_pass_dead_code, false },
};
const size_t kiln_passes_count = KILN_COUNT(kiln_passes);
