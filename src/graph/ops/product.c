/* Matrix products. */
#include <inttypes.h>
#include <string.h>

#include "graph/op_check.h"
#include "graph/op.h"

/* ---- Batch axes ----------------------------------------------------------------- */

static KilnShape batch_axes(const KilnShape *shape)
{
    KilnShape axes = { .rank = shape->rank - 2 };

    for (int i = 0; i < axes.rank; i++)
        axes.dim[i] = shape->dim[i];
    return axes;
}

/* Size of axis i counted from the last; 1 if there is none. */
static int64_t from_last(const KilnShape *shape, int i)
{
    return i < shape->rank ? shape->dim[shape->rank - 1 - i] : 1;
}

/* The axes that both broadcast to; false if they do not. */
static bool join_axes(const KilnShape *a, const KilnShape *b, KilnShape *ret)
{
    *ret = (KilnShape) { .rank = a->rank > b->rank ? a->rank : b->rank };
    for (int i = 0; i < ret->rank; i++) {
        int64_t x = from_last(a, i), y = from_last(b, i);

        if (x != y && x != 1 && y != 1)
            return false;
        ret->dim[ret->rank - 1 - i] = x > y ? x : y;
    }
    return true;
}

/* Step in matrices between neighbours along each of `axes`. */
static void find_steps(const KilnShape *axes, const KilnShape *own, int64_t *steps)
{
    int64_t step = 1;

    for (int i = 0; i < axes->rank; i++) {
        steps[axes->rank - 1 - i] = from_last(own, i) == 1 ? 0 : step;
        step *= from_last(own, i);
    }
}

KilnBmm kiln_bmm_of(const KilnMatmulAttrs *attrs, const KilnShape *a, const KilnShape *b,
                    const KilnShape *y)
{
    const KilnShape axes_a = batch_axes(a), axes_b = batch_axes(b), axes_y = batch_axes(y);
    KilnBmm batch = { .m = y->dim[y->rank - 2],
                      .n = y->dim[y->rank - 1],
                      .k = a->dim[a->rank - (attrs->transpose_a != 0 ? 2 : 1)],
                      .transpose_a = attrs->transpose_a != 0,
                      .transpose_b = attrs->transpose_b != 0 };

    (void)join_axes(&axes_a, &axes_b, &batch.axes); /* checked when recorded */
    batch.count = kiln_shape_count(&batch.axes);
    batch.add_up = kiln_shape_count(&axes_y) != batch.count;
    find_steps(&batch.axes, &axes_a, batch.step_a);
    find_steps(&batch.axes, &axes_b, batch.step_b);
    find_steps(&batch.axes, &axes_y, batch.step_y);
    return batch;
}

int64_t kiln_bmm_at(const KilnBmm *batch, const int64_t *steps, int64_t i)
{
    int64_t at = 0;

    for (int axis = batch->axes.rank - 1; axis >= 0; axis--) {
        at += i % batch->axes.dim[axis] * steps[axis];
        i /= batch->axes.dim[axis];
    }
    return at;
}

/* ---- matmul -------------------------------------------------------------------- */

static KilnStatus check_matrix(const KilnNode *node, int i, const char *name, KilnError *err)
{
    char text[KILN_SHAPE_TEXT];

    if (kiln_check_float(node, i, name, err) < 0)
        return err->status;
    if (node->inputs[i]->shape.rank < 2)
        return kiln_error_set(err, KILN_E_SHAPE, "%s must be [..., rows, columns], got %s", name,
                              kiln_shape_text(&node->inputs[i]->shape, text, sizeof(text)));
    return KILN_OK;
}

/* The batch axes of the result. */
static KilnStatus infer_axes(const KilnNode *node, KilnShape *ret, KilnError *err)
{
    const KilnMatmulAttrs *attrs = node->attrs;
    const KilnShape a = batch_axes(&node->inputs[0]->shape);
    const KilnShape b = batch_axes(&node->inputs[1]->shape);
    char text_a[KILN_SHAPE_TEXT], text_b[KILN_SHAPE_TEXT];
    KilnShape joined, sums;

    if (!join_axes(&a, &b, &joined))
        return kiln_error_set(err, KILN_E_SHAPE, "%s and %s: the batch axes do not broadcast",
                              kiln_shape_text(&node->inputs[0]->shape, text_a, sizeof(text_a)),
                              kiln_shape_text(&node->inputs[1]->shape, text_b, sizeof(text_b)));
    *ret = joined;
    if (attrs->summed == 0)
        return KILN_OK;
    if (!join_axes(&attrs->batch, &joined, &sums) || !kiln_shape_equal(&sums, &joined))
        return kiln_error_set(err, KILN_E_INTERNAL, "axes %s cannot be sums of %s",
                              kiln_shape_text(&attrs->batch, text_a, sizeof(text_a)),
                              kiln_shape_text(&joined, text_b, sizeof(text_b)));
    *ret = attrs->batch;
    return KILN_OK;
}

static KilnStatus infer_matmul(KilnNode *node, KilnError *err)
{
    const KilnMatmulAttrs *attrs = node->attrs;
    const KilnShape *a = &node->inputs[0]->shape, *b = &node->inputs[1]->shape;
    char text_a[KILN_SHAPE_TEXT], text_b[KILN_SHAPE_TEXT];
    KilnShape y;

    if (check_matrix(node, 0, "the left matrix", err) < 0 ||
        check_matrix(node, 1, "the right matrix", err) < 0 || infer_axes(node, &y, err) < 0)
        return err->status;
    int row_a = a->rank - 2, column_a = a->rank - 1, row_b = b->rank - 2, column_b = b->rank - 1;
    if (attrs->transpose_a != 0)
        row_a = a->rank - 1, column_a = a->rank - 2;
    if (attrs->transpose_b != 0)
        row_b = b->rank - 1, column_b = b->rank - 2;
    if (a->dim[column_a] != b->dim[row_b])
        return kiln_error_set(
            err, KILN_E_SHAPE,
            "%s%s times %s%s does not match: %" PRId64 " columns meet %" PRId64 " rows",
            kiln_shape_text(a, text_a, sizeof(text_a)),
            attrs->transpose_a != 0 ? " transposed" : "",
            kiln_shape_text(b, text_b, sizeof(text_b)),
            attrs->transpose_b != 0 ? " transposed" : "", a->dim[column_a], b->dim[row_b]);
    y.dim[y.rank++] = a->dim[row_a];
    y.dim[y.rank++] = b->dim[column_b];
    kiln_infer_output(node, 0, kiln_node_float(node), &y);
    return KILN_OK;
}

/* The product, summed to the batch axes of `like`. */
static KilnTensor *product_like(KilnTensor *a, KilnTensor *b, bool transpose_a, bool transpose_b,
                                const KilnShape *like)
{
    KilnMatmulAttrs attrs;
    KilnShape axes = batch_axes(like);

    memset(&attrs, 0, sizeof(attrs));
    attrs.transpose_a = transpose_a;
    attrs.transpose_b = transpose_b;
    attrs.summed = 1;
    kiln_shape_store(&attrs.batch, &axes);
    return kiln_graph_record(a->graph, &kiln_op_matmul, (KilnTensor *[]) { a, b }, 2, &attrs);
}

/* For y = op(a) op(b): d op(a) = dy op(b)ᵀ and d op(b) = op(a)ᵀ dy; if the operation transposes,
 * the product is transposed as well. */
static void gradient_matmul(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    const KilnMatmulAttrs *attrs = node->attrs;
    KilnTensor *a = node->inputs[0], *b = node->inputs[1];
    bool ta = attrs->transpose_a != 0, tb = attrs->transpose_b != 0;

    if (a->wants_grad)
        dx[0] = ta ? product_like(b, dy[0], tb, true, &a->shape)
                   : product_like(dy[0], b, false, !tb, &a->shape);
    if (b->wants_grad)
        dx[1] = tb ? product_like(dy[0], a, true, ta, &b->shape)
                   : product_like(a, dy[0], !ta, false, &b->shape);
}

/* Each element of the result takes as many products as the summed axis has elements. */
static double flops_matmul(const KilnNode *node)
{
    const KilnMatmulAttrs *attrs = node->attrs;
    const KilnShape *a = &node->inputs[0]->shape;
    KilnBmm batch = kiln_bmm_of(attrs, a, &node->inputs[1]->shape, &node->outputs[0]->shape);

    return 2.0 * (double)batch.count * (double)batch.m * (double)batch.n * (double)batch.k;
}

const KilnOp kiln_op_matmul = {
    .name = "matmul",
    .n_inputs = 2,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnMatmulAttrs),
    .infer = infer_matmul,
    .gradient = gradient_matmul,
    .flops = flops_matmul,
    .autocast = KILN_AUTOCAST_BF16,
    .bf16_inputs = 1u << 0 | 1u << 1,
    .bf16_outputs = 1u << 0,
};

KilnTensor *kiln_matmul(KilnTensor *a, KilnTensor *b, bool transpose_a, bool transpose_b)
{
    KilnMatmulAttrs attrs;

    memset(&attrs, 0, sizeof(attrs));
    attrs.transpose_a = transpose_a;
    attrs.transpose_b = transpose_b;
    return kiln_graph_record(a->graph, &kiln_op_matmul, (KilnTensor *[]) { a, b }, 2, &attrs);
}

/* ---- linear -------------------------------------------------------------------- */

static KilnStatus infer_linear(KilnNode *node, KilnError *err)
{
    const KilnShape *x = &node->inputs[0]->shape, *weight = &node->inputs[1]->shape;
    char text[KILN_SHAPE_TEXT];
    KilnShape y = *x;

    if (kiln_check_rows(node, 0, "x", err) < 0 ||
        kiln_check_rank(node, 1, "weight", 2, "[out, in]", err) < 0)
        return err->status;
    if (x->dim[x->rank - 1] != weight->dim[1])
        return kiln_error_set(
            err, KILN_E_SHAPE, "x has %" PRId64 " features, the weight %s expects %" PRId64,
            x->dim[x->rank - 1], kiln_shape_text(weight, text, sizeof(text)), weight->dim[1]);
    if (kiln_check_shape(node, 2, "bias", &KILN_SHAPE(weight->dim[0]), err) < 0)
        return err->status;
    y.dim[y.rank - 1] = weight->dim[0];
    kiln_infer_output(node, 0, kiln_node_float(node), &y);
    return KILN_OK;
}

/* Views a vector as a matrix with one row, as matmul needs matrices. */
static KilnTensor *as_matrix(KilnTensor *x)
{
    return x->shape.rank > 1 ? x : kiln_reshape(x, KILN_SHAPE(1, x->shape.dim[0]));
}

static void gradient_linear(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    KilnTensor *x = node->inputs[0], *weight = node->inputs[1], *bias = node->inputs[2];
    KilnTensor *rows = as_matrix(dy[0]);

    if (x->wants_grad) {
        dx[0] = kiln_matmul(rows, weight, false, false);
        if (x->shape.rank == 1)
            dx[0] = kiln_reshape(dx[0], x->shape);
    }
    if (weight->wants_grad)
        dx[1] = product_like(rows, as_matrix(x), true, false, &weight->shape);
    if (bias != NULL && bias->wants_grad)
        dx[2] = kiln_sum_rows(rows);
}

static double flops_linear(const KilnNode *node)
{
    return 2.0 * (double)kiln_shape_count(&node->outputs[0]->shape) *
           (double)node->inputs[1]->shape.dim[1];
}

const KilnOp kiln_op_linear = {
    .name = "linear",
    .n_inputs = 3,
    .n_outputs = 1,
    .infer = infer_linear,
    .gradient = gradient_linear,
    .flops = flops_linear,
    .autocast = KILN_AUTOCAST_BF16,
    .bf16_inputs = 1u << 0 | 1u << 1,
    .bf16_outputs = 1u << 0,
};

KilnTensor *kiln_linear(KilnTensor *x, KilnTensor *weight, KilnTensor *bias)
{
    KilnTensor *inputs[] = { x, weight, bias };

    return kiln_graph_record(x->graph, &kiln_op_linear, inputs, 3, NULL);
}
