/* Reductions and their counterparts that spread a value: sums, means, argmax,
 * broadcasts. */
#include <string.h>

#include "graph/check.h"
#include "graph/graph.h"

static KilnTensor *record_shaped(const KilnOp *op, KilnTensor *x, const KilnShape *shape)
{
    KilnShapeAttrs attrs;

    memset(&attrs, 0, sizeof(attrs));
    kiln_shape_store(&attrs.shape, shape);
    return kiln_graph_record(x->graph, op, &x, 1, &attrs);
}

/* ---- sum, mean, broadcast ------------------------------------------------------ */

static KilnStatus infer_total(KilnNode *node, KilnError *err)
{
    if (kiln_check_float(node, 0, "the tensor", err) < 0)
        return err->status;
    kiln_infer_output(node, 0, kiln_node_float(node), &KILN_SCALAR);
    return KILN_OK;
}

static void gradient_sum(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    dx[0] = record_shaped(&kiln_op_broadcast, dy[0], &node->inputs[0]->shape);
}

static void gradient_mean(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    const KilnShape *shape = &node->inputs[0]->shape;
    KilnTensor *share = kiln_scale(dy[0], 1.0 / (double)kiln_shape_count(shape));

    dx[0] = record_shaped(&kiln_op_broadcast, share, shape);
}

static KilnStatus infer_broadcast(KilnNode *node, KilnError *err)
{
    const KilnShapeAttrs *attrs = node->attrs;

    if (kiln_check_rank(node, 0, "the value", 0, "a scalar", err) < 0)
        return err->status;
    kiln_infer_output(node, 0, kiln_node_float(node), &attrs->shape);
    return KILN_OK;
}

static void gradient_broadcast(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    (void)node;
    dx[0] = kiln_sum(dy[0]);
}

const KilnOp kiln_op_sum = {
    .name = "sum",
    .n_inputs = 1,
    .n_outputs = 1,
    .infer = infer_total,
    .gradient = gradient_sum,
    .narrow_inputs = 1u << 0,
};

const KilnOp kiln_op_mean = {
    .name = "mean",
    .n_inputs = 1,
    .n_outputs = 1,
    .infer = infer_total,
    .gradient = gradient_mean,
    .narrow_inputs = 1u << 0,
};

const KilnOp kiln_op_broadcast = {
    .name = "broadcast",
    .n_inputs = 1,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnShapeAttrs),
    .infer = infer_broadcast,
    .gradient = gradient_broadcast,
};

KilnTensor *kiln_sum(KilnTensor *x)
{
    return kiln_graph_record(x->graph, &kiln_op_sum, &x, 1, NULL);
}

KilnTensor *kiln_mean(KilnTensor *x)
{
    return kiln_graph_record(x->graph, &kiln_op_mean, &x, 1, NULL);
}

/* ---- sum_rows, broadcast_rows -------------------------------------------------- */

static KilnStatus infer_sum_rows(KilnNode *node, KilnError *err)
{
    const KilnShape *shape = &node->inputs[0]->shape;

    if (kiln_check_rows(node, 0, "the tensor", err) < 0)
        return err->status;
    kiln_infer_output(node, 0, kiln_node_float(node), &KILN_SHAPE(shape->dim[shape->rank - 1]));
    return KILN_OK;
}

static void gradient_sum_rows(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    dx[0] = record_shaped(&kiln_op_broadcast_rows, dy[0], &node->inputs[0]->shape);
}

static KilnStatus infer_broadcast_rows(KilnNode *node, KilnError *err)
{
    const KilnShapeAttrs *attrs = node->attrs;
    int rank = attrs->shape.rank;
    char row[KILN_SHAPE_TEXT], whole[KILN_SHAPE_TEXT];

    if (rank < 1)
        return kiln_error_set(err, KILN_E_SHAPE, "the result must have at least one axis");
    if (kiln_check_rank(node, 0, "the row", 1, "[C]", err) < 0)
        return err->status;
    if (node->inputs[0]->shape.dim[0] != attrs->shape.dim[rank - 1])
        return kiln_error_set(err, KILN_E_SHAPE, "a row of %s does not fit into %s",
                              kiln_shape_text(&node->inputs[0]->shape, row, sizeof(row)),
                              kiln_shape_text(&attrs->shape, whole, sizeof(whole)));
    kiln_infer_output(node, 0, kiln_node_float(node), &attrs->shape);
    return KILN_OK;
}

static void gradient_broadcast_rows(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    (void)node;
    dx[0] = kiln_sum_rows(dy[0]);
}

const KilnOp kiln_op_sum_rows = {
    .name = "sum_rows",
    .n_inputs = 1,
    .n_outputs = 1,
    .infer = infer_sum_rows,
    .gradient = gradient_sum_rows,
    .narrow_inputs = 1u << 0,
};

const KilnOp kiln_op_broadcast_rows = {
    .name = "broadcast_rows",
    .n_inputs = 1,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnShapeAttrs),
    .infer = infer_broadcast_rows,
    .gradient = gradient_broadcast_rows,
};

KilnTensor *kiln_sum_rows(KilnTensor *x)
{
    return kiln_graph_record(x->graph, &kiln_op_sum_rows, &x, 1, NULL);
}

/* ---- argmax, equal ------------------------------------------------------------- */

static KilnStatus infer_argmax(KilnNode *node, KilnError *err)
{
    KilnShape shape = node->inputs[0]->shape;

    if (kiln_check_rows(node, 0, "the tensor", err) < 0)
        return err->status;
    shape.rank--;
    kiln_infer_output(node, 0, KILN_I32, &shape);
    return KILN_OK;
}

static KilnStatus infer_equal(KilnNode *node, KilnError *err)
{
    const KilnShape *a = &node->inputs[0]->shape, *b = &node->inputs[1]->shape;
    char text_a[KILN_SHAPE_TEXT], text_b[KILN_SHAPE_TEXT];

    if (!kiln_shape_equal(a, b))
        return kiln_error_set(err, KILN_E_SHAPE, "both must have one shape, got %s and %s",
                              kiln_shape_text(a, text_a, sizeof(text_a)),
                              kiln_shape_text(b, text_b, sizeof(text_b)));
    if (kiln_check_dtype(node, 0, "the first", KILN_I32, err) < 0 ||
        kiln_check_dtype(node, 1, "the second", KILN_I32, err) < 0)
        return err->status;
    kiln_infer_output(node, 0, kiln_node_float(node), a);
    return KILN_OK;
}

const KilnOp kiln_op_argmax = {
    .name = "argmax",
    .n_inputs = 1,
    .n_outputs = 1,
    .infer = infer_argmax,
};

const KilnOp kiln_op_equal = {
    .name = "equal",
    .n_inputs = 2,
    .n_outputs = 1,
    .infer = infer_equal,
};

KilnTensor *kiln_argmax(KilnTensor *x)
{
    return kiln_graph_record(x->graph, &kiln_op_argmax, &x, 1, NULL);
}

KilnTensor *kiln_equal(KilnTensor *a, KilnTensor *b)
{
    return kiln_graph_record(a->graph, &kiln_op_equal, (KilnTensor *[]) { a, b }, 2, NULL);
}
