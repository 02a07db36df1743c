/* Fuses batch normalization with the residual sum and the relu that follow, and their gradients, so
 * that each activation is read and written as few times as possible.
 *
 *   forward    y0 = batch_norm(x); s = y0 + more; y = relu(s)
 *              becomes y = batch_norm(x, more), with or without `more`
 *   backward   d = dy + more_dy; g = relu_grad(d, y); dx = batch_norm_grad(g, x)
 *              becomes dx, g = batch_norm_grad(dy, x, y, more_dy)
 *
 * If nothing else reads g, it is not stored. Without `more`, y is recomputed from x instead of
 * read. */
#include <string.h>

#include "graph/op.h"
#include "graph/passes/passes.h"

/* The producer of a tensor, if it is this operation and the tensor is its output 0; else NULL. */
static KilnNode *made_by(const KilnRewrite *rewrite, const KilnTensor *tensor, const KilnOp *op)
{
    KilnNode *node = tensor != NULL ? rewrite->made[tensor->id] : NULL;

    return node != NULL && node->op == op && node->outputs[0] == tensor && node->epilogue == NULL
               ? node
               : NULL;
}

/* Whether `reader` is the only node that ever reads the tensor. */
static bool read_once(const KilnRewrite *rewrite, const KilnTensor *tensor)
{
    return rewrite->reads[tensor->id] == 1 && !kiln_rewrite_visible(rewrite, tensor);
}

static void drop(KilnRewrite *rewrite, const KilnNode *node)
{
    rewrite->nodes[node->index] = NULL;
    rewrite->made[node->outputs[0]->id] = NULL;
}

/* Whether every input of `node` exists before node number `at` and is unchanged until then, so that
 * `node` can run there. */
static bool can_move(const KilnRewrite *rewrite, const KilnNode *node, int at)
{
    for (int i = 0; i < node->n_inputs; i++) {
        const KilnTensor *input = node->inputs[i];
        const KilnNode *maker = input != NULL ? rewrite->made[input->id] : NULL;

        if (maker != NULL && maker->index >= at)
            return false;
        if (input != NULL && kiln_rewrite_written(rewrite, input, (size_t)at, (size_t)node->index))
            return false;
    }
    return true;
}

/* ---- Forward --------------------------------------------------------------------- */

/* Index of `more` among the inputs; -1: not a normalization. */
static int more_input(const KilnOp *op)
{
    return op == &kiln_op_batch_norm ? 3 : op == &kiln_op_batch_norm_eval ? 5 : -1;
}

/* The normalization that produces `tensor`, if nothing is fused to it yet and nothing else reads
 * it. */
static KilnNode *bare_norm(const KilnRewrite *rewrite, const KilnTensor *tensor)
{
    KilnNode *node = made_by(rewrite, tensor, &kiln_op_batch_norm);

    if (node == NULL)
        node = made_by(rewrite, tensor, &kiln_op_batch_norm_eval);
    if (node == NULL || !read_once(rewrite, tensor))
        return NULL;
    const KilnBatchNormAttrs *attrs = node->attrs;
    const int more = more_input(node->op);
    return attrs->relu == 0 && (node->n_inputs <= more || node->inputs[more] == NULL) ? node : NULL;
}

/* The normalization among the terms of a sum that can absorb the other term: the one produced last.
 * Sets which term it is. */
static KilnNode *norm_in_sum(const KilnRewrite *rewrite, const KilnNode *sum, int *ret_at)
{
    for (int i = 0; i < 2; i++) {
        KilnNode *norm = bare_norm(rewrite, sum->inputs[i]);
        const KilnNode *other = rewrite->made[sum->inputs[1 - i]->id];

        if (norm == NULL || (other != NULL && other->index >= norm->index) ||
            !kiln_shape_equal(&sum->inputs[1 - i]->shape, &norm->outputs[0]->shape) ||
            kiln_rewrite_written(rewrite, sum->inputs[1 - i], (size_t)norm->index,
                                 (size_t)sum->index))
            continue;
        *ret_at = i;
        return norm;
    }
    return NULL;
}

static void give_more(KilnNode *norm, KilnTensor *more)
{
    const int at = more_input(norm->op);

    for (int i = norm->n_inputs; i < at; i++)
        norm->inputs[i] = NULL;
    norm->inputs[at] = more;
    norm->n_inputs = at + 1;
}

static void join_relu(KilnRewrite *rewrite, KilnNode *relu)
{
    KilnTensor *x = relu->inputs[0];
    KilnNode *norm = bare_norm(rewrite, x), *sum = NULL;
    int at = 0;

    if (norm == NULL) {
        sum = made_by(rewrite, x, &kiln_op_add);
        if (sum == NULL || sum->n_inputs != 2 || !read_once(rewrite, x))
            return;
        norm = norm_in_sum(rewrite, sum, &at);
    }
    if (norm == NULL)
        return;
    if (sum != NULL) {
        give_more(norm, sum->inputs[1 - at]);
        drop(rewrite, sum);
    }
    ((KilnBatchNormAttrs *)norm->attrs)->relu = 1;
    rewrite->made[norm->outputs[0]->id] = NULL;
    drop(rewrite, relu);
    norm->outputs[0] = relu->outputs[0];
    rewrite->made[norm->outputs[0]->id] = norm;
}

/* ---- Backward -------------------------------------------------------------------- */

enum { DY, X, WEIGHT, MEAN, VAR, BIAS, Y, MORE_DY, GRAD_INPUTS };

/* The normalization of `grad`, if the relu whose gradient `grad` takes was fused to it. */
static KilnNode *joined_norm(const KilnRewrite *rewrite, const KilnNode *grad, const KilnNode *relu)
{
    KilnNode *norm = made_by(rewrite, relu->inputs[1], &kiln_op_batch_norm);

    if (norm == NULL || norm->outputs[1] != grad->inputs[MEAN] ||
        ((const KilnBatchNormAttrs *)norm->attrs)->relu == 0)
        return NULL;
    return norm;
}

/* Replaces a sum that is only made for the relu's gradient by its terms. */
static void take_sum(KilnRewrite *rewrite, KilnNode *grad)
{
    const KilnNode *sum = made_by(rewrite, grad->inputs[DY], &kiln_op_add);

    if (sum == NULL || sum->n_inputs != 2 || !read_once(rewrite, grad->inputs[DY]) ||
        !kiln_shape_equal(&sum->inputs[0]->shape, &sum->inputs[1]->shape))
        return;
    grad->inputs[DY] = sum->inputs[0];
    grad->inputs[MORE_DY] = sum->inputs[1];
    drop(rewrite, sum);
}

/* Replaces the relu's gradient by that of the normalization. */
static void join_grad(KilnRewrite *rewrite, KilnNode *grad)
{
    KilnTensor *masked = grad->inputs[DY];
    KilnNode *relu = made_by(rewrite, masked, &kiln_op_relu_grad);
    const KilnNode *norm = relu != NULL ? joined_norm(rewrite, grad, relu) : NULL;

    if (norm == NULL || grad->n_outputs != 3)
        return;
    grad->inputs[DY] = relu->inputs[0];
    if (!can_move(rewrite, grad, relu->index)) {
        grad->inputs[DY] = masked;
        return;
    }
    const bool has_more = norm->n_inputs > more_input(norm->op);
    for (int i = grad->n_inputs; i < GRAD_INPUTS; i++)
        grad->inputs[i] = NULL;
    grad->n_inputs = GRAD_INPUTS;
    grad->inputs[has_more ? Y : BIAS] = has_more ? norm->outputs[0] : norm->inputs[2];
    ((KilnBatchNormAttrs *)grad->attrs)->relu = 1;
    if (!read_once(rewrite, masked))
        grad->outputs[grad->n_outputs++] = masked;
    rewrite->nodes[grad->index] = NULL;
    rewrite->nodes[relu->index] = grad;
    rewrite->made[masked->id] = grad;
    grad->index = relu->index;
    take_sum(rewrite, grad);
}

KilnStatus kiln_pass_fuse_norm(KilnRewrite *rewrite, KilnError *err)
{
    const size_t n = rewrite->n_nodes;

    (void)err;
    for (size_t i = 0; i < n; i++)
        if (rewrite->nodes[i] != NULL && rewrite->nodes[i]->op == &kiln_op_relu)
            join_relu(rewrite, rewrite->nodes[i]);
    for (size_t i = 0; i < n; i++)
        if (rewrite->nodes[i] != NULL && rewrite->nodes[i]->op == &kiln_op_batch_norm_grad)
            join_grad(rewrite, rewrite->nodes[i]);
    return KILN_OK;
}
