/* Multi-head attention. */
#include <inttypes.h>

#include "nn/layer.h"
#include "nn/lora.h"

static KilnStatus check_heads(const KilnScope *own, int64_t width, int64_t heads, KilnError *err)
{
    if (heads >= 1 && width >= 1 && width % heads == 0)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_RANGE,
                          "%s: the width must be a multiple of the number of heads, got %" PRId64
                          " and %" PRId64,
                          own->path, width, heads);
}

/* What both kinds of attention have after their weights, in PyTorch's order: the biases of queries,
 * keys and values, and the output projection. */
static KilnStatus init_output(const KilnScope *own, int64_t width, KilnParam **in_proj_bias,
                              KilnLinear *out_proj, KilnError *err)
{
    const KilnInit zero = { .kind = KILN_INIT_CONSTANT };
    KilnStatus status = kiln_param_new(own, "in_proj_bias", KILN_SHAPE(3 * width), zero,
                                       in_proj_bias, err);

    if (status == KILN_OK)
        status = kiln_nn_linear_init(out_proj, own, "out_proj", width, width, true, err);
    if (status == KILN_OK)
        kiln_param_set_init(out_proj->bias, zero);
    return status;
}

KilnStatus kiln_nn_multi_head_attention_init(KilnMultiHeadAttention *layer, const KilnScope *scope,
                                             const char *name, int64_t width, int64_t heads,
                                             double dropout, KilnError *err)
{
    KilnScope own = kiln_scope(scope, "%s", name);
    const KilnInit xavier = { .kind = KILN_INIT_XAVIER_UNIFORM, .a = 1.0 };

    *layer = (KilnMultiHeadAttention) { .width = width, .heads = heads, .dropout = dropout };
    kiln_layer_path(layer->path, &own);
    KilnStatus status = check_heads(&own, width, heads, err);
    if (status == KILN_OK)
        status = kiln_param_new(&own, "in_proj_weight", KILN_SHAPE(3 * width, width), xavier,
                                &layer->in_proj_weight, err);
    if (status == KILN_OK)
        layer->in_proj_weight->linear = true;
    return status == KILN_OK ? init_output(&own, width, &layer->in_proj_bias, &layer->out_proj, err)
                             : status;
}

/* Rows first ... first + n of the projection, in units of the width, split into heads. */
static KilnTensor *project(const KilnMultiHeadAttention *layer, KilnTensor *x, int64_t first,
                           int64_t n)
{
    KilnTensor *y = kiln_nn_linear_rows(layer->in_proj_weight, layer->in_proj_bias,
                                        first * layer->width, n * layer->width, x);

    return kiln_reshape(y, KILN_SHAPE(kiln_tensor_dim(x, 0), kiln_tensor_dim(x, 1), n, layer->heads,
                                      layer->width / layer->heads));
}

/* Self-attention projects in one product; cross-attention q alone, k and v together. */
static KilnTensor *multi_head(const KilnMultiHeadAttention *layer, KilnTensor *x,
                              KilnTensor *memory, KilnAttention attention)
{
    if (memory == NULL)
        return kiln_attention_packed(project(layer, x, 0, 3), attention);
    KilnTensor *kv = project(layer, memory, 1, 2);
    return kiln_attention(kiln_select(project(layer, x, 0, 1), 2, 0), kiln_select(kv, 2, 0),
                          kiln_select(kv, 2, 1), attention);
}

static KilnAttention attention_of(KilnAttentionMasks masks, double dropout, KilnDropoutState *drop)
{
    KilnAttention attention = { .causal = masks.causal,
                                .mask = masks.mask,
                                .padding = masks.padding };

    if (drop != NULL && dropout > 0.0) {
        attention.dropout = dropout;
        attention.key = drop->key;
        attention.stream = drop->stream++;
    }
    return attention;
}

/* The heads y [B, T, heads, width of one] side by side, projected. */
static KilnTensor *join_heads(const KilnLinear *out_proj, KilnTensor *y)
{
    return kiln_nn_linear(
        out_proj, kiln_reshape(y, KILN_SHAPE(kiln_tensor_dim(y, 0), kiln_tensor_dim(y, 1), -1)));
}

KilnTensor *kiln_nn_multi_head_attention(const KilnMultiHeadAttention *layer, KilnTensor *x,
                                         KilnTensor *memory, KilnAttentionMasks masks,
                                         KilnDropoutState *drop)
{
    KilnGraph *graph = kiln_tensor_graph(x);
    const char *before = kiln_layer_enter(x, layer->path);
    const KilnAttention attention = attention_of(masks, layer->dropout, drop);
    KilnTensor *y = join_heads(&layer->out_proj, multi_head(layer, x, memory, attention));

    kiln_graph_layer(graph, before);
    return y;
}

/* ---- A memory of another width ---------------------------------------------------- */

KilnStatus kiln_nn_cross_attention_init(KilnCrossAttention *layer, const KilnScope *scope,
                                        const char *name, int64_t width, int64_t heads,
                                        int64_t memory_width, double dropout, KilnError *err)
{
    KilnScope own = kiln_scope(scope, "%s", name);
    const KilnInit xavier = { .kind = KILN_INIT_XAVIER_UNIFORM, .a = 1.0 };
    const KilnShape square = KILN_SHAPE(width, width), wide = KILN_SHAPE(width, memory_width);

    *layer = (KilnCrossAttention) { .width = width, .heads = heads, .dropout = dropout };
    kiln_layer_path(layer->path, &own);
    KilnStatus status = check_heads(&own, width, heads, err);
    if (status == KILN_OK)
        status = kiln_param_new(&own, "q_proj_weight", square, xavier, &layer->q_proj_weight, err);
    if (status == KILN_OK)
        status = kiln_param_new(&own, "k_proj_weight", wide, xavier, &layer->k_proj_weight, err);
    if (status == KILN_OK)
        status = kiln_param_new(&own, "v_proj_weight", wide, xavier, &layer->v_proj_weight, err);
    if (status == KILN_OK)
        layer->q_proj_weight->linear = layer->k_proj_weight->linear = layer->v_proj_weight->linear =
            true;
    return status == KILN_OK ? init_output(&own, width, &layer->in_proj_bias, &layer->out_proj, err)
                             : status;
}

/* A projection of x, whose bias is part `part` of in_proj_bias, split into heads. */
static KilnTensor *project_cross(const KilnCrossAttention *layer, KilnTensor *x, KilnParam *weight,
                                 int64_t part)
{
    KilnGraph *graph = kiln_tensor_graph(x);
    KilnTensor *biases = kiln_param_tensor(layer->in_proj_bias, graph);
    KilnTensor *bias = kiln_narrow(biases, 0, part * layer->width, layer->width);
    KilnTensor *y = kiln_linear(x, kiln_param_tensor(weight, graph), bias);

    y = kiln_lora_add(weight, 0, layer->width, x, y);
    return kiln_reshape(y, KILN_SHAPE(kiln_tensor_dim(x, 0), kiln_tensor_dim(x, 1), layer->heads,
                                      layer->width / layer->heads));
}

KilnTensor *kiln_nn_cross_attention(const KilnCrossAttention *layer, KilnTensor *x,
                                    KilnTensor *memory, KilnAttentionMasks masks,
                                    KilnDropoutState *drop)
{
    KilnGraph *graph = kiln_tensor_graph(x);
    const char *before = kiln_layer_enter(x, layer->path);
    const KilnAttention attention = attention_of(masks, layer->dropout, drop);
    KilnTensor *y = kiln_attention(project_cross(layer, x, layer->q_proj_weight, 0),
                                   project_cross(layer, memory, layer->k_proj_weight, 1),
                                   project_cross(layer, memory, layer->v_proj_weight, 2),
                                   attention);

    y = join_heads(&layer->out_proj, y);
    kiln_graph_layer(graph, before);
    return y;
}
