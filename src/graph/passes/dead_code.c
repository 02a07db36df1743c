/* Removes nodes whose results are never read. */
#include "graph/op.h"
#include "graph/passes/passes.h"

KilnStatus kiln_pass_dead_code(KilnRewrite *rewrite, KilnError *err)
{
    (void)err;
    for (size_t i = rewrite->n_nodes; i-- > 0;) {
        KilnNode *node = rewrite->nodes[i];
        bool needed = node->op->updates != 0;

        for (int k = 0; k < node->n_outputs; k++)
            needed |= rewrite->reads[node->outputs[k]->id] > 0 ||
                      kiln_rewrite_visible(rewrite, node->outputs[k]);
        if (needed)
            continue;
        for (int k = 0; k < node->n_inputs; k++)
            if (node->inputs[k] != NULL)
                rewrite->reads[node->inputs[k]->id]--;
        rewrite->nodes[i] = NULL;
    }
    return KILN_OK;
}
