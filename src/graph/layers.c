/* The layer table: a walk over the recorded nodes. */
#include "graph/layers.h"

#include <string.h>

#include "graph/op.h"

static bool is_row(const KilnNode *node)
{
    return node->layer != NULL && node->layer[0] != '\0' && node->n_outputs > 0;
}

static bool same_layer(const KilnNode *a, const KilnNode *b)
{
    return a->layer == b->layer || strcmp(a->layer, b->layer) == 0;
}

/* Whether an earlier node is of the same layer. */
static bool seen_before(const KilnGraph *graph, size_t n)
{
    for (size_t i = n; i-- > 0;) {
        if (is_row(graph->nodes[i]) && same_layer(graph->nodes[i], graph->nodes[n]))
            return true;
    }
    return false;
}

size_t kiln_graph_layers(const KilnGraph *graph, KilnLayerRow *rows, size_t capacity)
{
    size_t forward = graph->backward ? graph->n_forward : graph->n_nodes, count = 0;

    for (size_t i = 0; i < forward; i++) {
        const KilnNode *last = graph->nodes[i];

        if (!is_row(last) || seen_before(graph, i))
            continue;
        for (size_t k = i + 1; k < forward; k++) {
            if (is_row(graph->nodes[k]) && same_layer(graph->nodes[k], last))
                last = graph->nodes[k];
        }
        if (count < capacity)
            rows[count] = (KilnLayerRow) { .path = last->layer,
                                           .op = last->op->name,
                                           .output = last->outputs[0]->shape };
        count++;
    }
    return count;
}
