/* The array of all passes, in order of execution. */
#include "graph/passes/passes.h"

const KilnPass kiln_passes[] = {
#define PASS(name, merges, summary) { #name, summary, kiln_pass_##name, merges },
    KILN_PASS_TABLE(PASS)
#undef PASS
};
const size_t kiln_passes_count = KILN_COUNT(kiln_passes);
