/* Boxes of object detection: intersection over union, non-maximum suppression. */
#include "graph/ops/images/boxes.h"

#include "graph/graph.h"
#include "graph/op_check.h"

/* ---- box_iou ------------------------------------------------------------------------ */

/* Coordinate i of boxes [n, 4], as [n, 1] or [1, n]. */
static KilnTensor *coordinate(KilnTensor *boxes, int i, bool row)
{
    KilnTensor *column = kiln_narrow(boxes, 1, i, 1);

    return row ? kiln_reshape(column, KILN_SHAPE(1, -1)) : column;
}

/* The overlap along an axis, 0 or more, of boxes [n, 1] and [1, m]. */
static KilnTensor *overlap(KilnTensor *a, KilnTensor *b, int axis)
{
    KilnTensor *low = kiln_maximum(coordinate(a, axis, false), coordinate(b, axis, true));
    KilnTensor *high = kiln_minimum(coordinate(a, axis + 2, false), coordinate(b, axis + 2, true));

    return kiln_relu(kiln_sub(high, low));
}

static KilnTensor *area(KilnTensor *boxes, bool row)
{
    return kiln_mul(kiln_sub(coordinate(boxes, 2, row), coordinate(boxes, 0, row)),
                    kiln_sub(coordinate(boxes, 3, row), coordinate(boxes, 1, row)));
}

static bool are_boxes(const KilnTensor *boxes)
{
    char text[KILN_SHAPE_TEXT];

    if (boxes->poisoned)
        return false;
    if (boxes->shape.rank == 2 && boxes->shape.dim[1] == 4)
        return true;
    kiln_graph_poison(boxes->graph, "box_iou: boxes must be [n, 4] (x1, y1, x2, y2), got %s",
                      kiln_shape_text(&boxes->shape, text, sizeof(text)));
    return false;
}

KilnTensor *kiln_box_iou(KilnTensor *a, KilnTensor *b)
{
    if (!are_boxes(a) || !are_boxes(b))
        return a->graph->poison;
    KilnTensor *both = kiln_mul(overlap(a, b, 0), overlap(a, b, 1));
    KilnTensor *either = kiln_sub(kiln_add(area(a, false), area(b, true)), both);

    return kiln_div(both, either);
}

/* ---- nms ------------------------------------------------------------------------------ */

static KilnStatus infer_nms(KilnNode *node, KilnError *err)
{
    const KilnNmsAttrs *attrs = node->attrs;
    const KilnShape *boxes = &node->inputs[0]->shape, *order = &node->inputs[1]->shape;
    char boxes_text[KILN_SHAPE_TEXT], order_text[KILN_SHAPE_TEXT];

    if (kiln_check_float(node, 0, "the boxes", err) < 0 ||
        kiln_check_dtype(node, 1, "the order", KILN_I32, err) < 0)
        return err->status;
    if (boxes->rank != 2 || boxes->dim[1] != 4 ||
        !kiln_shape_equal(order, &KILN_SHAPE(boxes->dim[0])))
        return kiln_error_set(
            err, KILN_E_SHAPE,
            "expected boxes [n, 4] (x1, y1, x2, y2) and scores [n], got %s and %s",
            kiln_shape_text(boxes, boxes_text, sizeof(boxes_text)),
            kiln_shape_text(order, order_text, sizeof(order_text)));
    if (node->inputs[2] != NULL && !kiln_shape_equal(&node->inputs[2]->shape, order))
        return kiln_error_set(
            err, KILN_E_SHAPE, "expected groups [n], as the scores %s, got %s",
            kiln_shape_text(order, order_text, sizeof(order_text)),
            kiln_shape_text(&node->inputs[2]->shape, boxes_text, sizeof(boxes_text)));
    if (kiln_check_dtype(node, 2, "the groups", KILN_I32, err) < 0)
        return err->status;
    kiln_infer_output(node, 0, KILN_I32, &KILN_SHAPE(attrs->limit));
    kiln_infer_output(node, 1, KILN_I32, &KILN_SHAPE(1));
    return KILN_OK;
}

const KilnOp kiln_op_nms = {
    .name = "nms",
    .n_inputs = 3,
    .n_outputs = 2,
    .attrs_size = sizeof(KilnNmsAttrs),
    .infer = infer_nms,
};

KilnPlaces kiln_nms(KilnTensor *boxes, KilnTensor *scores, double iou_threshold, int64_t limit)
{
    return kiln_batched_nms(boxes, scores, NULL, iou_threshold, limit);
}

KilnPlaces kiln_batched_nms(KilnTensor *boxes, KilnTensor *scores, KilnTensor *groups,
                            double iou_threshold, int64_t limit)
{
    const KilnNmsAttrs attrs = { .threshold = iou_threshold, .limit = limit };
    KilnTensor *inputs[] = { boxes, kiln_argsort(scores, 0, true), groups };
    KilnTensor *index = kiln_graph_record(boxes->graph, &kiln_op_nms, inputs, 3, &attrs);

    return (KilnPlaces) { index, index->poisoned ? index : index->node->outputs[1] };
}
