/* Recording: creates and frees the graph, its leaves, and the nodes that operations append. Extends
 * the plan key as it goes. Computes nothing. */
#include <stdlib.h>
#include <string.h>

#include "graph/backend.h"
#include "graph/op_check.h"
#include "graph/ops/custom.h"
#include "graph/plan/converted.h"
#include "graph/plan/plan.h"
#include "graph/plan/plan_cache.h"

/* Of tensors: 32-bit indexing is safe in every kernel and library. Of the flat buffers of a model
 * and its optimizer, which only updates and norms read: their sizes in bytes fit. */
static const int64_t most_elements = INT64_C(1) << 31, most_flat = INT64_C(1) << 48;

/* ---- Create and free ------------------------------------------------------------ */

KilnStatus kiln_graph_new(KilnBackend *backend, KilnGraph **ret, KilnError *err)
{
    KilnGraph *graph = calloc(1, sizeof(*graph));

    if (graph == NULL)
        return kiln_error_nomem(err, sizeof(*graph));
    graph->backend = backend;
    graph->float_type = backend->float_type;
    graph->plan_cache.limit = KILN_PLAN_CACHE_BYTES;
    graph->poison = calloc(1, sizeof(*graph->poison));
    if (graph->poison == NULL) {
        kiln_graph_free(graph);
        return kiln_error_nomem(err, sizeof(*graph));
    }
    *graph->poison = (KilnTensor) { .graph = graph, .id = -1, .poisoned = true };
    kiln_graph_begin(graph);
    *ret = graph;
    return KILN_OK;
}

void kiln_graph_free(KilnGraph *graph)
{
    if (graph == NULL)
        return;
    kiln_plans_free(graph->plans);
    kiln_converted_free(graph);
    kiln_custom_ops_free(graph);
    kiln_arena_release(&graph->arena);
    free(graph->plan_key.bytes);
    free(graph->plan_cache.last_key);
    free(graph->poison);
    free(graph->nodes);
    free(graph->tensors);
    kiln_buffer_free(graph->block);
    kiln_buffer_free(graph->uploads);
    free(graph->results);
    free(graph);
}

void kiln_graph_set_precision(KilnGraph *graph, KilnPrecision precision)
{
    if (graph->backend->float_type == KILN_F32)
        graph->precision = precision;
}

void kiln_graph_begin(KilnGraph *graph)
{
    kiln_arena_clear(&graph->arena);
    graph->n_nodes = 0;
    graph->n_tensors = 0;
    graph->n_forward = 0;
    graph->backward = false;
    graph->accumulates = false;
    graph->layer = NULL;
    graph->lookup_factors = NULL;
    graph->block_now = graph->n_blocks = graph->segment = 0;
    graph->error.status = KILN_OK;
    graph->error.text[0] = '\0';
    graph->plan_key.n = 0;
    graph->plan_key.failed = false;
}

void kiln_graph_layer(KilnGraph *graph, const char *path)
{
    graph->layer = path;
}

/* ---- Errors ------------------------------------------------------------------ */

KilnStatus kiln_graph_check(const KilnGraph *graph, KilnError *err)
{
    if (graph->error.status < 0)
        return kiln_error_set(err, graph->error.status, "%s", graph->error.text);
    return KILN_OK;
}

/* Keeps `err`, prefixed with the layer, if it is the step's first. */
static KilnTensor *poison_with(KilnGraph *graph, const KilnError *err)
{
    if (graph->error.status >= 0) {
        graph->error = *err;
        if (graph->layer != NULL && graph->layer[0] != '\0')
            kiln_error_prefix(&graph->error, "%s: ", graph->layer);
    }
    return graph->poison;
}

KilnTensor *kiln_graph_poison_nomem(KilnGraph *graph, size_t bytes)
{
    KilnError err;

    kiln_error_nomem(&err, bytes);
    return poison_with(graph, &err);
}

KilnTensor *kiln_graph_poison(KilnGraph *graph, const char *format, ...)
{
    KilnError err;
    va_list args;

    va_start(args, format);
    kiln_error_vset(&err, KILN_E_SHAPE, format, args);
    va_end(args);
    return poison_with(graph, &err);
}

/* ---- Tensors ----------------------------------------------------------------- */

/* Makes room for `more` items in a grow-only array of pointers. Returns the array, which may have
 * moved, or NULL when out of memory; the old array stays valid. */
static void *reserve(void *items, size_t count, size_t more, size_t *capacity)
{
    size_t wanted = *capacity > 0 ? *capacity : 256;

    if (items != NULL && count + more <= *capacity)
        return items;
    while (wanted < count + more)
        wanted *= 2;
    void *fresh = realloc(items, wanted * sizeof(void *));
    if (fresh != NULL)
        *capacity = wanted;
    return fresh;
}

static bool reserve_tensors(KilnGraph *graph, int more)
{
    KilnTensor **tensors = reserve(graph->tensors, graph->n_tensors, (size_t)more,
                                   &graph->cap_tensors);

    if (tensors != NULL)
        graph->tensors = tensors;
    return tensors != NULL;
}

static bool reserve_node(KilnGraph *graph)
{
    KilnNode **nodes = reserve(graph->nodes, graph->n_nodes, 1, &graph->cap_nodes);

    if (nodes != NULL)
        graph->nodes = nodes;
    return nodes != NULL;
}

static KilnTensor *tensor_new(KilnGraph *graph, KilnNode *node, int output)
{
    KilnTensor *tensor = kiln_arena_alloc(&graph->arena, sizeof(*tensor));

    if (tensor != NULL) {
        tensor->graph = graph;
        tensor->node = node;
        tensor->output = output;
    }
    return tensor;
}

/* Counts a tensor once it is complete, so that a failed node leaves none. */
static void tensor_keep(KilnGraph *graph, KilnTensor *tensor)
{
    tensor->id = (int)graph->n_tensors;
    graph->tensors[graph->n_tensors++] = tensor;
}

/* Unused axes are zero, so that shapes can be hashed and compared. */
static KilnShape shape_normal(const KilnShape *shape)
{
    KilnShape normal;

    memset(&normal, 0, sizeof(normal));
    normal.rank = shape->rank;
    for (int i = 0; i < shape->rank; i++)
        normal.dim[i] = shape->dim[i];
    return normal;
}

static KilnStatus check_shape(const KilnShape *shape, int64_t most, KilnError *err)
{
    char text[KILN_SHAPE_TEXT];

    if (shape->rank < 0 || shape->rank > KILN_MAX_RANK)
        return kiln_error_set(err, KILN_E_SHAPE, "%d axes; 0 to %d are possible", shape->rank,
                              KILN_MAX_RANK);
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dim[i] < 1)
            return kiln_error_set(err, KILN_E_SHAPE, "shape %s; every size must be at least 1",
                                  kiln_shape_text(shape, text, sizeof(text)));
    }
    int64_t count = kiln_shape_count(shape);
    if (count < 0 || count >= most)
        return kiln_error_set(
            err, KILN_E_SHAPE, "shape %s has too many elements; less than 2^%d are possible",
            kiln_shape_text(shape, text, sizeof(text)), most == most_flat ? 48 : 31);
    return KILN_OK;
}

KilnStatus kiln_shape_check(const KilnShape *shape, KilnError *err)
{
    return check_shape(shape, most_elements, err);
}

/* ---- Plan key ------------------------------------------------------------------- */

void kiln_plan_key_add(KilnPlanKey *plan_key, const void *bytes, size_t n)
{
    if (plan_key->n + n > plan_key->capacity) {
        const size_t capacity = 2 * (plan_key->n + n) + 4096;
        unsigned char *fresh = realloc(plan_key->bytes, capacity);

        plan_key->failed |= fresh == NULL;
        if (fresh == NULL)
            return;
        plan_key->bytes = fresh;
        plan_key->capacity = capacity;
    }
    memcpy(plan_key->bytes + plan_key->n, bytes, n);
    plan_key->n += n;
}

/* ---- Leaves ------------------------------------------------------------------ */

static KilnTensor *leaf_new(KilnGraph *graph, const char *kind, KilnDType dtype,
                            const KilnShape *shape, int64_t most)
{
    KilnError err;

    if (check_shape(shape, most, &err) < 0) {
        kiln_error_prefix(&err, "%s: ", kind);
        return poison_with(graph, &err);
    }
    KilnTensor *tensor = reserve_tensors(graph, 1) ? tensor_new(graph, NULL, 0) : NULL;
    if (tensor == NULL)
        return kiln_graph_poison_nomem(graph, sizeof(*tensor));
    tensor->dtype = dtype;
    tensor->shape = shape_normal(shape);
    tensor_keep(graph, tensor);
    return tensor;
}

static void key_add_leaf(KilnGraph *graph, const KilnTensor *leaf)
{
    int64_t words[4 + KILN_MAX_RANK] = {
        -1, leaf->dtype,
        (leaf->variable ? 1 : 0) | (leaf->wants_grad ? 2 : 0) |
            (kiln_location_address(&leaf->grad_dest) != 0 ? 4 : 0) | (leaf->stored_bf16 ? 8 : 0),
        leaf->shape.rank
    };

    memcpy(words + 4, leaf->shape.dim, sizeof(leaf->shape.dim));
    kiln_plan_key_add(&graph->plan_key, words, sizeof(words));
}

KilnTensor *kiln_graph_input(KilnGraph *graph, KilnDType dtype, KilnShape shape, const void *data)
{
    KilnTensor *leaf = leaf_new(graph, "input", dtype, &shape, most_elements);

    if (leaf->poisoned)
        return leaf;
    leaf->data = data;
    leaf->at.host = (void *)data; /* never written: only variables are updated */
    key_add_leaf(graph, leaf);
    return dtype == KILN_F32 && graph->float_type == KILN_F64 ? kiln_cast(leaf, KILN_F64) : leaf;
}

KilnTensor *kiln_graph_scalar(KilnGraph *graph, double value)
{
    const bool f64 = graph->float_type == KILN_F64;
    const float single = (float)value;
    void *copy = kiln_arena_alloc(&graph->arena, sizeof(value));

    if (copy == NULL)
        return kiln_graph_poison_nomem(graph, sizeof(value));
    if (f64)
        memcpy(copy, &value, sizeof(value));
    else
        memcpy(copy, &single, sizeof(single));
    return kiln_graph_input(graph, graph->float_type, KILN_SCALAR, copy);
}

KilnTensor *kiln_graph_variable(KilnGraph *graph, KilnDType dtype, KilnShape shape, void *data,
                                bool wants_grad, void *grad)
{
    const KilnLocation at = { .host = data }, gradient = { .host = grad };

    return kiln_graph_variable_at(graph, dtype, shape, at, wants_grad, gradient);
}

KilnTensor *kiln_graph_variable_at(KilnGraph *graph, KilnDType dtype, KilnShape shape,
                                   KilnLocation at, bool wants_grad, KilnLocation grad)
{
    const bool bf16 = dtype == KILN_BF16 && graph->float_type == KILN_F32;
    const bool flat = shape.rank == 1 && !wants_grad;
    KilnTensor *leaf = leaf_new(graph, "variable", bf16 ? KILN_F32 : dtype, &shape,
                                flat ? most_flat : most_elements);

    if (leaf->poisoned)
        return leaf;
    if (wants_grad && leaf->dtype != graph->float_type)
        return kiln_graph_poison(graph, "variable: only %s supports gradients here, got %s",
                                 kiln_dtype_name(graph->float_type), kiln_dtype_name(dtype));
    leaf->data = at.host;
    leaf->at = at;
    leaf->variable = true;
    leaf->stored_bf16 = bf16;
    leaf->wants_grad = wants_grad;
    if (wants_grad)
        leaf->grad_dest = grad;
    key_add_leaf(graph, leaf);
    return leaf;
}

/* ---- Nodes ------------------------------------------------------------------- */

static void key_add_node(KilnGraph *graph, const KilnNode *node)
{
    int64_t words[3 + KILN_MAX_INPUTS];
    size_t n = 0;

    words[n++] = (int64_t)(intptr_t)node->op;
    words[n++] = node->n_inputs;
    words[n++] = node->segment;
    for (int i = 0; i < node->n_inputs; i++)
        words[n++] = node->inputs[i] != NULL ? node->inputs[i]->id : -1;
    kiln_plan_key_add(&graph->plan_key, words, n * sizeof(*words));
    if (node->op->attrs_size > 0)
        kiln_plan_key_add(&graph->plan_key, node->attrs, node->op->attrs_size);
}

/* A node whose outputs have no shape yet; NULL when out of memory. */
static KilnNode *node_new(KilnGraph *graph, const KilnOp *op, KilnTensor *const *inputs,
                          int n_inputs, const void *attrs)
{
    if (!reserve_node(graph) || !reserve_tensors(graph, op->n_outputs))
        return NULL;
    KilnNode *node = kiln_arena_alloc(&graph->arena, sizeof(*node) + op->attrs_size);
    if (node == NULL)
        return NULL;
    node->op = op;
    node->index = (int)graph->n_nodes;
    node->n_inputs = n_inputs;
    node->n_outputs = op->n_outputs;
    node->layer = graph->layer;
    node->block = graph->block_now;
    node->segment = graph->segment;
    for (int i = 0; i < n_inputs; i++)
        node->inputs[i] = inputs[i];
    if (op->attrs_size > 0) {
        node->attrs = node + 1;
        memcpy(node->attrs, attrs, op->attrs_size);
    }
    for (int i = 0; i < op->n_outputs; i++) {
        node->outputs[i] = tensor_new(graph, node, i);
        if (node->outputs[i] == NULL)
            return NULL;
    }
    return node;
}

/* Checks the inputs in general, before the operation checks its own rules. */
/* Whether kernels of the operation index flat buffers with 64 bits. */
static bool takes_flat(const KilnOp *op)
{
    return op->updates != 0 || op == &kiln_op_l2_norm;
}

static KilnStatus check_inputs(const KilnGraph *graph, const KilnOp *op, KilnTensor *const *inputs,
                               int n_inputs, KilnError *err)
{
    for (int i = 0; i < n_inputs; i++) {
        const KilnTensor *x = inputs[i];

        if (x == NULL)
            continue;
        if (x->graph != graph)
            return kiln_error_set(err, KILN_E_INTERNAL, "input %d belongs to another graph", i + 1);
        if ((op->updates >> i & 1) != 0 && !x->variable)
            return kiln_error_set(err, KILN_E_INTERNAL,
                                  "input %d is updated and must be a variable", i + 1);
        if (!takes_flat(op) && kiln_shape_check(&x->shape, err) < 0)
            return kiln_error_prefix(err, "input %d: ", i + 1);
    }
    return KILN_OK;
}

static bool is_float(KilnDType dtype)
{
    return dtype == KILN_F32 || dtype == KILN_BF16 || dtype == KILN_F64;
}

/* Infers the outputs, checks them, and propagates wants_grad. */
static KilnStatus node_infer(KilnNode *node, KilnError *err)
{
    const KilnOp *op = node->op;
    bool wants_grad = false;
    KilnStatus status = op->infer(node, err);

    if (status < 0)
        return status;
    for (int i = 0; i < node->n_inputs; i++)
        wants_grad |= node->inputs[i] != NULL && node->inputs[i]->wants_grad &&
                      (op->constant >> i & 1) == 0;
    for (int i = 0; i < node->n_outputs; i++) {
        KilnTensor *output = node->outputs[i];

        status = kiln_shape_check(&output->shape, err);
        if (status < 0)
            return kiln_error_prefix(err, "result: ");
        output->wants_grad = wants_grad && is_float(output->dtype);
    }
    return KILN_OK;
}

KilnTensor *kiln_graph_record(KilnGraph *graph, const KilnOp *op, KilnTensor *const *inputs,
                              int n_inputs, const void *attrs)
{
    KilnError err;

    for (int i = 0; i < n_inputs; i++) {
        if (inputs[i] != NULL && inputs[i]->poisoned)
            return graph->poison;
    }
    KilnStatus status = check_inputs(graph, op, inputs, n_inputs, &err);
    KilnNode *node = NULL;
    if (status >= 0) {
        node = node_new(graph, op, inputs, n_inputs, attrs);
        status = node != NULL ? node_infer(node, &err) : kiln_error_nomem(&err, sizeof(*node));
    }
    if (status < 0) {
        kiln_error_prefix(&err, "%s: ", op->name);
        return poison_with(graph, &err);
    }
    graph->nodes[graph->n_nodes++] = node;
    for (int i = 0; i < node->n_outputs; i++)
        tensor_keep(graph, node->outputs[i]);
    key_add_node(graph, node);
    return node->n_outputs > 0 ? node->outputs[0] : NULL;
}
