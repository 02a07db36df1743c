/* Scaled dot-product attention: sizes, shapes and gradients. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "graph/op_check.h"
#include "graph/ops/mapped.h"

/* ---- Sizes --------------------------------------------------------------------- */

static KilnAttentionView view_of(int64_t heads, int64_t rows, int64_t width, bool heads_first)
{
    return (KilnAttentionView) {
        .batch = heads * rows * width,
        .head = heads_first ? rows * width : width,
        .row = heads_first ? width : heads * width,
    };
}

KilnAttentionSizes kiln_attention_sizes(const KilnShape *q, const KilnShape *k,
                                        const KilnAttentionAttrs *attrs)
{
    const bool first = attrs->heads_first != 0;
    const int rows = first ? 2 : 1, heads = first ? 1 : 2;
    KilnAttentionSizes s = { .batch = q->dim[0] };

    if (k != NULL) {
        s.heads = q->dim[heads];
        s.kv_heads = k->dim[heads];
        s.queries = q->dim[rows];
        s.keys = k->dim[rows];
        s.width = q->dim[3];
        s.q = view_of(s.heads, s.queries, s.width, first);
        s.k = s.v = view_of(s.kv_heads, s.keys, s.width, first);
        s.y = s.q;
        return s;
    }
    s.queries = s.keys = q->dim[1];
    s.heads = s.kv_heads = q->dim[3];
    s.width = q->dim[4];
    s.y = view_of(s.heads, s.queries, s.width, false);
    s.q = (KilnAttentionView) { 3 * s.y.batch, s.width, 3 * s.y.row };
    s.k = s.v = s.q;
    s.k_offset = s.y.row;
    s.v_offset = 2 * s.y.row;
    return s;
}

KilnMaskStrides kiln_attention_mask(const KilnShape *mask)
{
    int64_t strides[4] = { 0 }, stride = 1;

    for (int axis = mask->rank - 1, i = 3; axis >= 0; axis--, i--) {
        strides[i] = mask->dim[axis] > 1 ? stride : 0;
        stride *= mask->dim[axis];
    }
    return (KilnMaskStrides) { strides[0], strides[1], strides[2], strides[3] };
}

int64_t kiln_attention_row(const KilnAttentionSizes *sizes, int64_t b, int64_t h, int64_t query)
{
    const int64_t block = 64;

    return ((b * sizes->heads + h) * sizes->queries + query) *
           ((sizes->keys + block - 1) / block * block);
}

/* ---- Checks -------------------------------------------------------------------- */

static KilnStatus check_mask(const KilnNode *node, int i, const KilnAttentionSizes *s,
                             KilnError *err)
{
    const KilnTensor *mask = node->inputs[i];
    const int64_t full[4] = { s->batch, s->heads, s->queries, s->keys };
    char text[KILN_SHAPE_TEXT];

    if (mask == NULL)
        return KILN_OK;
    if (mask->dtype != KILN_U8 && kiln_check_float(node, i, "mask that is not u8", err) < 0)
        return err->status;
    bool fits = mask->shape.rank >= 2 && mask->shape.rank <= 4;
    for (int axis = mask->shape.rank - 1, k = 3; fits && axis >= 0; axis--, k--)
        fits = mask->shape.dim[axis] == 1 || mask->shape.dim[axis] == full[k];
    if (!fits)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "mask must broadcast to [%" PRId64 ", %" PRId64 ", %" PRId64
                              ", %" PRId64 "] with 2 to 4 axes, got %s",
                              full[0], full[1], full[2], full[3],
                              kiln_shape_text(&mask->shape, text, sizeof(text)));
    return KILN_OK;
}

/* Checks the optional inputs from `first` on, and the attributes. */
static KilnStatus check_options(const KilnNode *node, int first, const KilnAttentionSizes *s,
                                KilnError *err)
{
    const KilnAttentionAttrs *attrs = node->attrs;
    const KilnTensor *padding = node->inputs[first + 1], *key = node->inputs[first + 2];
    const KilnTensor *positions = node->inputs[first + 3];
    const KilnShape rows = KILN_SHAPE(s->batch, s->keys), words = KILN_SHAPE(2);
    const KilnShape own = KILN_SHAPE(s->batch, s->queries), shared = KILN_SHAPE(1, s->queries);
    char want[KILN_SHAPE_TEXT], got[KILN_SHAPE_TEXT];

    if (!(attrs->dropout >= 0.0 && attrs->dropout < 1.0))
        return kiln_error_set(err, KILN_E_RANGE, "dropout must be from 0 to less than 1, got %g",
                              attrs->dropout);
    if (attrs->dropout > 0.0 && key == NULL)
        return kiln_error_set(err, KILN_E_MISSING, "dropout needs a key");
    if (check_mask(node, first, s, err) < 0 ||
        kiln_check_dtype(node, first + 1, "padding", KILN_U8, err) < 0 ||
        kiln_check_dtype(node, first + 2, "key", KILN_I32, err) < 0 ||
        kiln_check_dtype(node, first + 3, "positions", KILN_I32, err) < 0)
        return err->status;
    if (padding != NULL && !kiln_shape_equal(&padding->shape, &rows))
        return kiln_error_set(err, KILN_E_SHAPE, "padding must be %s, got %s",
                              kiln_shape_text(&rows, want, sizeof(want)),
                              kiln_shape_text(&padding->shape, got, sizeof(got)));
    if (key != NULL && !kiln_shape_equal(&key->shape, &words))
        return kiln_error_set(err, KILN_E_SHAPE, "key must be [2], got %s",
                              kiln_shape_text(&key->shape, got, sizeof(got)));
    if (positions != NULL && !kiln_shape_equal(&positions->shape, &own) &&
        !kiln_shape_equal(&positions->shape, &shared))
        return kiln_error_set(err, KILN_E_SHAPE, "positions must be %s, got %s",
                              kiln_shape_text(&own, want, sizeof(want)),
                              kiln_shape_text(&positions->shape, got, sizeof(got)));
    return KILN_OK;
}

static KilnStatus check_separate(const KilnNode *node, KilnError *err)
{
    const KilnAttentionAttrs *attrs = node->attrs;
    const char *form = attrs->heads_first != 0 ? "[B, H, T, D]" : "[B, T, H, D]";
    const KilnShape *q = &node->inputs[0]->shape, *k = &node->inputs[1]->shape;
    char text_q[KILN_SHAPE_TEXT], text_k[KILN_SHAPE_TEXT];

    if (kiln_check_rank(node, 0, "q", 4, form, err) < 0 ||
        kiln_check_rank(node, 1, "k", 4, form, err) < 0 ||
        kiln_check_shape(node, 2, "v", k, err) < 0)
        return err->status;
    KilnAttentionSizes s = kiln_attention_sizes(q, k, attrs);
    if (k->dim[0] != s.batch || k->dim[3] != s.width || s.heads % s.kv_heads != 0)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "q %s and k %s do not match as %s: batch and width must be equal, "
                              "and the heads of q a multiple of those of k",
                              kiln_shape_text(q, text_q, sizeof(text_q)),
                              kiln_shape_text(k, text_k, sizeof(text_k)), form);
    return KILN_OK;
}

static KilnStatus infer_attention(KilnNode *node, KilnError *err)
{
    if (check_separate(node, err) < 0)
        return err->status;
    KilnAttentionSizes s = kiln_attention_sizes(&node->inputs[0]->shape, &node->inputs[1]->shape,
                                                node->attrs);
    if (check_options(node, 3, &s, err) < 0)
        return err->status;
    kiln_infer_like(node, 0);
    kiln_infer_output(node, 1, kiln_node_float(node), &KILN_SHAPE(s.batch, s.heads, s.queries));
    return KILN_OK;
}

static KilnStatus infer_packed(KilnNode *node, KilnError *err)
{
    const KilnShape *qkv = &node->inputs[0]->shape;
    char text[KILN_SHAPE_TEXT];

    if (kiln_check_rank(node, 0, "qkv", 5, "[B, T, 3, H, D]", err) < 0)
        return err->status;
    if (qkv->dim[2] != 3)
        return kiln_error_set(err, KILN_E_SHAPE, "qkv must be [B, T, 3, H, D], got %s",
                              kiln_shape_text(qkv, text, sizeof(text)));
    KilnAttentionSizes s = kiln_attention_sizes(qkv, NULL, node->attrs);
    if (check_options(node, 1, &s, err) < 0)
        return err->status;
    kiln_infer_output(node, 0, kiln_node_float(node),
                      &KILN_SHAPE(s.batch, s.queries, s.heads, s.width));
    kiln_infer_output(node, 1, kiln_node_float(node), &KILN_SHAPE(s.batch, s.heads, s.queries));
    return KILN_OK;
}

/* ---- Gradients ----------------------------------------------------------------- */

/* Records `op`. If the added mask needs a gradient, it is the last output, the gradient of the
 * scores, summed where the mask was broadcast. */
static KilnNode *record_grad(const KilnOp *op, const KilnNode *node, KilnTensor *const *inputs,
                             int n_inputs, int mask, KilnTensor **dx)
{
    const KilnTensor *added = node->inputs[mask];
    KilnAttentionAttrs attrs;

    memcpy(&attrs, node->attrs, sizeof(attrs));
    attrs.mask_grad = added != NULL && added->wants_grad;
    KilnTensor *first = kiln_graph_record(inputs[0]->graph, op, inputs, n_inputs, &attrs);
    if (first->poisoned)
        return NULL;
    if (attrs.mask_grad != 0)
        dx[mask] = kiln_sum_to(first->node->outputs[op->n_outputs - 1], &added->shape);
    return first->node;
}

/* lse serves only the gradient, so only y has one. */
static void gradient_attention(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    KilnTensor *const *in = node->inputs;
    KilnTensor *inputs[] = {
        dy[0], node->outputs[0], node->outputs[1], in[0], in[1], in[2], in[3], in[4], in[5], in[6]
    };

    if (dy[0] == NULL)
        return;
    const KilnNode *made = record_grad(&kiln_op_attention_grad, node, inputs, 10, 3, dx);
    for (int i = 0; i < 3 && made != NULL; i++)
        dx[i] = made->outputs[i];
}

static void gradient_packed(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    KilnTensor *const *in = node->inputs;
    KilnTensor *inputs[] = { dy[0], node->outputs[0], node->outputs[1], in[0], in[1], in[2], in[3],
                             in[4] };

    if (dy[0] == NULL)
        return;
    const KilnNode *made = record_grad(&kiln_op_attention_packed_grad, node, inputs, 8, 1, dx);
    if (made != NULL)
        dx[0] = made->outputs[0];
}

/* Adds the gradient of the scores as the last output. */
static void infer_scores(KilnNode *node, const KilnAttentionSizes *s)
{
    const KilnAttentionAttrs *attrs = node->attrs;

    if (attrs->mask_grad != 0)
        kiln_infer_output(node, node->n_outputs - 1, kiln_node_float(node),
                          &KILN_SHAPE(s->batch, s->heads, s->queries, s->keys));
    else
        node->n_outputs--;
}

static KilnStatus infer_attention_grad(KilnNode *node, KilnError *err)
{
    if (kiln_check_shape(node, 0, "dy", &node->inputs[1]->shape, err) < 0)
        return err->status;
    for (int i = 0; i < 3; i++)
        kiln_infer_output(node, i, kiln_node_float(node), &node->inputs[3 + i]->shape);
    KilnAttentionSizes s = kiln_attention_sizes(&node->inputs[3]->shape, &node->inputs[4]->shape,
                                                node->attrs);
    infer_scores(node, &s);
    return KILN_OK;
}

static KilnStatus infer_packed_grad(KilnNode *node, KilnError *err)
{
    if (kiln_check_shape(node, 0, "dy", &node->inputs[1]->shape, err) < 0)
        return err->status;
    kiln_infer_output(node, 0, kiln_node_float(node), &node->inputs[3]->shape);
    KilnAttentionSizes s = kiln_attention_sizes(&node->inputs[3]->shape, NULL, node->attrs);
    infer_scores(node, &s);
    return KILN_OK;
}

/* ---- Descriptors --------------------------------------------------------------- */

/* Two products of rows and keys. As in PyTorch's counter, the triangle that causal attention skips
 * still counts. */
static double product_flops(const KilnAttentionSizes *s)
{
    return 2.0 * (double)(s->batch * s->heads * s->queries) * (double)(s->keys * s->width);
}

static double flops_attention(const KilnNode *node)
{
    KilnAttentionSizes s = kiln_attention_sizes(&node->inputs[0]->shape, &node->inputs[1]->shape,
                                                node->attrs);

    return 2.0 * product_flops(&s);
}

static double flops_attention_grad(const KilnNode *node)
{
    KilnAttentionSizes s = kiln_attention_sizes(&node->inputs[3]->shape, &node->inputs[4]->shape,
                                                node->attrs);

    return 5.0 * product_flops(&s);
}

static double flops_packed(const KilnNode *node)
{
    KilnAttentionSizes s = kiln_attention_sizes(&node->inputs[0]->shape, NULL, node->attrs);

    return 2.0 * product_flops(&s);
}

static double flops_packed_grad(const KilnNode *node)
{
    KilnAttentionSizes s = kiln_attention_sizes(&node->inputs[3]->shape, NULL, node->attrs);

    return 5.0 * product_flops(&s);
}

const KilnOp kiln_op_attention = {
    .name = "attention",
    .n_inputs = 7,
    .n_outputs = 2,
    .attrs_size = sizeof(KilnAttentionAttrs),
    .infer = infer_attention,
    .gradient = gradient_attention,
    .autocast = KILN_AUTOCAST_BF16,
    .bf16_inputs = 0x7,
    .bf16_outputs = 0x1,
    .flops = flops_attention,
};

const KilnOp kiln_op_attention_grad = {
    .name = "attention_grad",
    .n_inputs = 10,
    .n_outputs = 4,
    .attrs_size = sizeof(KilnAttentionAttrs),
    .infer = infer_attention_grad,
    .autocast = KILN_AUTOCAST_BF16,
    .bf16_inputs = 0x3b,
    .bf16_outputs = 0x7,
    .flops = flops_attention_grad,
};

const KilnOp kiln_op_attention_packed = {
    .name = "attention_packed",
    .n_inputs = 5,
    .n_outputs = 2,
    .attrs_size = sizeof(KilnAttentionAttrs),
    .infer = infer_packed,
    .gradient = gradient_packed,
    .autocast = KILN_AUTOCAST_BF16,
    .bf16_inputs = 0x1,
    .bf16_outputs = 0x1,
    .flops = flops_packed,
};

const KilnOp kiln_op_attention_packed_grad = {
    .name = "attention_packed_grad",
    .n_inputs = 8,
    .n_outputs = 2,
    .attrs_size = sizeof(KilnAttentionAttrs),
    .infer = infer_packed_grad,
    .autocast = KILN_AUTOCAST_BF16,
    .bf16_inputs = 0xb,
    .bf16_outputs = 0x1,
    .flops = flops_packed_grad,
};

/* ---- The public operations ----------------------------------------------------- */

static KilnAttentionAttrs attrs_of(const KilnAttention *attention, int64_t width)
{
    return (KilnAttentionAttrs) {
        .scale = attention->scale != 0.0 ? attention->scale : 1.0 / sqrt((double)width),
        .dropout = attention->dropout,
        .stream = attention->stream,
        .causal = attention->causal,
        .heads_first = attention->heads_first,
    };
}

KilnTensor *kiln_attention_within(KilnTensor *q, KilnTensor *k, KilnTensor *v,
                                  KilnTensor *positions, KilnAttention attention)
{
    KilnAttentionAttrs attrs = attrs_of(&attention, kiln_tensor_dim(q, -1));
    KilnTensor *inputs[] = { q, k, v, attention.mask, attention.padding, attention.key, positions };

    return kiln_graph_record(q->graph, &kiln_op_attention, inputs, 7, &attrs);
}

KilnTensor *kiln_attention(KilnTensor *q, KilnTensor *k, KilnTensor *v, KilnAttention attention)
{
    return kiln_attention_within(q, k, v, NULL, attention);
}

KilnTensor *kiln_attention_packed_within(KilnTensor *qkv, KilnTensor *positions,
                                         KilnAttention attention)
{
    KilnAttentionAttrs attrs = attrs_of(&attention, kiln_tensor_dim(qkv, -1));
    KilnTensor *inputs[] = { qkv, attention.mask, attention.padding, attention.key, positions };

    if (attention.heads_first)
        return kiln_graph_poison(
            qkv->graph, "attention_packed: heads_first is not supported with [B, T, 3, H, D]");
    return kiln_graph_record(qkv->graph, &kiln_op_attention_packed, inputs, 5, &attrs);
}

KilnTensor *kiln_attention_packed(KilnTensor *qkv, KilnAttention attention)
{
    return kiln_attention_packed_within(qkv, NULL, attention);
}
