/* Folds what follows a convolution into it, in steps without gradients: batch normalization by
 * running statistics becomes part of the weight and the bias, and the convolution's kernel adds the
 * residual and takes the activation (Jacob et al. 2018, section 3.2).
 *
 *   y = relu(norm(conv(x, w, b)) + more)
 *   becomes, with s = weight / sqrt(var + eps),
 *   y = relu(conv(x, w s, bias + (b - mean) s) + more)
 *
 * The new weights depend on parameters alone, so they are computed once (passes/planning.c). In
 * bf16 they would be rounded after scaling instead of before, so nothing is folded there. */
#include "graph/op.h"
#include "graph/op_check.h"
#include "graph/passes/passes.h"

enum {
    NODES = 8, /* most that replace a normalization */
    MORE = 3   /* the convolution's input for the residual */
};

typedef struct Fold {
    KilnRewrite *rewrite;
    KilnNode **nodes; /* the new list */
    size_t n;
    size_t *places; /* in it, of each node of the old list */
    KilnError *err;
} Fold;

/* ---- What can be folded ------------------------------------------------------------- */

/* The convolution that makes a value which nothing but one node reads; NULL: none. */
static KilnNode *conv_before(const KilnRewrite *rewrite, const KilnTensor *tensor)
{
    KilnNode *node = rewrite->made[tensor->id];

    return node != NULL && node->op == &kiln_op_conv2d && node->epilogue == NULL &&
                   ((const KilnConvAttrs *)node->attrs)->activation.code == KILN_MAP_NUMBER &&
                   rewrite->reads[tensor->id] == 1 && !kiln_rewrite_visible(rewrite, tensor)
               ? node
               : NULL;
}

/* Whether the convolution computes the same just before `node`. */
static bool can_move(const KilnRewrite *rewrite, const KilnNode *conv, const KilnNode *node)
{
    for (int i = 0; i < conv->n_inputs; i++)
        if (conv->inputs[i] != NULL &&
            kiln_rewrite_written(rewrite, conv->inputs[i], (size_t)conv->index,
                                 (size_t)node->index))
            return false;
    return true;
}

/* Whether nothing in the step writes the tensor, which is a parameter or a slice of one. */
static bool stays(const KilnRewrite *rewrite, const KilnTensor *tensor)
{
    const KilnNode *made = tensor != NULL ? rewrite->made[tensor->id] : NULL;

    if (made != NULL && made->op == &kiln_op_slice)
        tensor = made->inputs[0];
    return tensor == NULL || (tensor->variable && rewrite->made[tensor->id] == NULL &&
                              !kiln_rewrite_written(rewrite, tensor, SIZE_MAX, rewrite->n_nodes));
}

static bool can_fold(const KilnRewrite *rewrite, const KilnNode *conv, const KilnNode *norm)
{
    for (int i = 1; i <= 4; i++)
        if (norm->inputs[i] == NULL || !stays(rewrite, norm->inputs[i]))
            return false;
    return stays(rewrite, conv->inputs[1]) && stays(rewrite, conv->inputs[2]);
}

/* ---- Nodes ---------------------------------------------------------------------------- */

/* Appends a node of one output; NULL, with err set, when out of memory or if an input is NULL. */
static KilnTensor *add(Fold *fold, const KilnOp *op, KilnTensor *a, KilnTensor *b,
                       const KilnShape *shape, const void *attrs, const char *layer)
{
    KilnTensor *inputs[] = { a, b };
    KilnTensor *output = a != NULL ? kiln_rewrite_tensor(fold->rewrite, a->dtype, shape) : NULL;
    KilnNode *node = output != NULL ? kiln_rewrite_node(fold->rewrite, op, inputs,
                                                        b != NULL ? 2 : 1, &output, 1, attrs, layer)
                                    : NULL;

    if (node == NULL) {
        kiln_error_nomem(fold->err, sizeof(*node));
        return NULL;
    }
    fold->nodes[fold->n++] = node;
    return output;
}

/* weight / sqrt(var + eps), of each channel. */
static KilnTensor *factors(Fold *fold, const KilnNode *norm)
{
    const KilnNumberAttrs eps = { .p = ((const KilnBatchNormAttrs *)norm->attrs)->eps };
    KilnTensor *weight = norm->inputs[1], *var = norm->inputs[4];
    KilnTensor *sum = add(fold, &kiln_op_shift, var, NULL, &var->shape, &eps, norm->layer);
    KilnTensor *rsqrt = add(fold, &kiln_op_rsqrt, sum, NULL, &var->shape, NULL, norm->layer);

    return add(fold, &kiln_op_mul, rsqrt, weight, &var->shape, NULL, norm->layer);
}

static KilnTensor *folded_weight(Fold *fold, const KilnNode *conv, const KilnNode *norm,
                                 KilnTensor *factor)
{
    KilnTensor *weight = conv->inputs[1];
    const KilnShape column = KILN_SHAPE(weight->shape.dim[0], 1, 1, 1);
    KilnShapeAttrs attrs = { 0 };

    kiln_shape_store(&attrs.shape, &column);
    factor = add(fold, &kiln_op_reshape, factor, NULL, &column, &attrs, norm->layer);
    return factor != NULL
               ? add(fold, &kiln_op_mul, weight, factor, &weight->shape, NULL, norm->layer)
               : NULL;
}

static KilnTensor *folded_bias(Fold *fold, const KilnNode *conv, const KilnNode *norm,
                               KilnTensor *factor)
{
    KilnTensor *bias = norm->inputs[2], *mean = norm->inputs[3], *own = conv->inputs[2];
    const KilnShape *shape = &bias->shape;

    if (own != NULL)
        mean = add(fold, &kiln_op_sub, mean, own, shape, NULL, norm->layer);
    mean = add(fold, &kiln_op_mul, mean, factor, shape, NULL, norm->layer);
    return mean != NULL ? add(fold, &kiln_op_sub, bias, mean, shape, NULL, norm->layer) : NULL;
}

/* ---- Folding ------------------------------------------------------------------------------ */

/* Moves the convolution to the place of the node that follows it, with its result. */
static void take_place(Fold *fold, KilnNode *conv, const KilnNode *node)
{
    fold->nodes[fold->places[conv->index]] = NULL;
    fold->rewrite->made[conv->outputs[0]->id] = NULL;
    conv->outputs[0] = node->outputs[0];
    conv->index = node->index;
    fold->rewrite->made[conv->outputs[0]->id] = conv;
    fold->places[conv->index] = fold->n;
    fold->nodes[fold->n++] = conv;
}

static bool is_eval_norm(const KilnNode *node)
{
    return node->op == &kiln_op_batch_norm_eval && node->epilogue == NULL;
}

/* False: it stays. */
static bool fold_norm(Fold *fold, KilnNode *norm)
{
    enum { NORM_MORE = 5 };
    KilnNode *conv = conv_before(fold->rewrite, norm->inputs[0]);

    if (conv == NULL || conv->n_inputs > MORE || !can_fold(fold->rewrite, conv, norm) ||
        !can_move(fold->rewrite, conv, norm))
        return false;
    KilnTensor *factor = factors(fold, norm);
    KilnTensor *weight = factor != NULL ? folded_weight(fold, conv, norm, factor) : NULL;
    KilnTensor *bias = weight != NULL ? folded_bias(fold, conv, norm, factor) : NULL;
    if (bias == NULL)
        return false;
    conv->inputs[1] = weight;
    conv->inputs[2] = bias;
    conv->n_inputs = MORE;
    if (norm->n_inputs > NORM_MORE && norm->inputs[NORM_MORE] != NULL)
        conv->inputs[conv->n_inputs++] = norm->inputs[NORM_MORE];
    if (((const KilnBatchNormAttrs *)norm->attrs)->relu != 0)
        ((KilnConvAttrs *)conv->attrs)->activation.code = KILN_MAP_RELU;
    take_place(fold, conv, norm);
    return true;
}

/* The step of an activation that the kernels of convolutions have. oneDNN's relu and clamp make a
 * number of NaN, and are folded all the same since networks are full of them; its sigmoid does so
 * in some kernels, and is rare after a convolution. */
static bool is_activation(const KilnNode *node, KilnMapStep *ret)
{
    if (node->op->map == NULL || node->n_inputs != 1 || node->op->updates != 0 ||
        !node->op->map(node, ret))
        return false;
    switch ((KilnMapCode)ret->code) {
    case KILN_MAP_RELU:
    case KILN_MAP_LEAKY_RELU:
    case KILN_MAP_ELU:
    case KILN_MAP_CLAMP:
    case KILN_MAP_TANH:
    case KILN_MAP_GELU:
    case KILN_MAP_GELU_TANH:
    case KILN_MAP_SILU:
    case KILN_MAP_HARD_SWISH:
        return true;
    default:
        return false;
    }
}

static bool fold_activation(Fold *fold, KilnNode *node)
{
    KilnMapStep step = { 0 };
    KilnNode *conv = is_activation(node, &step) ? conv_before(fold->rewrite, node->inputs[0])
                                                : NULL;

    if (conv == NULL || !can_move(fold->rewrite, conv, node))
        return false;
    ((KilnConvAttrs *)conv->attrs)->activation = step;
    take_place(fold, conv, node);
    return true;
}

KilnStatus kiln_pass_fold_norm(KilnRewrite *rewrite, KilnError *err)
{
    const KilnGraph *graph = rewrite->graph;
    KilnError local = { 0 };
    Fold fold = { .rewrite = rewrite, .err = &local };

    if (graph->backward || rewrite->has_bf16_variables ||
        (graph->precision != KILN_PRECISION_32 && graph->precision != KILN_PRECISION_64))
        return KILN_OK;
    fold.nodes = kiln_arena_alloc(rewrite->arena,
                                  (NODES + 1) * (rewrite->n_nodes + 1) * sizeof(KilnNode *));
    fold.places = kiln_arena_alloc(rewrite->arena, (rewrite->n_nodes + 1) * sizeof(size_t));
    if (fold.nodes == NULL || fold.places == NULL)
        return kiln_error_nomem(err, rewrite->n_nodes * sizeof(KilnNode *));
    for (size_t i = 0; i < rewrite->n_nodes; i++) {
        KilnNode *node = rewrite->nodes[i];

        if ((is_eval_norm(node) && fold_norm(&fold, node)) || fold_activation(&fold, node))
            continue;
        if (local.status < 0)
            return kiln_error_set(err, local.status, "%s", local.text);
        fold.places[i] = fold.n;
        fold.nodes[fold.n++] = node;
    }
    rewrite->nodes = fold.nodes;
    rewrite->n_nodes = fold.n;
    return KILN_OK;
}
