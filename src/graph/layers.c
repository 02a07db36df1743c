/* The layer table, from a walk over the recorded nodes. */
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

/* Whether an earlier node belongs to the same layer. */
static bool seen_before(const KilnGraph *graph, size_t n)
{
    for (size_t i = n; i-- > 0;) {
        if (is_row(graph->nodes[i]) && same_layer(graph->nodes[i], graph->nodes[n]))
            return true;
    }
    return false;
}

/* FLOPs of the layer's nodes in [from, to). */
static double flops_of(const KilnGraph *graph, const KilnNode *layer, size_t from, size_t to)
{
    double sum = 0.0;

    for (size_t i = from; i < to; i++) {
        const KilnNode *node = graph->nodes[i];

        if (node->op->flops != NULL && is_row(node) && same_layer(node, layer))
            sum += node->op->flops(node);
    }
    return sum;
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
            rows[count] =
                (KilnLayerRow) { .path = last->layer,
                                 .op = last->op->name,
                                 .output = last->outputs[0]->shape,
                                 .flops = flops_of(graph, last, 0, forward),
                                 .flops_backward = flops_of(graph, last, forward, graph->n_nodes) };
        count++;
    }
    return count;
}
