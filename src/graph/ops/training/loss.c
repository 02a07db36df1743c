/* Probabilities, and the losses that have their own kernels. Losses composed of other operations
 * are in loss_elementwise.c. */
#include <inttypes.h>

#include "graph/op_check.h"
#include "graph/graph.h"

/* ---- softmax, log_softmax ------------------------------------------------------ */

static KilnStatus infer_softmax(KilnNode *node, KilnError *err)
{
    if (kiln_check_rows(node, 0, "the tensor", err) < 0)
        return err->status;
    kiln_infer_like(node, 0);
    return KILN_OK;
}

static KilnTensor *record_with_y(const KilnOp *op, const KilnNode *node, KilnTensor *dy)
{
    return kiln_graph_record(dy->graph, op, (KilnTensor *[]) { dy, node->outputs[0] }, 2, NULL);
}

static void gradient_softmax(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    dx[0] = record_with_y(&kiln_op_softmax_grad, node, dy[0]);
}

static void gradient_log_softmax(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    dx[0] = record_with_y(&kiln_op_log_softmax_grad, node, dy[0]);
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

const KilnOp kiln_op_log_softmax = {
    .name = "log_softmax",
    .n_inputs = 1,
    .n_outputs = 1,
    .infer = infer_softmax,
    .gradient = gradient_log_softmax,
};

const KilnOp kiln_op_log_softmax_grad = {
    .name = "log_softmax_grad",
    .n_inputs = 2,
    .n_outputs = 1,
    .infer = infer_softmax_grad,
};

/* Kernels work on the last axis; permute moves another axis there and back. */
static KilnTensor *along_axis(const KilnOp *op, KilnTensor *x, int axis)
{
    const int last = x->shape.rank - 1;

    if (x->poisoned || last < 0 || axis == -1 || axis == last)
        return kiln_graph_record(x->graph, op, &x, 1, NULL);
    KilnTensor *moved = kiln_transpose(x, axis, last);
    return kiln_transpose(kiln_graph_record(x->graph, op, &moved, 1, NULL), axis, last);
}

KilnTensor *kiln_softmax(KilnTensor *x, int axis)
{
    return along_axis(&kiln_op_softmax, x, axis);
}

KilnTensor *kiln_log_softmax(KilnTensor *x, int axis)
{
    return along_axis(&kiln_op_log_softmax, x, axis);
}

/* ---- Shared by the classification losses ---------------------------------------- */

/* The shape of the rows: all axes but the last. */
static KilnShape rows_of(const KilnShape *shape)
{
    KilnShape rows = *shape;

    rows.dim[--rows.rank] = 0;
    return rows;
}

static KilnShape loss_shape(const KilnLabelAttrs *attrs, const KilnShape *x)
{
    return attrs->reduction == KILN_REDUCTION_NONE ? rows_of(x) : KILN_SCALAR;
}

static KilnStatus check_labels(const KilnNode *node, int i, const KilnShape *x, KilnError *err)
{
    const KilnShape *labels = &node->inputs[i]->shape;
    const KilnShape rows = rows_of(x);
    char want[KILN_SHAPE_TEXT], got[KILN_SHAPE_TEXT];

    if (!kiln_shape_equal(labels, &rows))
        return kiln_error_set(err, KILN_E_SHAPE, "labels must be %s, one per row of logits, got %s",
                              kiln_shape_text(&rows, want, sizeof(want)),
                              kiln_shape_text(labels, got, sizeof(got)));
    const int64_t classes = node->inputs[i]->classes, width = x->dim[x->rank - 1];
    if (classes > width)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "the labels have %" PRId64 " classes, but the last axis of the "
                              "logits %s has only %" PRId64,
                              classes, kiln_shape_text(x, want, sizeof(want)), width);
    return kiln_check_dtype(node, i, "labels", KILN_I32, err);
}

/* Checks labels or targets (input i + 1) and the weight (input i + 2) of x (input i). */
static KilnStatus check_loss(const KilnNode *node, int i, const KilnShape *x, bool soft,
                             KilnError *err)
{
    const KilnLabelAttrs *attrs = node->attrs;

    if (!(attrs->label_smoothing >= 0.0 && attrs->label_smoothing <= 1.0))
        return kiln_error_set(err, KILN_E_RANGE, "label smoothing must be from 0 to 1, got %g",
                              attrs->label_smoothing);
    KilnStatus status = soft ? kiln_check_shape(node, i, "targets", x, err)
                             : check_labels(node, i, x, err);
    if (status < 0)
        return status;
    return kiln_check_shape(node, i + 1, "weight", &KILN_SHAPE(attrs->classes), err);
}

static KilnStatus infer_forward(KilnNode *node, bool soft, KilnError *err)
{
    const KilnShape *x = &node->inputs[0]->shape;

    if (kiln_check_rows(node, 0, "logits", err) < 0 || check_loss(node, 1, x, soft, err) < 0)
        return err->status;
    const KilnShape loss = loss_shape(node->attrs, x);
    kiln_infer_output(node, 0, kiln_node_float(node), &loss);
    if (node->n_outputs > 1)
        kiln_infer_output(node, 1, kiln_node_float(node), x);
    return KILN_OK;
}

static KilnTensor *record_loss(const KilnOp *op, KilnTensor *x, KilnTensor *targets,
                               const KilnCrossEntropy *options)
{
    KilnTensor *inputs[] = { x, targets, options->weight };
    KilnLabelAttrs attrs = { .label_smoothing = options->label_smoothing,
                             .ignore_index = options->ignore ? options->ignore_index : -100,
                             .reduction = options->reduction,
                             .classes = kiln_tensor_dim(x, -1) };

    return kiln_graph_record(x->graph, op, inputs, 3, &attrs);
}

/* ---- nll ------------------------------------------------------------------------ */

static KilnStatus infer_nll(KilnNode *node, KilnError *err)
{
    const KilnLabelAttrs *attrs = node->attrs;

    if (attrs->label_smoothing != 0.0)
        return kiln_error_set(err, KILN_E_RANGE,
                              "label smoothing needs logits; use kiln_cross_entropy");
    return infer_forward(node, false, err);
}

static void gradient_nll(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    KilnTensor *inputs[] = { dy[0], node->inputs[1], node->inputs[2] };

    dx[0] = kiln_graph_record(dy[0]->graph, &kiln_op_nll_grad, inputs, 3, node->attrs);
}

static KilnStatus infer_nll_grad(KilnNode *node, KilnError *err)
{
    const KilnLabelAttrs *attrs = node->attrs;
    KilnShape x = node->inputs[1]->shape;

    if (x.rank == KILN_MAX_RANK)
        return kiln_error_set(err, KILN_E_SHAPE, "labels have too many axes");
    x.dim[x.rank++] = attrs->classes;
    const KilnShape loss = loss_shape(attrs, &x);
    if (kiln_check_shape(node, 0, "dloss", &loss, err) < 0 ||
        check_loss(node, 1, &x, false, err) < 0)
        return err->status;
    kiln_infer_output(node, 0, kiln_node_float(node), &x);
    return KILN_OK;
}

const KilnOp kiln_op_nll = {
    .name = "nll",
    .n_inputs = 3,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnLabelAttrs),
    .infer = infer_nll,
    .gradient = gradient_nll,
};

const KilnOp kiln_op_nll_grad = {
    .name = "nll_grad",
    .n_inputs = 3,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnLabelAttrs),
    .infer = infer_nll_grad,
};

KilnTensor *kiln_nll(KilnTensor *log_probs, KilnTensor *labels, KilnCrossEntropy options)
{
    return record_loss(&kiln_op_nll, log_probs, labels, &options);
}

/* ---- cross_entropy, cross_entropy_soft ------------------------------------------- */

static KilnStatus infer_cross_entropy(KilnNode *node, KilnError *err)
{
    return infer_forward(node, false, err);
}

static KilnStatus infer_cross_entropy_soft(KilnNode *node, KilnError *err)
{
    return infer_forward(node, true, err);
}

/* The probabilities are stored for the gradient only. */
static void record_gradient(const KilnOp *op, const KilnNode *node, KilnTensor *const *dy,
                            KilnTensor **dx)
{
    KilnTensor *inputs[] = { dy[0], node->outputs[1], node->inputs[1], node->inputs[2] };

    if (dy[0] != NULL)
        dx[0] = kiln_graph_record(dy[0]->graph, op, inputs, 4, node->attrs);
}

static void gradient_cross_entropy(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    record_gradient(&kiln_op_cross_entropy_grad, node, dy, dx);
}

static void gradient_cross_entropy_soft(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    record_gradient(&kiln_op_cross_entropy_soft_grad, node, dy, dx);
}

static KilnStatus infer_gradient(KilnNode *node, bool soft, KilnError *err)
{
    const KilnShape *probabilities = &node->inputs[1]->shape;

    if (kiln_check_rows(node, 1, "probabilities", err) < 0)
        return err->status;
    const KilnShape loss = loss_shape(node->attrs, probabilities);
    if (kiln_check_shape(node, 0, "dloss", &loss, err) < 0 ||
        check_loss(node, 2, probabilities, soft, err) < 0)
        return err->status;
    kiln_infer_like(node, 1);
    return KILN_OK;
}

static KilnStatus infer_cross_entropy_grad(KilnNode *node, KilnError *err)
{
    return infer_gradient(node, false, err);
}

static KilnStatus infer_cross_entropy_soft_grad(KilnNode *node, KilnError *err)
{
    return infer_gradient(node, true, err);
}

const KilnOp kiln_op_cross_entropy = {
    .name = "cross_entropy",
    .n_inputs = 3,
    .n_outputs = 2,
    .attrs_size = sizeof(KilnLabelAttrs),
    .infer = infer_cross_entropy,
    .gradient = gradient_cross_entropy,
};

const KilnOp kiln_op_cross_entropy_grad = {
    .name = "cross_entropy_grad",
    .n_inputs = 4,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnLabelAttrs),
    .infer = infer_cross_entropy_grad,
};

const KilnOp kiln_op_cross_entropy_soft = {
    .name = "cross_entropy_soft",
    .n_inputs = 3,
    .n_outputs = 2,
    .attrs_size = sizeof(KilnLabelAttrs),
    .infer = infer_cross_entropy_soft,
    .gradient = gradient_cross_entropy_soft,
};

const KilnOp kiln_op_cross_entropy_soft_grad = {
    .name = "cross_entropy_soft_grad",
    .n_inputs = 4,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnLabelAttrs),
    .infer = infer_cross_entropy_soft_grad,
};

KilnTensor *kiln_cross_entropy(KilnTensor *logits, KilnTensor *labels, KilnCrossEntropy options)
{
    return record_loss(&kiln_op_cross_entropy, logits, labels, &options);
}

KilnTensor *kiln_cross_entropy_soft(KilnTensor *logits, KilnTensor *targets,
                                    KilnCrossEntropy options)
{
    return record_loss(&kiln_op_cross_entropy_soft, logits, targets, &options);
}
