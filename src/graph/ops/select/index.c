/* Operations that select or scatter elements by index, or count along an axis: gather, scatter_add,
 * one_hot, arange, cumsum. */
#include <inttypes.h>

#include "graph/op_check.h"
#include "graph/graph.h"

/* Counts negative axes from the end; infer rejects invalid ones. */
static int64_t from_front(int axis, int rank)
{
    return axis < 0 ? axis + rank : axis;
}

static KilnStatus check_axis(const KilnTensor *x, int64_t axis, KilnError *err)
{
    char text[KILN_SHAPE_TEXT];

    if (axis >= 0 && axis < x->shape.rank)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_SHAPE, "%s has no axis %" PRId64,
                          kiln_shape_text(&x->shape, text, sizeof(text)), axis);
}

/* ---- gather, scatter_add ------------------------------------------------------- */

/* index: i32, of x's rank, at most as large as x except along the axis. */
static KilnStatus check_index(const KilnNode *node, int64_t axis, KilnError *err)
{
    const KilnShape *x = &node->inputs[0]->shape, *index = &node->inputs[1]->shape;
    char text_x[KILN_SHAPE_TEXT], text_index[KILN_SHAPE_TEXT];
    bool fits = x->rank == index->rank;

    if (check_axis(node->inputs[0], axis, err) < 0)
        return err->status;
    for (int i = 0; i < x->rank && fits; i++)
        fits = i == axis || index->dim[i] <= x->dim[i];
    if (!fits)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "the index must have as many axes as the tensor and be no larger, "
                              "except on axis %" PRId64 ", got %s for %s",
                              axis, kiln_shape_text(index, text_index, sizeof(text_index)),
                              kiln_shape_text(x, text_x, sizeof(text_x)));
    return kiln_check_dtype(node, 1, "the index", KILN_I32, err);
}

static KilnStatus infer_gather(KilnNode *node, KilnError *err)
{
    const KilnAxisAttrs *attrs = node->attrs;

    if (check_index(node, attrs->axis, err) < 0)
        return err->status;
    kiln_infer_output(node, 0, node->inputs[0]->dtype, &node->inputs[1]->shape);
    return KILN_OK;
}

static void gradient_gather(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    const KilnAxisAttrs *attrs = node->attrs;
    KilnTensor *zero = kiln_graph_full(dy[0]->graph, node->inputs[0]->shape, 0.0);

    dx[0] = kiln_scatter_add(zero, (int)attrs->axis, node->inputs[1], dy[0]);
}

static KilnStatus infer_scatter_add(KilnNode *node, KilnError *err)
{
    const KilnAxisAttrs *attrs = node->attrs;

    if (kiln_check_float(node, 0, "the tensor", err) < 0 ||
        check_index(node, attrs->axis, err) < 0 ||
        kiln_check_shape(node, 2, "what is added", &node->inputs[1]->shape, err) < 0)
        return err->status;
    kiln_infer_like(node, 0);
    return KILN_OK;
}

static void gradient_scatter_add(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    const KilnAxisAttrs *attrs = node->attrs;

    dx[0] = dy[0];
    if (node->inputs[2]->wants_grad)
        dx[2] = kiln_gather(dy[0], (int)attrs->axis, node->inputs[1]);
}

const KilnOp kiln_op_gather = {
    .name = "gather",
    .n_inputs = 2,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnAxisAttrs),
    .infer = infer_gather,
    .gradient = gradient_gather,
    .autocast = KILN_AUTOCAST_FOLLOW,
    .bf16_inputs = 1,
    .bf16_outputs = 1,
};

const KilnOp kiln_op_scatter_add = {
    .name = "scatter_add",
    .n_inputs = 3,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnAxisAttrs),
    .infer = infer_scatter_add,
    .gradient = gradient_scatter_add,
};

KilnTensor *kiln_gather(KilnTensor *x, int axis, KilnTensor *index)
{
    KilnAxisAttrs attrs = { .axis = from_front(axis, x->shape.rank) };

    return kiln_graph_record(x->graph, &kiln_op_gather, (KilnTensor *[]) { x, index }, 2, &attrs);
}

KilnTensor *kiln_scatter_add(KilnTensor *x, int axis, KilnTensor *index, KilnTensor *src)
{
    KilnAxisAttrs attrs = { .axis = from_front(axis, x->shape.rank) };

    return kiln_graph_record(x->graph, &kiln_op_scatter_add, (KilnTensor *[]) { x, index, src }, 3,
                             &attrs);
}

/* ---- one_hot, arange ----------------------------------------------------------- */

static KilnStatus infer_one_hot(KilnNode *node, KilnError *err)
{
    const KilnAxisAttrs *attrs = node->attrs;
    KilnShape shape = node->inputs[0]->shape;

    if (shape.rank == KILN_MAX_RANK)
        return kiln_error_set(err, KILN_E_SHAPE, "%d axes are the most; one more is needed",
                              KILN_MAX_RANK);
    shape.dim[shape.rank++] = attrs->size;
    kiln_infer_output(node, 0, kiln_node_float(node), &shape);
    return kiln_check_dtype(node, 0, "the index", KILN_I32, err);
}

static KilnStatus infer_arange(KilnNode *node, KilnError *err)
{
    const KilnArangeAttrs *attrs = node->attrs;

    if (attrs->dtype != KILN_I32 && attrs->dtype != kiln_node_float(node))
        return kiln_error_set(err, KILN_E_TYPE, "i32 and %s are possible, not %s",
                              kiln_dtype_name(kiln_node_float(node)),
                              kiln_dtype_name(attrs->dtype));
    kiln_infer_output(node, 0, attrs->dtype, &KILN_SHAPE(attrs->size));
    return KILN_OK;
}

const KilnOp kiln_op_one_hot = {
    .name = "one_hot",
    .n_inputs = 1,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnAxisAttrs),
    .infer = infer_one_hot,
};

const KilnOp kiln_op_arange = {
    .name = "arange",
    .n_outputs = 1,
    .attrs_size = sizeof(KilnArangeAttrs),
    .infer = infer_arange,
};

KilnTensor *kiln_one_hot(KilnTensor *index, int64_t classes)
{
    KilnAxisAttrs attrs = { .axis = -1, .size = classes };

    return kiln_graph_record(index->graph, &kiln_op_one_hot, &index, 1, &attrs);
}

KilnTensor *kiln_arange(KilnGraph *graph, KilnDType dtype, double start, double step, int64_t n)
{
    KilnArangeAttrs attrs = { .start = start, .step = step, .size = n, .dtype = dtype };

    return kiln_graph_record(graph, &kiln_op_arange, NULL, 0, &attrs);
}

/* ---- cumsum -------------------------------------------------------------------- */

static KilnStatus infer_cumsum(KilnNode *node, KilnError *err)
{
    const KilnCumsumAttrs *attrs = node->attrs;

    if (check_axis(node->inputs[0], attrs->axis, err) < 0 ||
        kiln_check_float(node, 0, "the tensor", err) < 0)
        return err->status;
    kiln_infer_like(node, 0);
    return KILN_OK;
}

static void gradient_cumsum(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    KilnCumsumAttrs attrs = *(const KilnCumsumAttrs *)node->attrs;

    attrs.reverse = !attrs.reverse;
    dx[0] = kiln_graph_record(dy[0]->graph, &kiln_op_cumsum, dy, 1, &attrs);
}

const KilnOp kiln_op_cumsum = {
    .name = "cumsum",
    .n_inputs = 1,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnCumsumAttrs),
    .infer = infer_cumsum,
    .gradient = gradient_cumsum,
};

KilnTensor *kiln_cumsum(KilnTensor *x, int axis)
{
    KilnCumsumAttrs attrs = { .axis = from_front(axis, x->shape.rank) };

    return kiln_graph_record(x->graph, &kiln_op_cumsum, &x, 1, &attrs);
}
