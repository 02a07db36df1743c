/* Multi-head attention. */
#include <inttypes.h>

#include "nn/layer.h"

KilnStatus kiln_nn_multi_head_attention_init(KilnMultiHeadAttention *layer, const KilnScope *scope,
                                             const char *name, int64_t width, int64_t heads,
                                             double dropout, KilnError *err)
{
    KilnScope own = kiln_scope(scope, "%s", name);
    const KilnInit xavier = { .kind = KILN_INIT_XAVIER_UNIFORM, .a = 1.0 };
    const KilnInit zero = { .kind = KILN_INIT_CONSTANT };

    *layer = (KilnMultiHeadAttention) { .width = width, .heads = heads, .dropout = dropout };
    kiln_layer_path(layer->path, &own);
    if (heads < 1 || width < 1 || width % heads != 0)
        return kiln_error_set(
            err, KILN_E_RANGE,
            "%s: the width must be a multiple of the number of heads, got %" PRId64 " and %" PRId64,
            own.path, width, heads);
    KilnStatus status = kiln_param_new(&own, "in_proj_weight", KILN_SHAPE(3 * width, width), xavier,
                                       &layer->in_proj_weight, err);
    if (status == KILN_OK)
        status = kiln_param_new(&own, "in_proj_bias", KILN_SHAPE(3 * width), zero,
                                &layer->in_proj_bias, err);
    if (status == KILN_OK)
        status = kiln_nn_linear_init(&layer->out_proj, &own, "out_proj", width, width, true, err);
    if (status == KILN_OK)
        kiln_param_set_init(layer->out_proj.bias, zero);
    return status;
}

/* Rows first ... first + n of the projection, in units of the width, split into heads. */
static KilnTensor *project(const KilnMultiHeadAttention *layer, KilnTensor *x, int64_t first,
                           int64_t n)
{
    KilnGraph *graph = kiln_tensor_graph(x);
    KilnTensor *weight = kiln_param_tensor(layer->in_proj_weight, graph);
    KilnTensor *bias = kiln_param_tensor(layer->in_proj_bias, graph);

    if (n < 3) {
        weight = kiln_narrow(weight, 0, first * layer->width, n * layer->width);
        bias = kiln_narrow(bias, 0, first * layer->width, n * layer->width);
    }
    KilnTensor *y = kiln_linear(x, weight, bias);
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

KilnTensor *kiln_nn_multi_head_attention(const KilnMultiHeadAttention *layer, KilnTensor *x,
                                         KilnTensor *memory, KilnAttentionMasks masks,
                                         KilnDropoutState *drop)
{
    KilnGraph *graph = kiln_tensor_graph(x);
    const char *before = kiln_layer_enter(x, layer->path);
    KilnAttention attention = { .causal = masks.causal,
                                .mask = masks.mask,
                                .padding = masks.padding };

    if (drop != NULL && layer->dropout > 0.0) {
        attention.dropout = layer->dropout;
        attention.key = drop->key;
        attention.stream = drop->stream++;
    }
    KilnTensor *y = multi_head(layer, x, memory, attention);

    y = kiln_reshape(y, KILN_SHAPE(kiln_tensor_dim(x, 0), kiln_tensor_dim(x, 1), layer->width));
    y = kiln_nn_linear(&layer->out_proj, y);
    kiln_graph_layer(graph, before);
    return y;
}
