/* Probabilities and losses. */
#include <inttypes.h>

#include "graph/check.h"
#include "graph/graph.h"

/* ---- softmax ------------------------------------------------------------------- */

static KilnStatus infer_softmax(KilnNode *node, KilnError *err)
{
    if (kiln_check_rows(node, 0, "the tensor", err) < 0)
        return err->status;
    kiln_infer_like(node, 0);
    return KILN_OK;
}

static void gradient_softmax(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    KilnTensor *inputs[] = { dy[0], node->outputs[0] };

    dx[0] = kiln_graph_record(dy[0]->graph, &kiln_op_softmax_grad, inputs, 2, NULL);
}

static KilnStatus infer_softmax_grad(KilnNode *node, KilnError *err)
{
    if (kiln_check_rows(node, 0, "dy", err) < 0 ||
        kiln_check_shape(node, 1, "y", &node->inputs[0]->shape, err) < 0)
        return err->status;
    kiln_infer_like(node, 0);
    return KILN_OK;
}

const KilnOp kiln_op_softmax = {
    .name = "softmax",
    .n_inputs = 1,
    .n_outputs = 1,
    .infer = infer_softmax,
    .gradient = gradient_softmax,
};

const KilnOp kiln_op_softmax_grad = {
    .name = "softmax_grad",
    .n_inputs = 2,
    .n_outputs = 1,
    .infer = infer_softmax_grad,
};

KilnTensor *kiln_softmax(KilnTensor *x)
{
    return kiln_graph_record(x->graph, &kiln_op_softmax, &x, 1, NULL);
}

/* ---- cross_entropy ------------------------------------------------------------- */

static KilnStatus check_labels(const KilnNode *node, int i, const KilnShape *logits, KilnError *err)
{
    const KilnShape *labels = &node->inputs[i]->shape;
    char text[KILN_SHAPE_TEXT];

    if (labels->rank != 1 || labels->dim[0] != logits->dim[0])
        return kiln_error_set(err, KILN_E_SHAPE,
                              "labels must be [%" PRId64 "], one per row of logits, got %s",
                              logits->dim[0], kiln_shape_text(labels, text, sizeof(text)));
    return kiln_check_dtype(node, i, "labels", KILN_I32, err);
}

static KilnStatus infer_cross_entropy(KilnNode *node, KilnError *err)
{
    const KilnCrossEntropyAttrs *attrs = node->attrs;
    const KilnShape *logits = &node->inputs[0]->shape;

    if (!(attrs->label_smoothing >= 0.0 && attrs->label_smoothing <= 1.0))
        return kiln_error_set(err, KILN_E_RANGE, "label smoothing must be from 0 to 1, got %g",
                              attrs->label_smoothing);
    if (kiln_check_rank(node, 0, "logits", 2, "[N, classes]", err) < 0 ||
        check_labels(node, 1, logits, err) < 0)
        return err->status;
    kiln_infer_output(node, 0, kiln_node_float(node), &KILN_SCALAR);
    kiln_infer_output(node, 1, kiln_node_float(node), logits);
    return KILN_OK;
}

static void gradient_cross_entropy(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    KilnTensor *inputs[] = { dy[0], node->outputs[1], node->inputs[1] };

    /* The probabilities are kept for the gradient and are nobody's input. */
    if (dy[0] != NULL)
        dx[0] = kiln_graph_record(dy[0]->graph, &kiln_op_cross_entropy_grad, inputs, 3,
                                  node->attrs);
}

static KilnStatus infer_cross_entropy_grad(KilnNode *node, KilnError *err)
{
    const KilnShape *probabilities = &node->inputs[1]->shape;

    if (kiln_check_rank(node, 0, "dloss", 0, "a scalar", err) < 0 ||
        kiln_check_rank(node, 1, "probabilities", 2, "[N, classes]", err) < 0 ||
        check_labels(node, 2, probabilities, err) < 0)
        return err->status;
    kiln_infer_like(node, 1);
    return KILN_OK;
}

const KilnOp kiln_op_cross_entropy = {
    .name = "cross_entropy",
    .n_inputs = 2,
    .n_outputs = 2,
    .attrs_size = sizeof(KilnCrossEntropyAttrs),
    .infer = infer_cross_entropy,
    .gradient = gradient_cross_entropy,
};

const KilnOp kiln_op_cross_entropy_grad = {
    .name = "cross_entropy_grad",
    .n_inputs = 3,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnCrossEntropyAttrs),
    .infer = infer_cross_entropy_grad,
};

KilnTensor *kiln_cross_entropy(KilnTensor *logits, KilnTensor *labels, double label_smoothing)
{
    KilnCrossEntropyAttrs attrs = { .label_smoothing = label_smoothing };

    return kiln_graph_record(logits->graph, &kiln_op_cross_entropy,
                             (KilnTensor *[]) { logits, labels }, 2, &attrs);
}
