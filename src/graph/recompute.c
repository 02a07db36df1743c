/* Activation checkpointing: records the nodes of a block again before its gradients, from the
 * block's inputs; the gradients read the second recording. Dropout masks are functions of key and
 * stream, so they repeat exactly. Nodes that update a variable are not repeated. */
#include "graph/recompute.h"

#include <string.h>

#include "graph/op.h"
#include "graph/passes/passes.h"

/* ---- Marks ------------------------------------------------------------------------ */

void kiln_graph_recompute_begin(KilnGraph *graph)
{
    graph->block_now = ++graph->n_blocks;
}

void kiln_graph_recompute_end(KilnGraph *graph)
{
    graph->block_now = 0;
}

void kiln_graph_set_recompute(KilnGraph *graph, const char *const *patterns, size_t n)
{
    graph->recompute = patterns;
    graph->n_recompute = n;
}

/* ---- Blocks by name ---------------------------------------------------------------- */

size_t kiln_layer_match(const char *pattern, const char *path)
{
    const char *at = path;

    for (; *pattern != '\0'; pattern++) {
        if (*pattern == '*') {
            while (*at != '\0' && *at != '.')
                at++;
        } else if (*pattern == *at) {
            at++;
        } else {
            return 0;
        }
    }
    return *at == '\0' || *at == '.' ? (size_t)(at - path) : 0;
}

/* Length of the block's name in a node's layer; 0: it belongs to none. */
static size_t block_name(const KilnGraph *graph, const KilnNode *node)
{
    size_t length = 0;

    for (size_t i = 0; i < graph->n_recompute && length == 0 && node->layer != NULL; i++)
        length = kiln_layer_match(graph->recompute[i], node->layer);
    return length;
}

/* A block is everything between the first and the last node of its name, unless another block
 * interrupts it: operations between the block's layers may have no name. */
static void find_blocks(KilnGraph *graph)
{
    const KilnNode *last = NULL;
    size_t last_length = 0;

    for (size_t i = 0; i < graph->n_forward; i++) {
        KilnNode *node = graph->nodes[i];
        size_t length = node->block == 0 ? block_name(graph, node) : 0;

        if (length == 0)
            continue;
        const bool same = last != NULL && length == last_length &&
                          memcmp(node->layer, last->layer, length) == 0;
        node->block = same ? last->block : ++graph->n_blocks;
        for (size_t k = same ? (size_t)last->index + 1 : i; k < i; k++)
            if (graph->nodes[k]->block == 0)
                graph->nodes[k]->block = node->block;
        last = node;
        last_length = length;
    }
}

/* ---- The second recording -------------------------------------------------------------- */

/* Whether a later node of the forward pass changes a variable that `node` reads. */
static bool reads_updated(const KilnRecompute *recompute, const KilnNode *node)
{
    const KilnGraph *graph = recompute->graph;

    for (size_t i = (size_t)node->index + 1; i < recompute->n_nodes; i++) {
        const KilnNode *later = graph->nodes[i];

        for (int k = 0; later->op->updates >> k != 0 && k < later->n_inputs; k++)
            for (int j = 0; (later->op->updates >> k & 1) != 0 && j < node->n_inputs; j++)
                if (node->inputs[j] != NULL && node->inputs[j]->variable &&
                    later->inputs[k] != NULL && kiln_overlaps(later->inputs[k], node->inputs[j]))
                    return true;
    }
    return false;
}

/* Records a node again, on the second recording of its inputs. */
static void record_again(KilnRecompute *recompute, const KilnNode *node)
{
    KilnGraph *graph = recompute->graph;
    KilnTensor *inputs[KILN_MAX_INPUTS] = { NULL };
    const size_t index = graph->n_nodes;

    for (int i = 0; i < node->n_inputs; i++) {
        KilnTensor *input = node->inputs[i];

        inputs[i] = input != NULL && recompute->copies[input->id] != NULL
                        ? recompute->copies[input->id]
                        : input;
    }
    graph->layer = node->layer;
    kiln_graph_record(graph, node->op, inputs, node->n_inputs, node->attrs);
    if (graph->n_nodes == index)
        return; /* out of memory, which recording has noted */
    KilnNode *again = graph->nodes[index];
    recompute->again[node->index] = again;
    for (int i = 0; i < node->n_outputs; i++)
        recompute->copies[node->outputs[i]->id] = again->outputs[i];
}

/* Records again the whole block that ends with node `last`. */
static void record_block(KilnRecompute *recompute, int last)
{
    KilnGraph *graph = recompute->graph;
    const char *layer = graph->layer;
    const int block = graph->nodes[last]->block;
    int first = last;

    while (first > 0 && graph->nodes[first - 1]->block == block)
        first--;
    graph->segment = block;
    for (int i = first; i <= last; i++) {
        const KilnNode *node = graph->nodes[i];

        if (node->op->updates == 0 && !reads_updated(recompute, node))
            record_again(recompute, node);
    }
    graph->segment = 0;
    graph->layer = layer;
}

KilnStatus kiln_recompute_init(KilnRecompute *ret, KilnGraph *graph, KilnError *err)
{
    *ret = (KilnRecompute) { .graph = graph,
                             .n_nodes = graph->n_forward,
                             .n_tensors = graph->n_tensors };
    if (graph->n_recompute > 0)
        find_blocks(graph);
    if (graph->n_blocks == 0)
        return KILN_OK;
    ret->again = kiln_arena_alloc(&graph->arena, (ret->n_nodes + 1) * sizeof(KilnNode *));
    ret->copies = kiln_arena_alloc(&graph->arena, (ret->n_tensors + 1) * sizeof(KilnTensor *));
    if (ret->again == NULL || ret->copies == NULL)
        return kiln_error_nomem(err, ret->n_tensors * sizeof(KilnTensor *));
    return KILN_OK;
}

KilnNode *kiln_recompute_node(KilnRecompute *recompute, int i)
{
    KilnNode *node = recompute->graph->nodes[i];
    const bool ends = (size_t)i + 1 == recompute->n_nodes ||
                      recompute->graph->nodes[i + 1]->block != node->block;

    if (node->block == 0)
        return node;
    if (ends)
        record_block(recompute, i);
    return recompute->again[i] != NULL ? recompute->again[i] : node;
}
