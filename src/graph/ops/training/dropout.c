/* Dropout. The mask is drawn from a key that the caller changes every step. */
#include "graph/op_check.h"
#include "graph/graph.h"

/* A rate that is data is a scalar. */
static KilnStatus check_rate(const KilnNode *node, int i, KilnError *err)
{
    return kiln_check_shape(node, i, "rate", &KILN_SCALAR, err);
}

static KilnStatus infer_dropout(KilnNode *node, KilnError *err)
{
    const KilnDropoutAttrs *attrs = node->attrs;
    const KilnTensor *key = node->inputs[1];
    char text[KILN_SHAPE_TEXT];

    if (!(attrs->p >= 0.0 && attrs->p < 1.0))
        return kiln_error_set(err, KILN_E_RANGE, "p must be from 0 to less than 1, got %g",
                              attrs->p);
    if (kiln_check_float(node, 0, "the tensor", err) < 0 ||
        kiln_check_dtype(node, 1, "key", KILN_I32, err) < 0)
        return err->status;
    if (check_rate(node, 2, err) < 0)
        return err->status;
    if (!kiln_shape_equal(&key->shape, &KILN_SHAPE(2)))
        return kiln_error_set(err, KILN_E_SHAPE, "key must be [2], got %s",
                              kiln_shape_text(&key->shape, text, sizeof(text)));
    kiln_infer_like(node, 0);
    kiln_infer_output(node, 1, KILN_U8, &node->inputs[0]->shape);
    return KILN_OK;
}

static void gradient_dropout(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    KilnTensor *inputs[] = { dy[0], node->outputs[1], node->inputs[2] };

    dx[0] = kiln_graph_record(dy[0]->graph, &kiln_op_dropout_grad, inputs, 3, node->attrs);
}

static KilnStatus infer_dropout_grad(KilnNode *node, KilnError *err)
{
    if (kiln_check_float(node, 0, "dy", err) < 0 ||
        kiln_check_dtype(node, 1, "mask", KILN_U8, err) < 0 || check_rate(node, 2, err) < 0)
        return err->status;
    kiln_infer_like(node, 0);
    return KILN_OK;
}

const KilnOp kiln_op_dropout = {
    .name = "dropout",
    .n_inputs = 3,
    .n_outputs = 2,
    .attrs_size = sizeof(KilnDropoutAttrs),
    .infer = infer_dropout,
    .gradient = gradient_dropout,
    .autocast = KILN_AUTOCAST_FOLLOW,
    .bf16_inputs = 1u << 0,
    .bf16_outputs = 1u << 0,
};

const KilnOp kiln_op_dropout_grad = {
    .name = "dropout_grad",
    .n_inputs = 3,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnDropoutAttrs),
    .infer = infer_dropout_grad,
    .autocast = KILN_AUTOCAST_FOLLOW,
    .bf16_inputs = 1u << 0,
    .bf16_outputs = 1u << 0,
};

KilnTensor *kiln_dropout(KilnTensor *x, double p, KilnTensor *key, int64_t stream)
{
    KilnDropoutAttrs attrs = { .p = p, .stream = stream };

    return kiln_graph_record(x->graph, &kiln_op_dropout, (KilnTensor *[]) { x, key, NULL }, 3,
                             &attrs);
}

KilnTensor *kiln_dropout_rate(KilnTensor *x, KilnTensor *rate, KilnTensor *key, int64_t stream)
{
    KilnDropoutAttrs attrs = { .stream = stream };

    return kiln_graph_record(x->graph, &kiln_op_dropout, (KilnTensor *[]) { x, key, rate }, 3,
                             &attrs);
}
