/* LSTM and GRU over a whole sequence, one layer and direction. */
#include <inttypes.h>

#include "graph/op_check.h"
#include "graph/graph.h"

/* ---- Checks -------------------------------------------------------------------- */

typedef struct Sizes {
    KilnShape gates, sequence, state; /* [T, B, n H], [T, B, H], [B, H] */
} Sizes;

/* Checks p and weight, inputs 0 and 1, of a layer with `n` gates. */
static KilnStatus check_gates(const KilnNode *node, int64_t n, Sizes *ret, KilnError *err)
{
    const KilnRecurrentAttrs *attrs = node->attrs;
    const char *form = attrs->batch_first != 0 ? "[B, T, gates]" : "[T, B, gates]";
    const KilnShape *p = &node->inputs[0]->shape, *weight = &node->inputs[1]->shape;

    if (kiln_check_rank(node, 0, "the input's share of the gates", 3, form, err) < 0 ||
        kiln_check_rank(node, 1, "weight", 2, "[gates, hidden]", err) < 0)
        return err->status;
    int64_t hidden = weight->dim[1];
    if (weight->dim[0] != n * hidden || p->dim[2] != n * hidden)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "%" PRId64 " gates of %" PRId64 " make %" PRId64
                              " columns, got %" PRId64 " in the weight and %" PRId64
                              " from the input",
                              n, hidden, n * hidden, weight->dim[0], p->dim[2]);
    ret->gates = *p;
    ret->sequence = KILN_SHAPE(p->dim[0], p->dim[1], hidden);
    ret->state = KILN_SHAPE(p->dim[attrs->batch_first != 0 ? 0 : 1], hidden);
    return KILN_OK;
}

static KilnStatus check_lengths(const KilnNode *node, int i, int64_t batch, KilnError *err)
{
    const KilnTensor *lengths = node->inputs[i];
    char text[KILN_SHAPE_TEXT];

    if (lengths != NULL && !kiln_shape_equal(&lengths->shape, &KILN_SHAPE(batch)))
        return kiln_error_set(err, KILN_E_SHAPE, "lengths must be [%" PRId64 "], got %s", batch,
                              kiln_shape_text(&lengths->shape, text, sizeof(text)));
    return kiln_check_dtype(node, i, "lengths", KILN_I32, err);
}

/* ---- LSTM ---------------------------------------------------------------------- */

static KilnStatus infer_lstm(KilnNode *node, KilnError *err)
{
    Sizes sizes;

    if (check_gates(node, 4, &sizes, err) < 0 ||
        kiln_check_shape(node, 2, "h0", &sizes.state, err) < 0 ||
        kiln_check_shape(node, 3, "c0", &sizes.state, err) < 0 ||
        check_lengths(node, 4, sizes.state.dim[0], err) < 0)
        return err->status;
    const KilnShape *shapes[] = { &sizes.gates, &sizes.sequence, &sizes.state, &sizes.state,
                                  &sizes.sequence };

    for (int i = 0; i < 5; i++)
        kiln_infer_output(node, i, kiln_node_float(node), shapes[i]);
    return KILN_OK;
}

static void gradient_lstm(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    KilnTensor *const *in = node->inputs, *const *out = node->outputs;
    KilnTensor *inputs[] = {
        out[0], dy[1], dy[2], dy[3], in[1], in[2], in[3], in[4], out[1], out[4]
    };
    KilnTensor *first = kiln_graph_record(out[0]->graph, &kiln_op_lstm_grad, inputs, 10,
                                          node->attrs);

    if (first->poisoned)
        return;
    for (int i = 0; i < 4; i++)
        dx[i] = first->node->outputs[i];
}

static KilnStatus infer_lstm_grad(KilnNode *node, KilnError *err)
{
    const KilnShape *weight = &node->inputs[4]->shape, *y = &node->inputs[8]->shape;
    const KilnRecurrentAttrs *attrs = node->attrs;
    const KilnShape state = KILN_SHAPE(y->dim[attrs->batch_first != 0 ? 0 : 1], y->dim[2]);

    if (kiln_check_shape(node, 1, "dy", y, err) < 0 ||
        kiln_check_shape(node, 2, "dh", &state, err) < 0 ||
        kiln_check_shape(node, 3, "dc", &state, err) < 0)
        return err->status;
    const KilnShape *shapes[] = { &node->inputs[0]->shape, weight, &state, &state };

    for (int i = 0; i < 4; i++)
        kiln_infer_output(node, i, kiln_node_float(node), shapes[i]);
    return KILN_OK;
}

/* ---- GRU ----------------------------------------------------------------------- */

static KilnStatus infer_gru(KilnNode *node, KilnError *err)
{
    Sizes sizes;

    if (check_gates(node, 3, &sizes, err) < 0 ||
        kiln_check_shape(node, 2, "h0", &sizes.state, err) < 0 ||
        check_lengths(node, 3, sizes.state.dim[0], err) < 0 ||
        kiln_check_shape(node, 4, "bias", &KILN_SHAPE(sizes.gates.dim[2]), err) < 0)
        return err->status;
    const KilnShape *shapes[] = { &sizes.gates, &sizes.sequence, &sizes.state, &sizes.sequence };

    for (int i = 0; i < 4; i++)
        kiln_infer_output(node, i, kiln_node_float(node), shapes[i]);
    return KILN_OK;
}

static void gradient_gru(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    KilnTensor *const *in = node->inputs, *const *out = node->outputs;
    KilnTensor *inputs[] = { out[0], dy[1], dy[2], in[1], in[2], in[3], out[1], out[3] };
    KilnTensor *first = kiln_graph_record(out[0]->graph, &kiln_op_gru_grad, inputs, 8, node->attrs);

    if (first->poisoned)
        return;
    for (int i = 0; i < 3; i++)
        dx[i] = first->node->outputs[i];
    dx[4] = first->node->outputs[3];
}

static KilnStatus infer_gru_grad(KilnNode *node, KilnError *err)
{
    const KilnShape *weight = &node->inputs[3]->shape, *y = &node->inputs[6]->shape;
    const KilnRecurrentAttrs *attrs = node->attrs;
    const KilnShape state = KILN_SHAPE(y->dim[attrs->batch_first != 0 ? 0 : 1], y->dim[2]);
    const KilnShape bias = KILN_SHAPE(weight->dim[0]);

    if (kiln_check_shape(node, 1, "dy", y, err) < 0 ||
        kiln_check_shape(node, 2, "dh", &state, err) < 0)
        return err->status;
    const KilnShape *shapes[] = { &node->inputs[0]->shape, weight, &state, &bias };

    for (int i = 0; i < 4; i++)
        kiln_infer_output(node, i, kiln_node_float(node), shapes[i]);
    return KILN_OK;
}

/* ---- Descriptors --------------------------------------------------------------- */

/* In bf16: the inputs' contribution, states and weight of the products, and the sequences, as
 * torch.autocast has them. It also rounds gates, cells and the states before they are used; here
 * those and all sums are f32. */

/* One product of hidden state and weight per step. */
static double flops_of(const KilnShape *gates, const KilnShape *weight)
{
    return 2.0 * (double)(gates->dim[0] * gates->dim[1]) * (double)kiln_shape_count(weight);
}

static double flops_forward(const KilnNode *node)
{
    return flops_of(&node->inputs[0]->shape, &node->inputs[1]->shape);
}

static double flops_lstm_grad(const KilnNode *node)
{
    return 2.0 * flops_of(&node->inputs[0]->shape, &node->inputs[4]->shape);
}

static double flops_gru_grad(const KilnNode *node)
{
    return 2.0 * flops_of(&node->inputs[0]->shape, &node->inputs[3]->shape);
}

const KilnOp kiln_op_lstm = {
    .name = "lstm",
    .n_inputs = 5,
    .n_outputs = 5,
    .attrs_size = sizeof(KilnRecurrentAttrs),
    .infer = infer_lstm,
    .gradient = gradient_lstm,
    .autocast = KILN_AUTOCAST_BF16,
    .bf16_inputs = 0x3,
    .bf16_outputs = 0x2,
    .flops = flops_forward,
};

const KilnOp kiln_op_lstm_grad = {
    .name = "lstm_grad",
    .n_inputs = 10,
    .n_outputs = 4,
    .attrs_size = sizeof(KilnRecurrentAttrs),
    .infer = infer_lstm_grad,
    .autocast = KILN_AUTOCAST_BF16,
    .bf16_inputs = 0x112,
    .bf16_outputs = 0x1,
    .flops = flops_lstm_grad,
};

const KilnOp kiln_op_gru = {
    .name = "gru",
    .n_inputs = 5,
    .n_outputs = 4,
    .attrs_size = sizeof(KilnRecurrentAttrs),
    .infer = infer_gru,
    .gradient = gradient_gru,
    .autocast = KILN_AUTOCAST_BF16,
    .bf16_inputs = 0x3,
    .bf16_outputs = 0x2,
    .flops = flops_forward,
};

const KilnOp kiln_op_gru_grad = {
    .name = "gru_grad",
    .n_inputs = 8,
    .n_outputs = 4,
    .attrs_size = sizeof(KilnRecurrentAttrs),
    .infer = infer_gru_grad,
    .autocast = KILN_AUTOCAST_BF16,
    .bf16_inputs = 0x4a,
    .bf16_outputs = 0x1,
    .flops = flops_gru_grad,
};

/* ---- The public operations ----------------------------------------------------- */

static KilnRecurrentOut outputs_of(KilnTensor *first, int y, int h, int c)
{
    if (first->poisoned)
        return (KilnRecurrentOut) { first, first, c >= 0 ? first : NULL };
    KilnTensor *const *out = first->node->outputs;
    return (KilnRecurrentOut) { out[y], out[h], c >= 0 ? out[c] : NULL };
}

KilnRecurrentOut kiln_lstm(KilnTensor *p, KilnTensor *weight, KilnRecurrent r)
{
    KilnRecurrentAttrs attrs = { .reverse = r.reverse, .batch_first = r.batch_first };
    KilnTensor *inputs[] = { p, weight, r.h0, r.c0, r.lengths };

    return outputs_of(kiln_graph_record(p->graph, &kiln_op_lstm, inputs, 5, &attrs), 1, 2, 3);
}

KilnRecurrentOut kiln_gru(KilnTensor *p, KilnTensor *weight, KilnTensor *bias, KilnRecurrent r)
{
    KilnRecurrentAttrs attrs = { .reverse = r.reverse, .batch_first = r.batch_first };
    KilnTensor *inputs[] = { p, weight, r.h0, r.lengths, bias };

    return outputs_of(kiln_graph_record(p->graph, &kiln_op_gru, inputs, 5, &attrs), 1, 2, -1);
}
