/* Sums, means and largest elements of groups of rows, and their gradients. */
#include "graph/ops/select/segment.h"

#include "graph/graph.h"
#include "graph/op_check.h"

static KilnStatus infer_segment(KilnNode *node, KilnError *err)
{
    const KilnSegmentAttrs *attrs = node->attrs;
    KilnShape shape = node->inputs[0]->shape;
    char ids[KILN_SHAPE_TEXT], x[KILN_SHAPE_TEXT];

    if (kiln_check_rows(node, 0, "the tensor", err) < 0 ||
        kiln_check_dtype(node, 1, "ids", KILN_I32, err) < 0)
        return err->status;
    if (!kiln_shape_equal(&node->inputs[1]->shape, &KILN_SHAPE(shape.dim[0])))
        return kiln_error_set(err, KILN_E_SHAPE, "ids must have one number for each of %s, got %s",
                              kiln_shape_text(&shape, x, sizeof(x)),
                              kiln_shape_text(&node->inputs[1]->shape, ids, sizeof(ids)));
    shape.dim[0] = attrs->count;
    kiln_infer_output(node, 0, kiln_node_float(node), &shape);
    return KILN_OK;
}

static void gradient_segment(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    const KilnSegmentAttrs *attrs = node->attrs;
    const bool max = attrs->mode == KILN_SEGMENT_MAX;
    KilnTensor *inputs[] = { dy[0], node->inputs[1], max ? node->inputs[0] : NULL,
                             max ? node->outputs[0] : NULL };

    dx[0] = kiln_graph_record(dy[0]->graph, &kiln_op_segment_grad, inputs, 4, attrs);
}

static KilnStatus infer_segment_grad(KilnNode *node, KilnError *err)
{
    KilnShape shape = node->inputs[0]->shape;

    if (kiln_check_rows(node, 0, "dy", err) < 0 ||
        kiln_check_dtype(node, 1, "ids", KILN_I32, err) < 0)
        return err->status;
    shape.dim[0] = node->inputs[1]->shape.dim[0];
    kiln_infer_output(node, 0, kiln_node_float(node), &shape);
    return KILN_OK;
}

const KilnOp kiln_op_segment = {
    .name = "segment",
    .n_inputs = 2,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnSegmentAttrs),
    .infer = infer_segment,
    .gradient = gradient_segment,
};

const KilnOp kiln_op_segment_grad = {
    .name = "segment_grad",
    .n_inputs = 4,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnSegmentAttrs),
    .infer = infer_segment_grad,
};

static KilnTensor *record_segment(KilnSegmentMode mode, KilnTensor *x, KilnTensor *ids,
                                  int64_t count)
{
    const KilnSegmentAttrs attrs = { .mode = mode, .count = count };

    return kiln_graph_record(x->graph, &kiln_op_segment, (KilnTensor *[]) { x, ids }, 2, &attrs);
}

KilnTensor *kiln_segment_sum(KilnTensor *x, KilnTensor *ids, int64_t count)
{
    return record_segment(KILN_SEGMENT_SUM, x, ids, count);
}

KilnTensor *kiln_segment_mean(KilnTensor *x, KilnTensor *ids, int64_t count)
{
    return record_segment(KILN_SEGMENT_MEAN, x, ids, count);
}

KilnTensor *kiln_segment_max(KilnTensor *x, KilnTensor *ids, int64_t count)
{
    return record_segment(KILN_SEGMENT_MAX, x, ids, count);
}
