/* Reductions over axes: sums, means, extremes, logsumexp, argmax; and operations composed of them.
 */
#include "graph/ops/reduce.h"

#include "graph/op_check.h"
#include "graph/graph.h"

/* ---- Shapes ---------------------------------------------------------------------- */

/* The result's shape, with or without the reduced axes. */
static KilnShape reduced_shape(const KilnShape *x, uint32_t axes, bool keep)
{
    KilnShape shape = { .rank = 0 };

    for (int axis = 0; axis < x->rank; axis++) {
        if ((axes >> axis & 1) == 0)
            shape.dim[shape.rank++] = x->dim[axis];
        else if (keep)
            shape.dim[shape.rank++] = 1;
    }
    return shape;
}

static int64_t reduced_count(const KilnShape *x, uint32_t axes)
{
    int64_t count = 1;

    for (int axis = 0; axis < x->rank; axis++)
        if ((axes >> axis & 1) != 0)
            count *= x->dim[axis];
    return count;
}

static KilnStatus infer_reduce(KilnNode *node, KilnError *err)
{
    const KilnReduceAttrs *attrs = node->attrs;
    KilnShape shape = reduced_shape(&node->inputs[0]->shape, attrs->axes, attrs->keep != 0);

    if (kiln_check_float(node, 0, "the tensor", err) < 0)
        return err->status;
    kiln_infer_output(node, 0, kiln_node_float(node), &shape);
    return KILN_OK;
}

static KilnStatus infer_argmax(KilnNode *node, KilnError *err)
{
    if (infer_reduce(node, err) < 0)
        return err->status;
    node->outputs[0]->dtype = KILN_I32;
    return KILN_OK;
}

/* The axes as bits; none given means all. False, with the graph poisoned, if one does not exist or
 * is given twice. */
static bool axes_of(const char *name, KilnTensor *x, const int *axes, int n, uint32_t *ret)
{
    const int rank = x->shape.rank;
    uint32_t bits = n == 0 ? (1u << rank) - 1 : 0;
    char text[KILN_SHAPE_TEXT];

    for (int i = 0; i < n; i++) {
        const int axis = axes[i] < 0 ? axes[i] + rank : axes[i];

        if (axis < 0 || axis >= rank) {
            kiln_graph_poison(x->graph, "%s: there is no axis %d in %s", name, axes[i],
                              kiln_shape_text(&x->shape, text, sizeof(text)));
            return false;
        }
        if ((bits >> axis & 1) != 0) {
            kiln_graph_poison(x->graph, "%s: axis %d is given twice", name, axes[i]);
            return false;
        }
        bits |= 1u << axis;
    }
    *ret = bits;
    return true;
}

static KilnTensor *reduce(const KilnOp *op, KilnTensor *x, const int *axes, int n, bool keep)
{
    KilnReduceAttrs attrs = { .keep = keep ? 1 : 0 };

    if (x->poisoned || !axes_of(op->name, x, axes, n, &attrs.axes))
        return x->graph->poison;
    return kiln_graph_record(x->graph, op, &x, 1, &attrs);
}

/* ---- Gradients --------------------------------------------------------------------- */

/* Gives a value of the result's shape the axes to broadcast to the input's. */
static KilnTensor *with_axes(const KilnNode *node, KilnTensor *value)
{
    const KilnReduceAttrs *attrs = node->attrs;

    return kiln_reshape(value, reduced_shape(&node->inputs[0]->shape, attrs->axes, true));
}

static void gradient_sum(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    dx[0] = kiln_broadcast_to(with_axes(node, dy[0]), node->inputs[0]->shape);
}

static void gradient_mean(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    const KilnReduceAttrs *attrs = node->attrs;
    const KilnShape *shape = &node->inputs[0]->shape;
    KilnTensor *share = kiln_scale(dy[0], 1.0 / (double)reduced_count(shape, attrs->axes));

    dx[0] = kiln_broadcast_to(with_axes(node, share), *shape);
}

/* Equal extremes share the gradient evenly. */
static void gradient_extreme(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    const KilnReduceAttrs *attrs = node->attrs;
    KilnTensor *x = node->inputs[0];
    KilnTensor *is = kiln_eq(x, with_axes(node, node->outputs[0]));
    KilnReduceAttrs kept = { .axes = attrs->axes, .keep = 1 };
    KilnTensor *count = kiln_graph_record(x->graph, &kiln_op_sum, &is, 1, &kept);

    dx[0] = kiln_mul(is, kiln_div(with_axes(node, dy[0]), count));
}

static void gradient_logsumexp(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    KilnTensor *share = kiln_exp(kiln_sub(node->inputs[0], with_axes(node, node->outputs[0])));

    dx[0] = kiln_mul(share, with_axes(node, dy[0]));
}

/* ---- Operations ---------------------------------------------------------------------- */

#define REDUCTION(NAME, INFER, GRADIENT)                                                           \
    const KilnOp kiln_op_##NAME = {                                                                \
        .name = #NAME,                                                                             \
        .n_inputs = 1,                                                                             \
        .n_outputs = 1,                                                                            \
        .attrs_size = sizeof(KilnReduceAttrs),                                                     \
        .infer = (INFER),                                                                          \
        .gradient = (GRADIENT),                                                                    \
        .autocast = KILN_AUTOCAST_F32,                                                             \
        .bf16_inputs = 1,                                                                          \
    };
REDUCTION(sum, infer_reduce, gradient_sum)
REDUCTION(mean, infer_reduce, gradient_mean)
REDUCTION(max, infer_reduce, gradient_extreme)
REDUCTION(min, infer_reduce, gradient_extreme)
REDUCTION(logsumexp, infer_reduce, gradient_logsumexp)
REDUCTION(argmax, infer_argmax, NULL)

KilnTensor *kiln_sum(KilnTensor *x)
{
    return reduce(&kiln_op_sum, x, NULL, 0, false);
}

KilnTensor *kiln_mean(KilnTensor *x)
{
    return reduce(&kiln_op_mean, x, NULL, 0, false);
}

KilnTensor *kiln_sum_axes(KilnTensor *x, const int *axes, int n, bool keep)
{
    return reduce(&kiln_op_sum, x, axes, n, keep);
}

KilnTensor *kiln_mean_axes(KilnTensor *x, const int *axes, int n, bool keep)
{
    return reduce(&kiln_op_mean, x, axes, n, keep);
}

KilnTensor *kiln_max_axes(KilnTensor *x, const int *axes, int n, bool keep)
{
    return reduce(&kiln_op_max, x, axes, n, keep);
}

KilnTensor *kiln_min_axes(KilnTensor *x, const int *axes, int n, bool keep)
{
    return reduce(&kiln_op_min, x, axes, n, keep);
}

KilnTensor *kiln_logsumexp(KilnTensor *x, const int *axes, int n, bool keep)
{
    return reduce(&kiln_op_logsumexp, x, axes, n, keep);
}

KilnTensor *kiln_sum_rows(KilnTensor *x)
{
    const int axes[] = { 0, 1, 2, 3, 4, 5 };

    if (x->poisoned)
        return x->graph->poison;
    if (x->shape.rank < 1)
        return kiln_graph_poison(x->graph,
                                 "sum_rows: the tensor must have at least one axis, got a scalar");
    return x->shape.rank > 1 ? kiln_sum_axes(x, axes, x->shape.rank - 1, false) : x;
}

KilnTensor *kiln_argmax_axis(KilnTensor *x, int axis, bool keep)
{
    return reduce(&kiln_op_argmax, x, &axis, 1, keep);
}

KilnTensor *kiln_argmax(KilnTensor *x)
{
    return kiln_argmax_axis(x, -1, false);
}

/* ---- Product --------------------------------------------------------------------------- */

static KilnStatus infer_prod(KilnNode *node, KilnError *err)
{
    KilnShape shape = node->inputs[0]->shape;

    if (kiln_check_rows(node, 0, "the tensor", err) < 0)
        return err->status;
    shape.rank--;
    kiln_infer_output(node, 0, kiln_node_float(node), &shape);
    return KILN_OK;
}

static void gradient_prod(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    KilnTensor *inputs[] = { dy[0], node->inputs[0] };

    dx[0] = kiln_graph_record(dy[0]->graph, &kiln_op_prod_grad, inputs, 2, NULL);
}

static KilnStatus infer_prod_grad(KilnNode *node, KilnError *err)
{
    if (kiln_check_float(node, 0, "dy", err) < 0 || kiln_check_rows(node, 1, "x", err) < 0)
        return err->status;
    kiln_infer_like(node, 1);
    return KILN_OK;
}

const KilnOp kiln_op_prod = {
    .name = "prod",
    .n_inputs = 1,
    .n_outputs = 1,
    .infer = infer_prod,
    .gradient = gradient_prod,
};

const KilnOp kiln_op_prod_grad = {
    .name = "prod_grad",
    .n_inputs = 2,
    .n_outputs = 1,
    .infer = infer_prod_grad,
};

/* The reduced axes become the last one. */
KilnTensor *kiln_prod_axes(KilnTensor *x, const int *axes, int n, bool keep)
{
    int order[KILN_MAX_RANK], kept = 0, reduced = 0;
    uint32_t bits = 0;

    if (x->poisoned || !axes_of("prod", x, axes, n, &bits))
        return x->graph->poison;
    for (int axis = 0; axis < x->shape.rank; axis++)
        if ((bits >> axis & 1) == 0)
            order[kept++] = axis;
    for (int axis = 0; axis < x->shape.rank; axis++)
        if ((bits >> axis & 1) != 0)
            order[kept + reduced++] = axis;

    const int64_t count = reduced_count(&x->shape, bits);
    KilnTensor *rows = kiln_reshape(kiln_permute(x, order), KILN_SHAPE(-1, count));
    KilnTensor *y = kiln_graph_record(x->graph, &kiln_op_prod, &rows, 1, NULL);

    return kiln_reshape(y, reduced_shape(&x->shape, bits, keep));
}

/* ---- Variance -------------------------------------------------------------------------- */

KilnTensor *kiln_var(KilnTensor *x, const int *axes, int n, double correction, bool keep)
{
    KilnTensor *mean = kiln_mean_axes(x, axes, n, true);
    uint32_t bits = 0;

    if (mean->poisoned || !axes_of("var", x, axes, n, &bits))
        return x->graph->poison;
    const double count = (double)reduced_count(&x->shape, bits);
    KilnTensor *squares = kiln_sum_axes(kiln_square(kiln_sub(x, mean)), axes, n, keep);

    if (count <= correction)
        return kiln_graph_poison(x->graph, "var: %g elements are too few for correction %g", count,
                                 correction);
    return kiln_scale(squares, 1.0 / (count - correction));
}

/* A variance of 0 has derivative 0, as in PyTorch; the square root alone would give infinity. */
KilnTensor *kiln_std(KilnTensor *x, const int *axes, int n, double correction, bool keep)
{
    KilnTensor *var = kiln_var(x, axes, n, correction, keep);

    if (var->poisoned)
        return var;
    KilnTensor *zero = kiln_graph_full(x->graph, KILN_SCALAR, 0.0);
    KilnTensor *one = kiln_graph_full(x->graph, KILN_SCALAR, 1.0);
    return kiln_where(var, kiln_sqrt(kiln_where(var, var, one)), zero);
}
