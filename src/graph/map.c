/* Queries on maps. */
#include "graph/map.h"

#include <string.h>

#include "graph/op.h"

int kiln_map_reads(KilnMapCode code)
{
#define READS(name, reads) reads,
    static const int reads[] = { KILN_MAP_CODES(READS) };
#undef READS

    return reads[code];
}

bool kiln_map_step_reads(const KilnMapStep *step, int reg)
{
    const int reads = kiln_map_reads((KilnMapCode)step->code);

    return (reads > 0 && step->a == reg) || (reads > 1 && step->b == reg) ||
           (reads > 2 && step->c == reg);
}

bool kiln_map_of_node(const KilnNode *node, KilnMap *ret)
{
    if (node->op == &kiln_op_map) {
        *ret = *(const KilnMap *)node->attrs;
        return true;
    }
    memset(ret, 0, sizeof(*ret));
    ret->n_inputs = node->n_inputs;
    ret->n_steps = ret->n_results = 1;
    ret->results[0] = node->n_inputs;
    return node->op->map != NULL && node->op->map(node, &ret->steps[0]);
}
