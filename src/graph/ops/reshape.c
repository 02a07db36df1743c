/* Operations that keep all elements: reshape, permute, and those composed of them. slice.c cuts and
 * joins. */
#include <inttypes.h>
#include <string.h>

#include "graph/op_check.h"
#include "graph/graph.h"

/* ---- reshape ------------------------------------------------------------------- */

static KilnStatus infer_reshape(KilnNode *node, KilnError *err)
{
    const KilnShapeAttrs *attrs = node->attrs;
    const KilnTensor *x = node->inputs[0];
    char from[KILN_SHAPE_TEXT], to[KILN_SHAPE_TEXT];

    if (kiln_shape_count(&x->shape) != kiln_shape_count(&attrs->shape))
        return kiln_error_set(err, KILN_E_SHAPE, "%s must have as many elements as %s",
                              kiln_shape_text(&x->shape, from, sizeof(from)),
                              kiln_shape_text(&attrs->shape, to, sizeof(to)));
    kiln_infer_output(node, 0, x->dtype, &attrs->shape);
    return KILN_OK;
}

static void gradient_reshape(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    dx[0] = kiln_reshape(dy[0], node->inputs[0]->shape);
}

const KilnOp kiln_op_reshape = {
    .name = "reshape",
    .n_inputs = 1,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnShapeAttrs),
    .infer = infer_reshape,
    .gradient = gradient_reshape,
    .autocast = KILN_AUTOCAST_FOLLOW,
    .bf16_inputs = 1u << 0,
    .bf16_outputs = 1u << 0,
};

/* Replaces the one -1 by the size that keeps the number of elements. */
static bool fill_in_size(KilnShape *shape, int64_t count)
{
    int64_t known = 1;
    int open = -1;

    for (int i = 0; i < shape->rank; i++) {
        if (shape->dim[i] == -1 && open < 0)
            open = i;
        else if (shape->dim[i] < 1 || __builtin_mul_overflow(known, shape->dim[i], &known))
            return false;
    }
    if (open < 0)
        return known == count;
    if (count % known != 0)
        return false;
    shape->dim[open] = count / known;
    return true;
}

KilnTensor *kiln_reshape(KilnTensor *x, KilnShape shape)
{
    char from[KILN_SHAPE_TEXT], to[KILN_SHAPE_TEXT];
    KilnShapeAttrs attrs;

    if (x->poisoned)
        return x->graph->poison;
    if (shape.rank < 0 || shape.rank > KILN_MAX_RANK)
        return kiln_graph_poison(x->graph, "reshape: %d axes; 0 to %d are possible", shape.rank,
                                 KILN_MAX_RANK);
    memset(&attrs, 0, sizeof(attrs));
    kiln_shape_store(&attrs.shape, &shape);
    if (!fill_in_size(&attrs.shape, kiln_shape_count(&x->shape)))
        return kiln_graph_poison(
            x->graph, "reshape: %s (%" PRId64 " elements) does not fit into %s",
            kiln_shape_text(&x->shape, from, sizeof(from)), kiln_shape_count(&x->shape),
            kiln_shape_text(&shape, to, sizeof(to)));
    return kiln_graph_record(x->graph, &kiln_op_reshape, &x, 1, &attrs);
}

/* ---- permute ------------------------------------------------------------------- */

static KilnStatus infer_permute(KilnNode *node, KilnError *err)
{
    const KilnPermuteAttrs *attrs = node->attrs;
    const KilnTensor *x = node->inputs[0];
    KilnShape shape = { .rank = x->shape.rank };
    unsigned seen = 0;

    for (int i = 0; i < x->shape.rank; i++) {
        int axis = attrs->order[i];

        if (axis < 0 || axis >= x->shape.rank || (seen >> axis & 1) != 0)
            return kiln_error_set(
                err, KILN_E_SHAPE,
                "the order must hold each axis from 0 to %d once, got %d at position %d",
                x->shape.rank - 1, axis, i);
        seen |= 1u << axis;
        shape.dim[i] = x->shape.dim[axis];
    }
    kiln_infer_output(node, 0, x->dtype, &shape);
    return KILN_OK;
}

static void gradient_permute(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    const KilnPermuteAttrs *attrs = node->attrs;
    int back[KILN_MAX_RANK] = { 0 };

    for (int i = 0; i < node->inputs[0]->shape.rank; i++)
        back[attrs->order[i]] = i;
    dx[0] = kiln_permute(dy[0], back);
}

const KilnOp kiln_op_permute = {
    .name = "permute",
    .n_inputs = 1,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnPermuteAttrs),
    .infer = infer_permute,
    .gradient = gradient_permute,
    .autocast = KILN_AUTOCAST_FOLLOW,
    .bf16_inputs = 1u << 0,
    .bf16_outputs = 1u << 0,
};

/* Whether the axes with more than one element stay in order, so that the bytes do not move. */
static bool keeps_bytes(const KilnShape *shape, const int *order)
{
    unsigned seen = 0;
    int last = -1;

    for (int i = 0; i < shape->rank; i++) {
        if (order[i] < 0 || order[i] >= shape->rank || (seen >> order[i] & 1) != 0)
            return false;
        seen |= 1u << order[i];
        if (shape->dim[order[i]] == 1)
            continue;
        if (order[i] < last)
            return false;
        last = order[i];
    }
    return true;
}

KilnTensor *kiln_permute(KilnTensor *x, const int *order)
{
    KilnPermuteAttrs attrs = { .order = { 0 } };
    KilnShape shape = x->shape;

    for (int i = 0; i < x->shape.rank; i++)
        attrs.order[i] = order[i];
    if (!keeps_bytes(&x->shape, order))
        return kiln_graph_record(x->graph, &kiln_op_permute, &x, 1, &attrs);
    for (int i = 0; i < shape.rank; i++)
        shape.dim[i] = x->shape.dim[order[i]];
    return kiln_reshape(x, shape);
}

KilnTensor *kiln_transpose(KilnTensor *x, int axis_a, int axis_b)
{
    int order[KILN_MAX_RANK];
    const int rank = x->shape.rank;
    int a = axis_a < 0 ? axis_a + rank : axis_a, b = axis_b < 0 ? axis_b + rank : axis_b;

    if (x->poisoned)
        return x->graph->poison;
    if (a < 0 || a >= rank || b < 0 || b >= rank)
        return kiln_graph_poison(x->graph, "transpose: axes %d and %d; from %d to %d are possible",
                                 axis_a, axis_b, -rank, rank - 1);
    for (int i = 0; i < rank; i++)
        order[i] = i == a ? b : i == b ? a : i;
    return kiln_permute(x, order);
}

/* ---- flatten ------------------------------------------------------------------- */

KilnTensor *kiln_flatten(KilnTensor *x)
{
    static const int to_nchw[] = { 0, 3, 1, 2 };
    const KilnShape *shape = &x->shape;

    if (x->poisoned)
        return x->graph->poison;
    if (shape->rank < 1)
        return kiln_graph_poison(x->graph, "flatten: needs [N, ...], got a scalar");
    int64_t batch = shape->dim[0];
    /* With one channel or one pixel both orders are identical. */
    if (shape->rank == 4 && shape->dim[3] > 1 && shape->dim[1] * shape->dim[2] > 1)
        x = kiln_permute(x, to_nchw);
    return kiln_reshape(x, KILN_SHAPE(batch, -1));
}

/* ---- squeeze, unsqueeze --------------------------------------------------------- */

KilnTensor *kiln_squeeze(KilnTensor *x, int axis)
{
    KilnShape shape = { .rank = x->shape.rank - 1 };
    const int at = axis < 0 ? axis + x->shape.rank : axis;
    char text[KILN_SHAPE_TEXT];

    if (x->poisoned)
        return x->graph->poison;
    if (at < 0 || at >= x->shape.rank || x->shape.dim[at] != 1)
        return kiln_graph_poison(x->graph, "squeeze: axis %d of %s does not have size 1", axis,
                                 kiln_shape_text(&x->shape, text, sizeof(text)));
    for (int i = 0; i < shape.rank; i++)
        shape.dim[i] = x->shape.dim[i < at ? i : i + 1];
    return kiln_reshape(x, shape);
}

KilnTensor *kiln_unsqueeze(KilnTensor *x, int axis)
{
    KilnShape shape = { .rank = x->shape.rank + 1 };
    const int at = axis < 0 ? axis + shape.rank : axis;
    char text[KILN_SHAPE_TEXT];

    if (x->poisoned)
        return x->graph->poison;
    if (at < 0 || at >= shape.rank || shape.rank > KILN_MAX_RANK)
        return kiln_graph_poison(x->graph, "unsqueeze: a new axis %d does not fit into %s", axis,
                                 kiln_shape_text(&x->shape, text, sizeof(text)));
    for (int i = 0; i < shape.rank; i++)
        shape.dim[i] = i == at ? 1 : x->shape.dim[i < at ? i : i - 1];
    return kiln_reshape(x, shape);
}
