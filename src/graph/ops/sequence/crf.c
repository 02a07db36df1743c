/* Linear-chain conditional random fields: the loss of given tags, and the best tags. */
#include "graph/ops/sequence/crf.h"

#include <inttypes.h>

#include "graph/op_check.h"
#include "graph/graph.h"

/* Checks emissions, tags (unless `tags` is negative), and the four inputs from `lengths` on. */
static KilnStatus check_chain(const KilnNode *node, int emissions, int tags, int lengths,
                              KilnError *err)
{
    if (kiln_check_rank(node, emissions, "emissions", 3, "[B, T, K]", err) < 0)
        return err->status;

    const int64_t *x = node->inputs[emissions]->shape.dim;
    const KilnShape batch = KILN_SHAPE(x[0]), steps = KILN_SHAPE(x[0], x[1]);
    const KilnShape row = KILN_SHAPE(x[2]), square = KILN_SHAPE(x[2], x[2]);
    char text[KILN_SHAPE_TEXT];

    if (tags >= 0 && !kiln_shape_equal(&node->inputs[tags]->shape, &steps))
        return kiln_error_set(err, KILN_E_SHAPE, "tags must be [%" PRId64 ", %" PRId64 "], got %s",
                              x[0], x[1],
                              kiln_shape_text(&node->inputs[tags]->shape, text, sizeof(text)));
    if (tags >= 0 && node->inputs[tags]->classes > x[2])
        return kiln_error_set(err, KILN_E_SHAPE,
                              "there are %" PRId64 " tags, but emissions for %" PRId64,
                              node->inputs[tags]->classes, x[2]);
    if (!kiln_shape_equal(&node->inputs[lengths]->shape, &batch))
        return kiln_error_set(err, KILN_E_SHAPE, "lengths must be [%" PRId64 "], got %s", x[0],
                              kiln_shape_text(&node->inputs[lengths]->shape, text, sizeof(text)));
    if ((tags >= 0 && kiln_check_dtype(node, tags, "tags", KILN_I32, err) < 0) ||
        kiln_check_dtype(node, lengths, "lengths", KILN_I32, err) < 0 ||
        kiln_check_shape(node, lengths + 1, "start", &row, err) < 0 ||
        kiln_check_shape(node, lengths + 2, "end", &row, err) < 0)
        return err->status;
    return kiln_check_shape(node, lengths + 3, "transitions", &square, err);
}

static KilnStatus infer_loss(KilnNode *node, KilnError *err)
{
    if (check_chain(node, 0, 1, 2, err) < 0)
        return err->status;
    kiln_infer_output(node, 0, kiln_node_float(node), &KILN_SHAPE(node->inputs[0]->shape.dim[0]));
    return KILN_OK;
}

static void gradient_loss(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    KilnTensor *const *in = node->inputs;
    KilnTensor *inputs[] = { dy[0], in[0], in[1], in[2], in[3], in[4], in[5] };
    KilnTensor *first = kiln_graph_record(dy[0]->graph, &kiln_op_crf_loss_grad, inputs, 7, NULL);

    if (first->poisoned)
        return;
    dx[0] = first;
    for (int i = 1; i < 4; i++)
        dx[i + 2] = first->node->outputs[i];
}

static KilnStatus infer_loss_grad(KilnNode *node, KilnError *err)
{
    if (check_chain(node, 1, 2, 3, err) < 0)
        return err->status;

    const KilnShape loss = KILN_SHAPE(node->inputs[1]->shape.dim[0]);

    if (kiln_check_shape(node, 0, "dloss", &loss, err) < 0)
        return err->status;
    kiln_infer_like(node, 1);
    for (int i = 1; i < 4; i++)
        kiln_infer_output(node, i, kiln_node_float(node), &node->inputs[3 + i]->shape);
    return KILN_OK;
}

static KilnStatus infer_decode(KilnNode *node, KilnError *err)
{
    if (check_chain(node, 0, -1, 1, err) < 0)
        return err->status;

    const int64_t *x = node->inputs[0]->shape.dim;

    kiln_infer_output(node, 0, KILN_I32, &KILN_SHAPE(x[0], x[1]));
    return KILN_OK;
}

const KilnOp kiln_op_crf_loss = {
    .name = "crf_loss",
    .n_inputs = 6,
    .n_outputs = 1,
    .infer = infer_loss,
    .gradient = gradient_loss,
};

const KilnOp kiln_op_crf_loss_grad = {
    .name = "crf_loss_grad",
    .n_inputs = 7,
    .n_outputs = 4,
    .infer = infer_loss_grad,
};

const KilnOp kiln_op_crf_decode = {
    .name = "crf_decode",
    .n_inputs = 5,
    .n_outputs = 1,
    .infer = infer_decode,
};

KilnTensor *kiln_crf_loss(KilnTensor *emissions, KilnTensor *tags, KilnTensor *lengths,
                          KilnTensor *start, KilnTensor *end, KilnTensor *transitions)
{
    KilnTensor *inputs[] = { emissions, tags, lengths, start, end, transitions };

    return kiln_graph_record(emissions->graph, &kiln_op_crf_loss, inputs, 6, NULL);
}

KilnTensor *kiln_crf_decode(KilnTensor *emissions, KilnTensor *lengths, KilnTensor *start,
                            KilnTensor *end, KilnTensor *transitions)
{
    KilnTensor *inputs[] = { emissions, lengths, start, end, transitions };

    return kiln_graph_record(emissions->graph, &kiln_op_crf_decode, inputs, 5, NULL);
}
