/* Mixed precision, as torch.autocast: decides which values are bf16, inserts casts where producer
 * and reader differ, and casts around kernels that do not support bf16.
 *
 * Products and convolutions read and write bf16. What follows stays bf16 until an operation that
 * must be exact (a loss, a statistic, a sum, an update) reads it. Leaves, results that are read
 * after the run, and values with a destination (gradients in their flat buffer) stay f32 or bf16 as
 * they are. */
#include "graph/op.h"
#include "graph/passes/passes.h"

typedef struct Autocast {
    KilnRewrite *step;
    bool storage; /* bf16 is a storage type only; everything is computed in f32 */
    /* By id of the tensors that existed before the pass: */
    KilnTensor **stored;  /* the tensor that replaces it now; NULL: itself */
    KilnTensor **as_bf16; /* its cast to bf16, made at first use */
    KilnTensor **as_f32;  /* the cast of its bf16 form to f32 that was made last, */
    size_t *as_f32_at;    /* for this node */
    bool *rounded;        /* every reader would round it to bf16 anyway */
    bool *exact;          /* every reader computes in f32 */
    bool *summed;         /* every reader adds it to a value with a destination, as terms of a
                           * parameter's gradient are */
    size_t n_tensors;
    size_t node;      /* being converted: its index in the step */
    KilnNode **nodes; /* the rewritten step */
    size_t n_nodes, cap_nodes;
    KilnError *err;
} Autocast;

/* ---- Queries -------------------------------------------------------------------- */

/* Maps take floats of any type. */
static bool op_takes(const KilnNode *node, int i)
{
    return i >= node->op->n_inputs || (node->op->bf16_inputs >> i & 1) != 0;
}

static bool op_gives(const KilnNode *node, int i)
{
    return i >= node->op->n_outputs || (node->op->bf16_outputs >> i & 1) != 0;
}

static const KilnKernel *kernel_of(const Autocast *p, const KilnNode *node)
{
    const KilnBackend *backend = p->step->graph->backend;

    return backend->ops->kernel(backend, node->op);
}

/* One row through a layer whose weight is stored in bf16, or one query and cached keys: the time is
 * that of reading them, and copies in f32 have twice the bytes. */
static bool reads_bf16_once(const KilnNode *node)
{
    const KilnTensor *x = node->inputs[0], *read = node->inputs[1];

    if (node->op == &kiln_op_linear)
        return read->variable && read->dtype == KILN_BF16 &&
               kiln_shape_count(&x->shape) == x->shape.dim[x->shape.rank - 1];
    return node->op == &kiln_op_attention && read->dtype == KILN_BF16 &&
           kiln_attention_sizes(&x->shape, &read->shape, node->attrs).queries == 1;
}

/* Other products take bf16 only if the processor multiplies it. */
static bool kernel_needs_f32(const Autocast *p, const KilnNode *node)
{
    const KilnKernel *kernel = kernel_of(p, node);

    return kernel == NULL || (node->op->autocast == KILN_AUTOCAST_BF16 &&
                              !p->step->graph->backend->bf16 && !reads_bf16_once(node));
}

static bool kernel_takes(const Autocast *p, const KilnNode *node, int i)
{
    return i >= node->op->n_inputs ||
           (!kernel_needs_f32(p, node) && (kernel_of(p, node)->bf16_inputs >> i & 1) != 0);
}

static bool kernel_gives(const Autocast *p, const KilnNode *node, int i)
{
    return i >= node->op->n_outputs ||
           (!kernel_needs_f32(p, node) && (kernel_of(p, node)->bf16_outputs >> i & 1) != 0);
}

static bool is_float(const KilnTensor *tensor)
{
    return tensor != NULL && (tensor->dtype == KILN_F32 || tensor->dtype == KILN_BF16);
}

static KilnTensor *now(const Autocast *p, KilnTensor *tensor)
{
    return p->stored[tensor->id] != NULL ? p->stored[tensor->id] : tensor;
}

/* ---- Making casts -------------------------------------------------------------------- */

static KilnStatus push(Autocast *p, KilnNode *node)
{
    if (p->n_nodes == p->cap_nodes) {
        size_t capacity = 2 * p->cap_nodes + 64;
        KilnNode **more = kiln_arena_alloc(p->step->arena, capacity * sizeof(*more));

        if (more == NULL)
            return kiln_error_nomem(p->err, capacity * sizeof(*more));
        for (size_t i = 0; i < p->n_nodes; i++)
            more[i] = p->nodes[i];
        p->nodes = more;
        p->cap_nodes = capacity;
    }
    p->nodes[p->n_nodes++] = node;
    return KILN_OK;
}

/* Casts the values of `from` into `to`; image: for a convolution. */
static KilnStatus push_cast(Autocast *p, KilnTensor *from, KilnTensor *to, bool image,
                            const char *layer)
{
    const KilnCastAttrs attrs = { .dtype = (int32_t)to->dtype, .image = image };
    KilnNode *node = kiln_rewrite_node(p->step, &kiln_op_cast, &from, 1, &to, 1, &attrs, layer);

    return node != NULL ? push(p, node) : kiln_error_nomem(p->err, sizeof(*node));
}

static KilnTensor *twin(Autocast *p, const KilnTensor *tensor, KilnDType dtype)
{
    KilnTensor *made = kiln_rewrite_tensor(p->step, dtype, &tensor->shape);

    if (made == NULL)
        kiln_error_nomem(p->err, sizeof(*made));
    return made;
}

static KilnTensor *cast(Autocast *p, KilnTensor *from, KilnDType dtype, bool image,
                        const char *layer)
{
    KilnTensor *to = twin(p, from, dtype);

    return to != NULL && push_cast(p, from, to, image, layer) >= 0 ? to : NULL;
}

/* The bf16 form of a tensor, shared by all its readers. */
static KilnTensor *to_bf16(Autocast *p, KilnTensor *tensor, const char *layer)
{
    KilnTensor *stored = now(p, tensor);

    if (stored->dtype == KILN_BF16)
        return stored;
    if (p->as_bf16[tensor->id] == NULL)
        p->as_bf16[tensor->id] = cast(p, stored, KILN_BF16, false, layer);
    return p->as_bf16[tensor->id];
}

/* Whether the node is a convolution, or a gradient of one, that reads input i as an image. */
static bool reads_image(const KilnNode *node, int i)
{
    return (i == 0 && (node->op == &kiln_op_conv2d || node->op == &kiln_op_conv2d_grad_input ||
                       node->op == &kiln_op_conv_transpose2d)) ||
           (i < 2 && node->op == &kiln_op_conv2d_grad_weight);
}

/* The f32 form of the tensor's bf16 form. Near readers, such as both gradients of a convolution,
 * share it; far ones, such as a gradient and the operation itself, get their own, since f32 kept
 * all the time takes the memory that bf16 saves. */
static KilnTensor *back_to_f32(Autocast *p, KilnTensor *tensor, KilnTensor *bf16, bool image,
                               const char *layer)
{
    enum { NEAR = 3 };
    const int id = tensor->id;

    if (p->as_f32[id] == NULL || p->node - p->as_f32_at[id] > NEAR) {
        p->as_f32[id] = cast(p, bf16, KILN_F32, image, layer);
        p->as_f32_at[id] = p->node;
    }
    return p->as_f32[id];
}

/* After an update, casts of the variable's old value are stale. */
static void drop_casts(Autocast *p, const KilnNode *node)
{
    for (size_t i = 0; i < p->n_tensors; i++)
        for (int k = 0; k < node->n_inputs && (p->as_bf16[i] != NULL || p->as_f32[i] != NULL); k++)
            if ((node->op->updates >> k & 1) != 0 && node->inputs[k] != NULL &&
                p->step->tensors[i]->variable &&
                kiln_overlaps(node->inputs[k], p->step->tensors[i]))
                p->as_bf16[i] = p->as_f32[i] = NULL;
}

/* ---- Which values are bf16 ------------------------------------------------------ */

/* Whether the node stores its inputs, or their sum, in a destination: a parameter that n operations
 * read has a gradient of n terms, which would lose small ones if each partial sum was rounded to
 * bf16. */
static bool sums_gradient(const Autocast *p, const KilnNode *node)
{
    return node->op == &kiln_op_store ||
           (node->op == &kiln_op_add &&
            (kiln_tensor_has_dest(node->outputs[0]) || p->summed[node->outputs[0]->id]));
}

/* Finds the tensors that every reader rounds to bf16, directly or through reshapes, those that
 * every reader needs exact, and those that are terms of sums. */
static void find_rounded(Autocast *p)
{
    const KilnRewrite *step = p->step;

    for (size_t i = 0; i < p->n_tensors; i++)
        p->rounded[i] = p->exact[i] = p->summed[i] = step->reads[i] > 0;
    for (size_t i = step->n_nodes; i-- > 0;) {
        const KilnNode *node = step->nodes[i];
        const KilnKernel *kernel = kernel_of(p, node);
        bool rounds = node->op->autocast == KILN_AUTOCAST_BF16 ||
                      (kernel != NULL && kernel->alias && p->rounded[node->outputs[0]->id]);

        for (int k = 0; k < node->n_inputs; k++)
            if (node->inputs[k] != NULL) {
                p->rounded[node->inputs[k]->id] &= rounds && k < node->op->n_inputs &&
                                                   op_takes(node, k);
                p->exact[node->inputs[k]->id] &= node->op->autocast == KILN_AUTOCAST_F32;
                p->summed[node->inputs[k]->id] &= sums_gradient(p, node);
            }
    }
}

/* PyTorch's promotion: bf16 and f32 of one size give f32; smaller inputs, such as a bias or a
 * scale, do not count. */
static KilnDType follows(const Autocast *p, const KilnNode *node)
{
    int64_t largest = 0;
    bool all_f32 = true;

    for (int k = 0; k < node->n_inputs; k++) {
        KilnTensor *input = node->inputs[k];

        if (!is_float(input) || !op_takes(node, k))
            continue;
        const int64_t count = kiln_shape_count(&input->shape);
        const bool is_f32 = now(p, input)->dtype == KILN_F32;
        if (count >= largest)
            all_f32 = is_f32 || (count == largest && all_f32);
        if (count > largest)
            largest = count;
    }
    return all_f32 ? KILN_F32 : KILN_BF16;
}

/* The type to store output i in. */
static KilnDType output_type(const Autocast *p, const KilnNode *node, int i)
{
    KilnTensor *output = node->outputs[i];

    if (p->storage || output->dtype != KILN_F32 || !op_gives(node, i) ||
        kiln_rewrite_visible(p->step, output) || node->op->autocast == KILN_AUTOCAST_F32 ||
        p->summed[output->id])
        return output->dtype;
    if (node->op->autocast == KILN_AUTOCAST_BF16 || p->rounded[output->id])
        return KILN_BF16;
    return p->exact[output->id] ? KILN_F32 : follows(p, node);
}

/* ---- What the kernel takes ------------------------------------------------------ */

/* What is known of a node before its inputs are converted. */
typedef struct Needs {
    KilnDType outputs[KILN_MAX_OUTPUTS];
    bool f32_only; /* the kernel reads and writes only f32 */
} Needs;

/* The input's type as the operation sees it; the kernel may take another. */
static KilnDType op_type(const Autocast *p, const KilnNode *node, int i)
{
    const KilnTensor *input = now(p, node->inputs[i]);

    if (i >= node->op->n_inputs)
        return input->dtype;
    if (!op_takes(node, i) || (p->storage && node->op->updates == 0))
        return KILN_F32;
    return node->op->autocast == KILN_AUTOCAST_BF16 ? KILN_BF16 : input->dtype;
}

/* Kernels take all bf16 arguments as bf16 or none, except for products, which can return f32, and
 * kernels with mixed_floats. */
static bool must_use_f32(const Autocast *p, const KilnNode *node, const Needs *needs)
{
    const bool product = node->op->autocast == KILN_AUTOCAST_BF16;
    const KilnKernel *kernel = kernel_of(p, node);
    bool any[2] = { false, false }; /* f32, bf16 */

    for (int i = 0; i < node->n_inputs && i < node->op->n_inputs; i++)
        if (is_float(node->inputs[i]) && kernel_takes(p, node, i))
            any[op_type(p, node, i) == KILN_BF16] = true;
        else if (product && is_float(node->inputs[i]) && op_takes(node, i) &&
                 op_type(p, node, i) == KILN_BF16)
            return true;
    for (int i = 0; i < node->n_outputs && i < node->op->n_outputs; i++) {
        const bool bf16 = needs->outputs[i] == KILN_BF16;

        if (is_float(node->outputs[i]) && kernel_gives(p, node, i) && (bf16 || !product))
            any[bf16] = true;
    }
    return kernel == NULL || (any[0] && any[1] && !kernel->mixed_floats);
}

/* Whether the kernel itself rounds this variable while packing it. */
static bool rounds_itself(const Autocast *p, const KilnNode *node, int i)
{
    return i < node->op->n_inputs && (kernel_of(p, node)->rounding_inputs >> i & 1) != 0 &&
           node->inputs[i]->variable && node->inputs[i]->dtype == KILN_F32;
}

static KilnTensor *make_input(Autocast *p, const KilnNode *node, int i, const Needs *needs)
{
    KilnTensor *input = node->inputs[i];

    if (!is_float(input))
        return input;
    KilnDType type = op_type(p, node, i);
    bool f32_only = needs->f32_only || !kernel_takes(p, node, i);
    if (type == KILN_BF16 && !f32_only && rounds_itself(p, node, i))
        return input;
    KilnTensor *made = type == KILN_BF16 ? to_bf16(p, input, node->layer) : now(p, input);
    if (made != NULL && made->dtype == KILN_BF16 && (f32_only || type == KILN_F32))
        made = back_to_f32(p, input, made, reads_image(node, i), node->layer);
    return made;
}

/* Makes the kernel's outputs and the casts from them. `made` is already in the list. */
static KilnStatus make_outputs(Autocast *p, KilnNode *made, const Needs *needs)
{
    for (int i = 0; i < made->n_outputs; i++) {
        KilnTensor *output = made->outputs[i], *kept = output;
        bool bf16 = needs->outputs[i] == KILN_BF16;

        if (bf16 && output->dtype == KILN_F32) {
            kept = twin(p, output, KILN_BF16);
            p->stored[output->id] = kept;
        }
        if (kept == NULL)
            return p->err->status;
        made->outputs[i] = kept;
        if (!bf16 || !(needs->f32_only || !kernel_gives(p, made, i)))
            continue;
        made->outputs[i] = output->dtype == KILN_F32 ? output : twin(p, output, KILN_F32);
        if (made->outputs[i] == NULL ||
            push_cast(p, made->outputs[i], kept, false, made->layer) < 0)
            return p->err->status;
    }
    return KILN_OK;
}

/* Stores a variable that the kernel updates as f32 back in its own type. */
static KilnStatus store_updates(Autocast *p, const KilnNode *node, KilnTensor *const *inputs)
{
    for (int i = 0; i < node->n_inputs; i++) {
        KilnTensor *pair[] = { node->inputs[i], inputs[i] };
        KilnNode *store;

        if ((node->op->updates >> i & 1) == 0 || pair[0] == NULL || pair[0] == pair[1])
            continue;
        store = kiln_rewrite_node(p->step, &kiln_op_store, pair, 2, NULL, 0, NULL, node->layer);
        if (store == NULL)
            return kiln_error_nomem(p->err, sizeof(*store));
        if (push(p, store) < 0)
            return p->err->status;
    }
    return KILN_OK;
}

static KilnStatus convert(Autocast *p, KilnNode *node)
{
    KilnTensor *inputs[KILN_MAX_INPUTS] = { NULL };
    const KilnNode was = *node;
    Needs needs = { .f32_only = false };

    if (node->op == &kiln_op_cast || node->op == &kiln_op_store) {
        if (node->inputs[node->n_inputs - 1] != NULL)
            node->inputs[node->n_inputs - 1] = now(p, node->inputs[node->n_inputs - 1]);
        drop_casts(p, node);
        return push(p, node);
    }
    for (int i = 0; i < node->n_outputs; i++)
        needs.outputs[i] = output_type(p, node, i);
    needs.f32_only = must_use_f32(p, node, &needs);
    for (int i = 0; i < node->n_inputs; i++) {
        inputs[i] = node->inputs[i] != NULL ? make_input(p, node, i, &needs) : NULL;
        if (node->inputs[i] != NULL && inputs[i] == NULL)
            return p->err->status;
    }
    for (int i = 0; i < node->n_inputs; i++)
        node->inputs[i] = inputs[i];
    if (push(p, node) < 0 || make_outputs(p, node, &needs) < 0 ||
        store_updates(p, &was, inputs) < 0)
        return p->err->status;
    drop_casts(p, &was);
    return KILN_OK;
}

KilnStatus kiln_pass_precision(KilnRewrite *rewrite, KilnError *err)
{
    const size_t n = rewrite->n_tensors;
    const KilnGraph *graph = rewrite->graph;
    Autocast p = { .step = rewrite, .n_tensors = n, .err = err };

    p.storage = graph->precision == KILN_PRECISION_32 ||
                (graph->passes_off >> KILN_PASS_precision & 1) != 0;
    if (p.storage && !rewrite->has_bf16_variables)
        return KILN_OK;
    p.stored = kiln_arena_alloc(rewrite->arena, (n + 1) * sizeof(*p.stored));
    p.as_bf16 = kiln_arena_alloc(rewrite->arena, (n + 1) * sizeof(*p.as_bf16));
    p.as_f32 = kiln_arena_alloc(rewrite->arena, (n + 1) * sizeof(*p.as_f32));
    p.as_f32_at = kiln_arena_alloc(rewrite->arena, (n + 1) * sizeof(*p.as_f32_at));
    p.rounded = kiln_arena_alloc(rewrite->arena, n + 1);
    p.exact = kiln_arena_alloc(rewrite->arena, n + 1);
    p.summed = kiln_arena_alloc(rewrite->arena, n + 1);
    if (p.stored == NULL || p.as_bf16 == NULL || p.as_f32 == NULL || p.as_f32_at == NULL ||
        p.rounded == NULL || p.exact == NULL || p.summed == NULL)
        return kiln_error_nomem(err, n * sizeof(*p.stored));
    find_rounded(&p);
    for (p.node = 0; p.node < rewrite->n_nodes; p.node++)
        if (convert(&p, rewrite->nodes[p.node]) < 0)
            return err->status;
    rewrite->nodes = p.nodes;
    rewrite->n_nodes = p.n_nodes;
    return KILN_OK;
}
