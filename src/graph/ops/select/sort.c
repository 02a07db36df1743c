/* Sorting along an axis: sort, argsort and topk record one operation. */
#include "graph/ops/select/sort.h"

#include <inttypes.h>

#include "graph/graph.h"
#include "graph/op_check.h"

static KilnStatus infer_sort(KilnNode *node, KilnError *err)
{
    const KilnSortAttrs *attrs = node->attrs;
    const KilnTensor *x = node->inputs[0];
    KilnShape shape = x->shape;
    char text[KILN_SHAPE_TEXT];

    if (attrs->axis < 0 || attrs->axis >= shape.rank)
        return kiln_error_set(err, KILN_E_SHAPE, "%s has no axis %" PRId64,
                              kiln_shape_text(&shape, text, sizeof(text)), attrs->axis);
    if (x->dtype != KILN_I32 && kiln_check_float(node, 0, "the tensor", err) < 0)
        return err->status;
    if (attrs->count < 1 || attrs->count > shape.dim[attrs->axis])
        return kiln_error_set(err, KILN_E_SHAPE,
                              "k must be from 1 to the axis' %" PRId64 ", got %" PRId64,
                              shape.dim[attrs->axis], attrs->count);
    shape.dim[attrs->axis] = attrs->count;
    kiln_infer_output(node, 0, x->dtype, &shape);
    kiln_infer_output(node, 1, KILN_I32, &shape);
    return KILN_OK;
}

static void gradient_sort(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    const KilnSortAttrs *attrs = node->attrs;
    KilnTensor *zero = kiln_graph_full(dy[0]->graph, node->inputs[0]->shape, 0.0);

    dx[0] = kiln_scatter_add(zero, (int)attrs->axis, node->outputs[1], dy[0]);
}

const KilnOp kiln_op_sort = {
    .name = "sort",
    .n_inputs = 1,
    .n_outputs = 2,
    .attrs_size = sizeof(KilnSortAttrs),
    .infer = infer_sort,
    .gradient = gradient_sort,
};

static KilnSorted record_sort(KilnTensor *x, int64_t count, int axis, bool descending)
{
    const KilnSortAttrs attrs = {
        .axis = axis < 0 ? axis + x->shape.rank : axis,
        .count = count,
        .descending = descending,
    };
    KilnTensor *values = kiln_graph_record(x->graph, &kiln_op_sort, &x, 1, &attrs);

    return (KilnSorted) { values, values->poisoned ? values : values->node->outputs[1] };
}

KilnSorted kiln_sort(KilnTensor *x, int axis, bool descending)
{
    return record_sort(x, x->poisoned ? 0 : kiln_tensor_dim(x, axis), axis, descending);
}

KilnTensor *kiln_argsort(KilnTensor *x, int axis, bool descending)
{
    return kiln_sort(x, axis, descending).indices;
}

KilnSorted kiln_topk(KilnTensor *x, int64_t k, int axis, bool largest)
{
    return record_sort(x, k, axis, largest);
}
