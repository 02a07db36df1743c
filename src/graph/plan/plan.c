/* Planning: turns the recorded nodes into kernel calls. Runs the passes (graph/passes), chooses
 * kernels, and inserts layout conversions where producer and reader differ. plan_memory.c assigns
 * the memory. */
#include "graph/plan/plan.h"

#include "graph/passes/passes.h"
#include "graph/plan/constants.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* A tensor's bytes in one layout. The first value of a tensor is its producer's; later ones are
 * conversions of it. */
typedef struct Value {
    struct Value *next;
    KilnLayout layout;
    size_t bytes;
    int storage;
    bool backward; /* the producer computes gradients */
} Value;

typedef struct Builder {
    KilnGraph *graph;
    KilnPlan *plan;
    KilnArena arena;  /* for planning only */
    KilnRewrite step; /* the recorded step after all passes */
    bool *constant;   /* per tensor: depends on parameters alone; see constants.h */
    Value **values;   /* per tensor: its values, NULL before its producer */
    size_t converted; /* bytes of parameters in other layouts, so far */
    int *reach; /* per tensor: index of the last node that reads its bytes, also through aliases;
                   INT_MAX: read after the run; -1: never read */
    KilnError *err;
} Builder;

/* ---- Values -------------------------------------------------------------------- */

static size_t plain_bytes(const KilnTensor *tensor)
{
    return (size_t)kiln_shape_count(&tensor->shape) * kiln_dtype_size(tensor->dtype);
}

/* Appends a value to those of a tensor; NULL when out of memory. */
static Value *value_add(Builder *b, const KilnTensor *tensor, KilnLayout layout, size_t bytes,
                        int storage)
{
    Value *value = kiln_arena_alloc(&b->arena, sizeof(*value));
    Value **end = &b->values[tensor->id];

    if (value == NULL) {
        kiln_error_nomem(b->err, sizeof(*value));
        return NULL;
    }
    while (*end != NULL)
        end = &(*end)->next;
    *value = (Value) {
        .layout = layout, .bytes = bytes, .storage = storage, .backward = b->plan->backward
    };
    return *end = value;
}

/* The producer's value. A leaf gets one at its first use. */
static Value *value_made(Builder *b, const KilnTensor *tensor)
{
    if (b->values[tensor->id] != NULL)
        return b->values[tensor->id];
    int storage = kiln_plan_storage_new(b->plan, KILN_STORAGE_LEAF, tensor->id, plain_bytes(tensor),
                                        b->err);
    return storage >= 0 ? value_add(b, tensor, KILN_PLAIN, plain_bytes(tensor), storage) : NULL;
}

static KilnArg arg_of(const KilnTensor *tensor, const Value *value)
{
    return (KilnArg) { .dtype = tensor->dtype,
                       .shape = tensor->shape,
                       .layout = value->layout,
                       .bytes = value->bytes };
}

/* Appends a call that copies `from` to the storage `to`, converting the layout if needed. Both have
 * the type and shape of `tensor`. */
static KilnStatus emit_copy(Builder *b, const KilnTensor *tensor, const Value *from,
                            const Value *to, const char *layer)
{
    const KilnKernel *kernel = b->graph->backend->ops->reorder;
    KilnPlanCall *made = kiln_plan_call_new(b->plan, b->graph->backend, kernel, layer, "reorder",
                                            b->err);

    if (made == NULL)
        return KILN_E_NOMEM;
    made->call.n_inputs = made->call.n_outputs = 1;
    made->call.inputs[0] = arg_of(tensor, from);
    made->call.outputs[0] = arg_of(tensor, to);
    made->call.outputs[0].fixed = true;
    if (kiln_plan_call_prepare(made, b->err) < 0)
        return b->err->status;
    made->inputs[0] = from->storage;
    made->outputs[0] = to->storage;
    const bool before = b->plan->constant;
    b->plan->constant = b->constant[tensor->id];
    KilnStatus status = kiln_plan_call_push(b->plan, made, b->err);
    b->plan->constant = before;
    return status;
}

/* The tensor's value in `layout`, converted if it does not exist yet. */
static Value *value_in(Builder *b, const KilnTensor *tensor, KilnLayout layout, const char *layer)
{
    Value *made = b->values[tensor->id];
    const KilnBackend *backend = b->graph->backend;

    for (Value *value = made; value != NULL; value = value->next) {
        if (value->layout == layout)
            return value;
    }
    size_t bytes = layout == KILN_PLAIN
                       ? plain_bytes(tensor)
                       : backend->ops->layout_bytes(backend, layout, tensor->dtype, &tensor->shape);
    int storage = kiln_plan_storage_new(b->plan, KILN_STORAGE_BLOCK, tensor->id, bytes, b->err);
    if (storage < 0)
        return NULL;
    if (b->constant[tensor->id])
        b->converted += bytes;
    Value *converted = value_add(b, tensor, layout, bytes, storage);
    if (converted == NULL || emit_copy(b, tensor, made, converted, layer) < 0)
        return NULL;
    return converted;
}

/* ---- Variables that are updated ------------------------------------------------ */

static bool node_touches(const KilnNode *node, const KilnTensor *variable)
{
    for (int i = 0; i < node->n_inputs; i++) {
        if ((node->op->updates >> i & 1) != 0 && node->inputs[i] != NULL &&
            kiln_overlaps(node->inputs[i], variable))
            return true;
    }
    return false;
}

/* After an update, conversions of the variable's old value are stale. */
static void drop_conversions(Builder *b, const KilnNode *node)
{
    for (size_t i = 0; i < b->step.n_tensors; i++) {
        const KilnTensor *tensor = b->step.tensors[i];

        if (b->values[i] != NULL && b->values[i]->next != NULL && tensor->variable &&
            node_touches(node, tensor))
            b->values[i]->next = NULL;
    }
}

/* Whether output 0 of the node may share the bytes of `value`: it has no destination, and nothing
 * writes the bytes while they are still read. */
static bool may_alias(const Builder *b, const KilnNode *node, const Value *value)
{
    const KilnStorage *storage = &b->plan->storages[value->storage];
    const KilnTensor *output = node->outputs[0];

    if (kiln_tensor_has_dest(output))
        return false;
    if (storage->kind != KILN_STORAGE_LEAF)
        return true;
    const KilnTensor *leaf = b->step.tensors[storage->tensor];
    if (!leaf->variable)
        return true;
    for (size_t i = (size_t)node->index + 1; i < b->step.n_nodes; i++) {
        const KilnNode *later = b->step.nodes[i];

        if (later->index > b->reach[output->id])
            break;
        if (later->op->updates != 0 && node_touches(later, leaf))
            return false;
    }
    return true;
}

/* ---- Nodes to calls ------------------------------------------------------------ */

/* Sets storage and value of output i of a prepared call. */
static KilnStatus assign_output(Builder *b, KilnPlanCall *made, const KilnTensor *output, int i)
{
    const KilnArg *arg = &made->call.outputs[i];
    KilnStorageKind kind = kiln_tensor_has_dest(output) ? KILN_STORAGE_DEST : KILN_STORAGE_BLOCK;

    made->outputs[i] = kiln_plan_storage_new(b->plan, kind, output->id, arg->bytes, b->err);
    if (made->outputs[i] < 0 ||
        value_add(b, output, arg->layout, arg->bytes, made->outputs[i]) == NULL)
        return KILN_E_NOMEM;
    return KILN_OK;
}

/* Makes output 0 share input 0's bytes or, where that is impossible, copies them. */
static KilnStatus emit_alias(Builder *b, KilnPlanCall *made, const KilnNode *node,
                             const Value *input)
{
    const KilnTensor *output = node->outputs[0];

    kiln_plan_call_release(made);
    if (may_alias(b, node, input)) {
        const KilnArg *arg = &made->call.outputs[0];

        return value_add(b, output, arg->layout, arg->bytes, input->storage) != NULL ? KILN_OK
                                                                                     : KILN_E_NOMEM;
    }
    if (assign_output(b, made, output, 0) < 0)
        return KILN_E_NOMEM;
    return emit_copy(b, output, input, b->values[output->id], node->layer);
}

/* Whether a conversion of the tensor is kept between runs: up to the bytes that plans may take. */
static bool keeps_conversion(const Builder *b, const KilnTensor *tensor)
{
    return b->constant[tensor->id] &&
           b->converted + plain_bytes(tensor) <= b->graph->plan_cache.limit;
}

static KilnStatus fill_args(Builder *b, KilnPlanCall *made, const KilnNode *node)
{
    KilnCall *call = &made->call;

    call->op = node->op;
    call->n_inputs = node->n_inputs;
    call->n_outputs = node->n_outputs;
    for (int i = 0; i < node->n_inputs; i++) {
        const Value *value = node->inputs[i] != NULL ? value_made(b, node->inputs[i]) : NULL;

        if (value == NULL && node->inputs[i] != NULL)
            return KILN_E_NOMEM;
        if (value == NULL)
            continue;
        call->inputs[i] = arg_of(node->inputs[i], value);
        call->inputs[i].constant = keeps_conversion(b, node->inputs[i]);
    }
    for (int i = 0; i < node->n_outputs; i++) {
        const KilnTensor *output = node->outputs[i];

        call->outputs[i] = (KilnArg) { .dtype = output->dtype,
                                       .shape = output->shape,
                                       .fixed = !b->step.layouts || kiln_tensor_has_dest(output) ||
                                                b->reach[output->id] == INT_MAX,
                                       .has_dest = kiln_tensor_has_dest(output),
                                       .bytes = plain_bytes(output) };
    }
    if (node->epilogue != NULL) {
        KilnMap *map = kiln_arena_alloc(&b->plan->arena, sizeof(*map));

        if (map == NULL)
            return kiln_error_nomem(b->err, sizeof(*map));
        *map = *node->epilogue;
        call->epilogue = map;
    }
    if (node->op->attrs_size > 0) {
        void *attrs = kiln_arena_alloc(&b->plan->arena, node->op->attrs_size);

        if (attrs == NULL)
            return kiln_error_nomem(b->err, node->op->attrs_size);
        call->attrs = memcpy(attrs, node->attrs, node->op->attrs_size);
    }
    return KILN_OK;
}

/* Converts the inputs to the layouts that the kernel requests. */
static KilnStatus convert_inputs(Builder *b, KilnPlanCall *made, const KilnNode *node)
{
    for (int i = 0; i < node->n_inputs; i++) {
        KilnArg *arg = &made->call.inputs[i];

        if (node->inputs[i] == NULL)
            continue;
        if ((node->op->updates >> i & 1) != 0 && arg->layout != KILN_PLAIN)
            return kiln_error_set(b->err, KILN_E_INTERNAL,
                                  "%s: the kernel requests a layout for a variable that it updates",
                                  made->name);
        const Value *value = value_in(b, node->inputs[i], arg->layout, node->layer);
        if (value == NULL)
            return b->err->status;
        arg->bytes = value->bytes;
        made->inputs[i] = value->storage;
        if ((node->op->updates >> i & 1) != 0)
            b->plan->storages[value->storage].written = true;
    }
    return KILN_OK;
}

/* Whether the node belongs to the backward pass or comes after it. A node that a pass made follows
 * its inputs, or else the node before it. */
static bool is_backward(const Builder *b, const KilnNode *node)
{
    const KilnGraph *graph = b->graph;

    if (!graph->backward || graph->n_forward >= graph->n_nodes)
        return false;
    const KilnNode *first = graph->nodes[graph->n_forward];
    for (int i = 0; i < node->n_outputs; i++)
        if ((size_t)node->outputs[i]->id < graph->n_tensors)
            return node->outputs[i]->id >= first->outputs[0]->id;
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] != NULL && b->values[node->inputs[i]->id] != NULL &&
            b->values[node->inputs[i]->id]->backward)
            return true;
    return b->plan->backward;
}

static KilnStatus emit_node(Builder *b, const KilnNode *node)
{
    KilnBackend *backend = b->graph->backend;
    const KilnKernel *kernel = backend->ops->kernel(backend, node->op);

    if (kernel == NULL && node->op->custom != NULL)
        return kiln_error_set(b->err, KILN_E_INTERNAL,
                              "operation %s has no kernel in double precision: cpu_f64",
                              node->op->name);
    if (kernel == NULL)
        return kiln_error_set(b->err, KILN_E_INTERNAL, "the %s backend has no kernel for %s",
                              backend->ops->name, node->op->name);
    if (node->epilogue != NULL && !kernel->epilogue)
        return kiln_error_set(b->err, KILN_E_INTERNAL, "%s cannot run the map that was fused to it",
                              node->op->name);
    b->plan->backward = is_backward(b, node);
    b->plan->constant = node->n_outputs > 0 && b->constant[node->outputs[0]->id];
    KilnPlanCall *made = kiln_plan_call_new(b->plan, backend, kernel, node->layer, node->op->name,
                                            b->err);
    if (made != NULL && node->op->flops != NULL)
        made->flops = node->op->flops(node);
    if (made == NULL || fill_args(b, made, node) < 0 || kiln_plan_call_prepare(made, b->err) < 0 ||
        convert_inputs(b, made, node) < 0)
        return b->err->status;
    if (kernel->alias) {
        const Value *input = value_in(b, node->inputs[0], made->call.inputs[0].layout, node->layer);

        return input != NULL ? emit_alias(b, made, node, input) : b->err->status;
    }
    for (int i = 0; i < node->n_outputs; i++) {
        if (assign_output(b, made, node->outputs[i], i) < 0)
            return b->err->status;
    }
    if (kiln_plan_call_push(b->plan, made, b->err) < 0)
        return b->err->status;
    if (node->op->updates != 0)
        drop_conversions(b, node);
    return KILN_OK;
}

/* ---- Entry point ---------------------------------------------------------------- */

/* Finds how long each tensor's bytes are read, backwards from the last node. */
static void find_reach(Builder *b)
{
    const KilnBackend *backend = b->graph->backend;

    for (size_t i = 0; i < b->step.n_tensors; i++)
        b->reach[i] = b->step.kept[i] ? INT_MAX : -1;
    for (size_t i = b->step.n_nodes; i-- > 0;) {
        const KilnNode *node = b->step.nodes[i];
        const KilnKernel *kernel = backend->ops->kernel(backend, node->op);
        int read = (int)i;

        if (kernel != NULL && kernel->alias && b->reach[node->outputs[0]->id] > read)
            read = b->reach[node->outputs[0]->id];
        for (int k = 0; k < node->n_inputs; k++) {
            if (node->inputs[k] != NULL && b->reach[node->inputs[k]->id] < read)
                b->reach[node->inputs[k]->id] = read;
        }
    }
}

static KilnStatus build(Builder *b, KilnTensor *const *outputs, size_t n)
{
    KilnPlan *plan = b->plan;

    if (kiln_rewrite_step(b->graph, outputs, n, &b->arena, &b->step, b->err) < 0)
        return b->err->status;
    b->values = kiln_arena_alloc(&b->arena, (b->step.n_tensors + 1) * sizeof(Value *));
    b->reach = kiln_arena_alloc(&b->arena, (b->step.n_tensors + 1) * sizeof(int));
    b->constant = kiln_arena_alloc(&b->arena, b->step.n_tensors + 1);
    plan->outputs = malloc((n + 1) * sizeof(int));
    if (b->values == NULL || b->reach == NULL || b->constant == NULL || plan->outputs == NULL)
        return kiln_error_nomem(b->err, b->step.n_tensors * sizeof(Value));
    find_reach(b);
    if (b->step.constants)
        kiln_constants_find(&b->step, b->constant);
    for (size_t i = 0; i < b->step.n_nodes; i++) {
        if (emit_node(b, b->step.nodes[i]) < 0)
            return b->err->status;
    }
    for (size_t i = 0; i < n; i++) {
        const KilnTensor *output = outputs[i];

        plan->outputs[i] = output->node != NULL ? b->values[output->id]->storage : -1;
        if (plan->outputs[i] >= 0)
            plan->storages[plan->outputs[i]].kept = true;
    }
    if (kiln_constants_place(plan, b->err) < 0)
        return b->err->status;
    return kiln_plan_memory(plan, b->step.in_place, b->step.share_memory, b->err);
}

KilnStatus kiln_plan_new(KilnGraph *graph, KilnTensor *const *outputs, size_t n, KilnPlan **ret,
                         KilnError *err)
{
    KilnError local = { .status =
                            KILN_E_INTERNAL }; /* build returns this status, so it needs an error */
    Builder b = { .graph = graph, .err = &local };

    b.plan = calloc(1, sizeof(*b.plan));
    if (b.plan == NULL)
        return kiln_error_nomem(err, sizeof(*b.plan));
    KilnStatus status = build(&b, outputs, n);
    kiln_arena_release(&b.arena);
    if (status < 0) {
        kiln_plans_free(b.plan);
        return kiln_error_set(err, local.status, "%s", local.text);
    }
    *ret = b.plan;
    return KILN_OK;
}
