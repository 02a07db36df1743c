/* Connectionist temporal classification. */
#include "graph/ops/sequence/ctc.h"

#include <inttypes.h>

#include "graph/op_check.h"
#include "graph/graph.h"

static KilnStatus check_lengths(const KilnNode *node, int i, const char *name, int64_t batch,
                                KilnError *err)
{
    const KilnShape *shape = &node->inputs[i]->shape;
    char text[KILN_SHAPE_TEXT];

    if (shape->rank != 1 || shape->dim[0] != batch)
        return kiln_error_set(err, KILN_E_SHAPE, "%s must be [%" PRId64 "], got %s", name, batch,
                              kiln_shape_text(shape, text, sizeof(text)));
    return kiln_check_dtype(node, i, name, KILN_I32, err);
}

/* Checks log_probs, targets and both lengths, which are inputs i and up. */
static KilnStatus check_sequences(const KilnNode *node, int i, KilnError *err)
{
    const KilnCtcAttrs *attrs = node->attrs;
    const KilnShape *x = &node->inputs[i]->shape, *targets = &node->inputs[i + 1]->shape;
    char text[KILN_SHAPE_TEXT];

    if (kiln_check_rank(node, i, "log_probs", 3, "[T, N, C]", err) < 0)
        return err->status;
    if (targets->rank != 2 || targets->dim[0] != x->dim[1])
        return kiln_error_set(err, KILN_E_SHAPE, "targets must be [%" PRId64 ", S], got %s",
                              x->dim[1], kiln_shape_text(targets, text, sizeof(text)));
    if (attrs->blank < 0 || attrs->blank >= x->dim[2])
        return kiln_error_set(err, KILN_E_RANGE,
                              "the blank must be one of the %" PRId64 " classes, got %" PRId64,
                              x->dim[2], attrs->blank);
    if (kiln_check_dtype(node, i + 1, "targets", KILN_I32, err) < 0 ||
        check_lengths(node, i + 2, "input_lengths", x->dim[1], err) < 0)
        return err->status;
    return check_lengths(node, i + 3, "target_lengths", x->dim[1], err);
}

static KilnShape loss_shape(const KilnNode *node, const KilnTensor *log_probs)
{
    const KilnCtcAttrs *attrs = node->attrs;

    return attrs->reduction == KILN_REDUCTION_NONE ? KILN_SHAPE(log_probs->shape.dim[1])
                                                   : KILN_SCALAR;
}

static KilnStatus infer_ctc(KilnNode *node, KilnError *err)
{
    if (check_sequences(node, 0, err) < 0)
        return err->status;
    const KilnShape loss = loss_shape(node, node->inputs[0]);
    kiln_infer_output(node, 0, kiln_node_float(node), &loss);
    return KILN_OK;
}

static void gradient_ctc(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    KilnTensor *inputs[] = { dy[0], node->inputs[0], node->inputs[1], node->inputs[2],
                             node->inputs[3] };

    dx[0] = kiln_graph_record(dy[0]->graph, &kiln_op_ctc_grad, inputs, 5, node->attrs);
}

static KilnStatus infer_ctc_grad(KilnNode *node, KilnError *err)
{
    if (check_sequences(node, 1, err) < 0)
        return err->status;
    const KilnShape loss = loss_shape(node, node->inputs[1]);
    if (kiln_check_shape(node, 0, "dloss", &loss, err) < 0)
        return err->status;
    kiln_infer_like(node, 1);
    return KILN_OK;
}

const KilnOp kiln_op_ctc = {
    .name = "ctc",
    .n_inputs = 4,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnCtcAttrs),
    .infer = infer_ctc,
    .gradient = gradient_ctc,
};

const KilnOp kiln_op_ctc_grad = {
    .name = "ctc_grad",
    .n_inputs = 5,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnCtcAttrs),
    .infer = infer_ctc_grad,
};

KilnTensor *kiln_ctc(KilnTensor *log_probs, KilnTensor *targets, KilnTensor *input_lengths,
                     KilnTensor *target_lengths, KilnCtc options)
{
    KilnTensor *inputs[] = { log_probs, targets, input_lengths, target_lengths };
    KilnCtcAttrs attrs = { .blank = options.blank,
                           .zero_infinity = options.zero_infinity,
                           .reduction = options.reduction };

    return kiln_graph_record(log_probs->graph, &kiln_op_ctc, inputs, 4, &attrs);
}
