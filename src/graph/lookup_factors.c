/* Factors on the vectors that ids look up. */
#include "graph/lookup_factors.h"

#include "graph/op.h"

KilnLookupFactors *kiln_lookup_factors_set(KilnTensor *index, KilnTensor *factors)
{
    KilnGraph *graph = index->graph;
    KilnLookupFactors *entry = kiln_arena_alloc(&graph->arena, sizeof(*entry));

    if (entry == NULL) {
        kiln_graph_poison_nomem(graph, sizeof(*entry));
        return NULL;
    }
    *entry =
        (KilnLookupFactors) { .index = index, .factors = factors, .next = graph->lookup_factors };
    graph->lookup_factors = entry;
    return entry;
}

KilnTensor *kiln_lookup_factors(KilnTensor *index)
{
    KilnGraph *graph = index->graph;
    const KilnNode *node = index->node;

    for (KilnLookupFactors *at = graph->lookup_factors; at != NULL; at = at->next)
        if (at->index == index) {
            at->used = true;
            return at->factors;
        }
    if (graph->lookup_factors == NULL || node == NULL ||
        (node->op != &kiln_op_slice && node->op != &kiln_op_reshape &&
         node->op != &kiln_op_permute))
        return NULL;
    KilnTensor *whole = kiln_lookup_factors(node->inputs[0]);
    return whole != NULL ? kiln_graph_record(graph, node->op, &whole, 1, node->attrs) : NULL;
}
