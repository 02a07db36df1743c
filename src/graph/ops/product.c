/* Matrix products. */
#include <inttypes.h>

#include "graph/check.h"
#include "graph/graph.h"

/* ---- matmul -------------------------------------------------------------------- */

static KilnStatus infer_matmul(KilnNode *node, KilnError *err)
{
    const KilnMatmulAttrs *attrs = node->attrs;
    const KilnShape *a = &node->inputs[0]->shape, *b = &node->inputs[1]->shape;
    char text_a[KILN_SHAPE_TEXT], text_b[KILN_SHAPE_TEXT];

    if (kiln_check_rank(node, 0, "the left matrix", 2, "[m, k]", err) < 0 ||
        kiln_check_rank(node, 1, "the right matrix", 2, "[k, n]", err) < 0)
        return err->status;
    int row_a = attrs->transpose_a != 0 ? 1 : 0, row_b = attrs->transpose_b != 0 ? 1 : 0;
    if (a->dim[1 - row_a] != b->dim[row_b])
        return kiln_error_set(
            err, KILN_E_SHAPE,
            "%s%s times %s%s does not go: %" PRId64 " columns meet %" PRId64 " rows",
            kiln_shape_text(a, text_a, sizeof(text_a)), row_a != 0 ? " transposed" : "",
            kiln_shape_text(b, text_b, sizeof(text_b)), row_b != 0 ? " transposed" : "",
            a->dim[1 - row_a], b->dim[row_b]);
    kiln_infer_output(node, 0, kiln_node_float(node),
                      &KILN_SHAPE(a->dim[row_a], b->dim[1 - row_b]));
    return KILN_OK;
}

/* For y = op(a) op(b): d op(a) = dy op(b)ᵀ and d op(b) = op(a)ᵀ dy; where the
 * operation transposes, the product is formed the other way round. */
static void gradient_matmul(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    const KilnMatmulAttrs *attrs = node->attrs;
    KilnTensor *a = node->inputs[0], *b = node->inputs[1];
    bool ta = attrs->transpose_a != 0, tb = attrs->transpose_b != 0;

    if (a->wants_grad)
        dx[0] = ta ? kiln_matmul(b, dy[0], tb, true) : kiln_matmul(dy[0], b, false, !tb);
    if (b->wants_grad)
        dx[1] = tb ? kiln_matmul(dy[0], a, true, ta) : kiln_matmul(a, dy[0], !ta, false);
}

const KilnOp kiln_op_matmul = {
    .name = "matmul",
    .n_inputs = 2,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnMatmulAttrs),
    .infer = infer_matmul,
    .gradient = gradient_matmul,
    .precision = KILN_PRECISION_NARROW,
    .narrow_inputs = 1u << 0 | 1u << 1,
    .narrow_outputs = 1u << 0,
};

KilnTensor *kiln_matmul(KilnTensor *a, KilnTensor *b, bool transpose_a, bool transpose_b)
{
    KilnMatmulAttrs attrs = { .transpose_a = transpose_a, .transpose_b = transpose_b };

    return kiln_graph_record(a->graph, &kiln_op_matmul, (KilnTensor *[]) { a, b }, 2, &attrs);
}

/* ---- linear -------------------------------------------------------------------- */

static KilnStatus infer_linear(KilnNode *node, KilnError *err)
{
    const KilnShape *x = &node->inputs[0]->shape, *weight = &node->inputs[1]->shape;
    char text[KILN_SHAPE_TEXT];

    if (kiln_check_rank(node, 0, "x", 2, "[N, features]", err) < 0 ||
        kiln_check_rank(node, 1, "weight", 2, "[out, in]", err) < 0)
        return err->status;
    if (x->dim[1] != weight->dim[1])
        return kiln_error_set(err, KILN_E_SHAPE,
                              "x has %" PRId64 " features, the weight %s takes %" PRId64, x->dim[1],
                              kiln_shape_text(weight, text, sizeof(text)), weight->dim[1]);
    if (kiln_check_shape(node, 2, "bias", &KILN_SHAPE(weight->dim[0]), err) < 0)
        return err->status;
    kiln_infer_output(node, 0, kiln_node_float(node), &KILN_SHAPE(x->dim[0], weight->dim[0]));
    return KILN_OK;
}

static void gradient_linear(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    KilnTensor *x = node->inputs[0], *weight = node->inputs[1], *bias = node->inputs[2];

    if (x->wants_grad)
        dx[0] = kiln_matmul(dy[0], weight, false, false);
    if (weight->wants_grad)
        dx[1] = kiln_matmul(dy[0], x, true, false);
    if (bias != NULL && bias->wants_grad)
        dx[2] = kiln_sum_rows(dy[0]);
}

const KilnOp kiln_op_linear = {
    .name = "linear",
    .n_inputs = 3,
    .n_outputs = 1,
    .infer = infer_linear,
    .gradient = gradient_linear,
    .precision = KILN_PRECISION_NARROW,
    .narrow_inputs = 1u << 0 | 1u << 1,
    .narrow_outputs = 1u << 0,
};

KilnTensor *kiln_linear(KilnTensor *x, KilnTensor *weight, KilnTensor *bias)
{
    KilnTensor *inputs[] = { x, weight, bias };

    return kiln_graph_record(x->graph, &kiln_op_linear, inputs, 3, NULL);
}
