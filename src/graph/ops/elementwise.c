/* Operations on each element by itself. */
#include <string.h>

#include "graph/check.h"
#include "graph/graph.h"

/* ---- add, mul ------------------------------------------------------------------ */

static KilnStatus infer_pair(KilnNode *node, KilnError *err)
{
    const KilnTensor *a = node->inputs[0], *b = node->inputs[1];
    char text_a[KILN_SHAPE_TEXT], text_b[KILN_SHAPE_TEXT];

    if (!kiln_shape_equal(&a->shape, &b->shape))
        return kiln_error_set(err, KILN_E_SHAPE, "both must have one shape, got %s and %s",
                              kiln_shape_text(&a->shape, text_a, sizeof(text_a)),
                              kiln_shape_text(&b->shape, text_b, sizeof(text_b)));
    if (kiln_check_float(node, 0, "the first", err) < 0 ||
        kiln_check_float(node, 1, "the second", err) < 0)
        return err->status;
    kiln_infer_like(node, 0);
    return KILN_OK;
}

static void gradient_add(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    (void)node;
    dx[0] = dy[0];
    dx[1] = dy[0];
}

static void gradient_mul(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    if (node->inputs[0]->wants_grad)
        dx[0] = kiln_mul(dy[0], node->inputs[1]);
    if (node->inputs[1]->wants_grad)
        dx[1] = kiln_mul(dy[0], node->inputs[0]);
}

const KilnOp kiln_op_add = {
    .name = "add",
    .n_inputs = 2,
    .n_outputs = 1,
    .infer = infer_pair,
    .gradient = gradient_add,
    .precision = KILN_PRECISION_FOLLOW,
    .narrow_inputs = 1u << 0 | 1u << 1,
    .narrow_outputs = 1u << 0,
};

const KilnOp kiln_op_mul = {
    .name = "mul",
    .n_inputs = 2,
    .n_outputs = 1,
    .infer = infer_pair,
    .gradient = gradient_mul,
    .precision = KILN_PRECISION_FOLLOW,
    .narrow_inputs = 1u << 0 | 1u << 1,
    .narrow_outputs = 1u << 0,
};

KilnTensor *kiln_add(KilnTensor *a, KilnTensor *b)
{
    return kiln_graph_record(a->graph, &kiln_op_add, (KilnTensor *[]) { a, b }, 2, NULL);
}

KilnTensor *kiln_mul(KilnTensor *a, KilnTensor *b)
{
    return kiln_graph_record(a->graph, &kiln_op_mul, (KilnTensor *[]) { a, b }, 2, NULL);
}

/* ---- scale --------------------------------------------------------------------- */

static KilnStatus infer_one(KilnNode *node, KilnError *err)
{
    if (kiln_check_float(node, 0, "the tensor", err) < 0)
        return err->status;
    kiln_infer_like(node, 0);
    return KILN_OK;
}

static void gradient_scale(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    const KilnScaleAttrs *attrs = node->attrs;

    dx[0] = kiln_scale(dy[0], attrs->factor);
}

const KilnOp kiln_op_scale = {
    .name = "scale",
    .n_inputs = 1,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnScaleAttrs),
    .infer = infer_one,
    .gradient = gradient_scale,
    .precision = KILN_PRECISION_FOLLOW,
    .narrow_inputs = 1u << 0,
    .narrow_outputs = 1u << 0,
};

KilnTensor *kiln_scale(KilnTensor *x, double factor)
{
    KilnScaleAttrs attrs = { .factor = factor, .correction = 1.0 };

    return kiln_graph_record(x->graph, &kiln_op_scale, &x, 1, &attrs);
}

/* ---- fill ---------------------------------------------------------------------- */

static KilnStatus infer_fill(KilnNode *node, KilnError *err)
{
    const KilnFillAttrs *attrs = node->attrs;

    (void)err;
    kiln_infer_output(node, 0, attrs->dtype, &attrs->shape);
    return KILN_OK;
}

const KilnOp kiln_op_fill = {
    .name = "fill",
    .n_inputs = 0,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnFillAttrs),
    .infer = infer_fill,
};

KilnTensor *kiln_graph_full(KilnGraph *graph, KilnShape shape, double value)
{
    KilnFillAttrs attrs;

    memset(&attrs, 0, sizeof(attrs));
    attrs.value = value;
    attrs.dtype = graph->float_type;
    kiln_shape_store(&attrs.shape, &shape);
    return kiln_graph_record(graph, &kiln_op_fill, NULL, 0, &attrs);
}

/* ---- relu ---------------------------------------------------------------------- */

static void gradient_relu(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    KilnTensor *inputs[] = { dy[0], node->outputs[0] };

    dx[0] = kiln_graph_record(dy[0]->graph, &kiln_op_relu_grad, inputs, 2, NULL);
}

const KilnOp kiln_op_relu = {
    .name = "relu",
    .n_inputs = 1,
    .n_outputs = 1,
    .infer = infer_one,
    .gradient = gradient_relu,
    .precision = KILN_PRECISION_FOLLOW,
    .narrow_inputs = 1u << 0,
    .narrow_outputs = 1u << 0,
};

const KilnOp kiln_op_relu_grad = {
    .name = "relu_grad",
    .n_inputs = 2,
    .n_outputs = 1,
    .infer = infer_pair,
    .precision = KILN_PRECISION_FOLLOW,
    .narrow_inputs = 1u << 0 | 1u << 1,
    .narrow_outputs = 1u << 0,
};

KilnTensor *kiln_relu(KilnTensor *x)
{
    return kiln_graph_record(x->graph, &kiln_op_relu, &x, 1, NULL);
}
