/* The copy of the step that passes work on, with the helpers for passes. */
#include <string.h>

#include "graph/op.h"
#include "graph/passes/passes.h"

/* ---- Tensors ------------------------------------------------------------------- */

/* Room for one more tensor in all arrays; the old arrays stay in the arena. */
static bool reserve_tensor(KilnRewrite *rewrite)
{
    size_t capacity = rewrite->cap_tensors > 0 ? 2 * rewrite->cap_tensors
                                               : 2 * rewrite->graph->n_tensors + 64;

    if (rewrite->n_tensors < rewrite->cap_tensors)
        return true;
    KilnTensor **tensors = kiln_arena_alloc(rewrite->arena, capacity * sizeof(KilnTensor *));
    bool *kept = kiln_arena_alloc(rewrite->arena, capacity);
    KilnNode **made = kiln_arena_alloc(rewrite->arena, capacity * sizeof(KilnNode *));
    int *reads = kiln_arena_alloc(rewrite->arena, capacity * sizeof(int));
    if (tensors == NULL || kept == NULL || made == NULL || reads == NULL)
        return false;
    if (rewrite->n_tensors > 0) {
        memcpy(tensors, rewrite->tensors, rewrite->n_tensors * sizeof(KilnTensor *));
        memcpy(kept, rewrite->kept, rewrite->n_tensors);
        memcpy(made, rewrite->made, rewrite->n_tensors * sizeof(KilnNode *));
        memcpy(reads, rewrite->reads, rewrite->n_tensors * sizeof(int));
    }
    rewrite->tensors = tensors;
    rewrite->kept = kept;
    rewrite->made = made;
    rewrite->reads = reads;
    rewrite->cap_tensors = capacity;
    return true;
}

KilnTensor *kiln_rewrite_tensor(KilnRewrite *rewrite, KilnDType dtype, const KilnShape *shape)
{
    KilnTensor *tensor = kiln_arena_alloc(rewrite->arena, sizeof(*tensor));

    if (tensor == NULL || !reserve_tensor(rewrite))
        return NULL;
    tensor->graph = rewrite->graph;
    tensor->id = (int)rewrite->n_tensors;
    tensor->dtype = dtype;
    tensor->shape = *shape;
    rewrite->tensors[rewrite->n_tensors++] = tensor;
    return tensor;
}

/* ---- Nodes ------------------------------------------------------------------------ */

KilnNode *kiln_rewrite_node(KilnRewrite *rewrite, const KilnOp *op, KilnTensor *const *inputs,
                            int n_inputs, KilnTensor *const *outputs, int n_outputs,
                            const void *attrs, const char *layer)
{
    KilnNode *node = kiln_arena_alloc(rewrite->arena, sizeof(*node) + op->attrs_size);

    if (node == NULL)
        return NULL;
    node->op = op;
    node->n_inputs = n_inputs;
    node->n_outputs = n_outputs;
    node->layer = layer;
    for (int i = 0; i < n_inputs; i++)
        node->inputs[i] = inputs[i];
    for (int i = 0; i < n_outputs; i++)
        node->outputs[i] = outputs[i];
    if (op->attrs_size > 0) {
        node->attrs = node + 1;
        memcpy(node->attrs, attrs, op->attrs_size);
    }
    return node;
}

void kiln_rewrite_index(KilnRewrite *rewrite)
{
    size_t n = 0;

    for (size_t i = 0; i < rewrite->n_nodes; i++)
        if (rewrite->nodes[i] != NULL)
            rewrite->nodes[n++] = rewrite->nodes[i];
    rewrite->n_nodes = n;
    for (size_t i = 0; i < rewrite->n_tensors; i++) {
        rewrite->made[i] = NULL;
        rewrite->reads[i] = 0;
    }
    for (size_t i = 0; i < n; i++) {
        KilnNode *node = rewrite->nodes[i];

        node->index = (int)i;
        for (int k = 0; k < node->n_inputs; k++)
            if (node->inputs[k] != NULL)
                rewrite->reads[node->inputs[k]->id]++;
        for (int k = 0; k < node->n_outputs; k++)
            rewrite->made[node->outputs[k]->id] = node;
    }
}

/* ---- Queries -------------------------------------------------------------------- */

bool kiln_rewrite_visible(const KilnRewrite *rewrite, const KilnTensor *tensor)
{
    return rewrite->kept[tensor->id] || kiln_tensor_has_dest(tensor);
}

bool kiln_overlaps(const KilnTensor *updated, const KilnTensor *variable)
{
    uintptr_t a = kiln_location_address(&updated->at), b = kiln_location_address(&variable->at);

    return updated == variable || (a != 0 && b != 0 && a < b + kiln_tensor_bytes(variable) &&
                                   b < a + kiln_tensor_bytes(updated));
}

bool kiln_rewrite_written(const KilnRewrite *rewrite, const KilnTensor *tensor, size_t from,
                          size_t to)
{
    if (rewrite->made[tensor->id] != NULL || !tensor->variable)
        return false;
    for (size_t i = from + 1; i < to; i++) {
        const KilnNode *node = rewrite->nodes[i];

        if (node == NULL || node->op->updates == 0)
            continue;
        for (int k = 0; k < node->n_inputs; k++)
            if ((node->op->updates >> k & 1) != 0 && node->inputs[k] != NULL &&
                kiln_overlaps(node->inputs[k], tensor))
                return true;
    }
    return false;
}

/* ---- Entry point ---------------------------------------------------------------- */

/* Shares tensors, except those recorded as f32 but stored as bf16: passes and planning see their
 * real type. NULL when out of memory. */
static KilnTensor *copy_tensor(KilnRewrite *rewrite, KilnTensor *tensor)
{
    if (!tensor->stored_bf16)
        return tensor;
    KilnTensor *copy = kiln_arena_alloc(rewrite->arena, sizeof(*copy));
    if (copy != NULL) {
        *copy = *tensor;
        copy->dtype = KILN_BF16;
        rewrite->has_bf16_variables = true;
    }
    return copy;
}

static void take_copies(const KilnRewrite *rewrite, KilnNode *node)
{
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] != NULL)
            node->inputs[i] = rewrite->tensors[node->inputs[i]->id];
    for (int i = 0; i < node->n_outputs; i++)
        node->outputs[i] = rewrite->tensors[node->outputs[i]->id];
}

/* Copies nodes, because passes change them. */
static KilnStatus copy_step(KilnRewrite *rewrite, KilnError *err)
{
    const KilnGraph *graph = rewrite->graph;

    rewrite->nodes = kiln_arena_alloc(rewrite->arena, (graph->n_nodes + 1) * sizeof(KilnNode *));
    if (rewrite->nodes == NULL || !reserve_tensor(rewrite))
        return kiln_error_nomem(err, graph->n_nodes * sizeof(KilnNode *));
    for (size_t i = 0; i < graph->n_tensors; i++) {
        KilnTensor *tensor = copy_tensor(rewrite, graph->tensors[i]);

        if (tensor == NULL)
            return kiln_error_nomem(err, sizeof(*tensor));
        rewrite->tensors[rewrite->n_tensors++] = tensor;
    }
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const KilnNode *node = graph->nodes[i];
        KilnNode *copy = kiln_rewrite_node(rewrite, node->op, node->inputs, node->n_inputs,
                                           node->outputs, node->n_outputs, node->attrs,
                                           node->layer);

        if (copy == NULL)
            return kiln_error_nomem(err, sizeof(*copy));
        copy->segment = node->segment;
        take_copies(rewrite, copy);
        rewrite->nodes[rewrite->n_nodes++] = copy;
    }
    return KILN_OK;
}

/* Whether a pass is off. Precision always runs with bf16 variables, since operations expect f32. */
static bool is_left_out(const KilnRewrite *rewrite, size_t pass)
{
    const KilnGraph *graph = rewrite->graph;

    if (pass == KILN_PASS_precision && rewrite->has_bf16_variables)
        return false;
    return (graph->passes_off >> pass & 1) != 0 ||
           (graph->detect_anomaly && kiln_passes[pass].merges);
}

KilnStatus kiln_rewrite_step(KilnGraph *graph, KilnTensor *const *outputs, size_t n,
                             KilnArena *arena, KilnRewrite *ret, KilnError *err)
{
    *ret = (KilnRewrite) { .graph = graph, .arena = arena };
    KilnStatus status = copy_step(ret, err);

    for (size_t i = 0; i < n && status >= 0; i++)
        ret->kept[outputs[i]->id] = true;
    for (size_t i = 0; i < kiln_passes_count && status >= 0; i++) {
        kiln_rewrite_index(ret);
        if (!is_left_out(ret, i))
            status = kiln_passes[i].run(ret, err);
    }
    kiln_rewrite_index(ret);
    return status;
}
