/* Transformer layers and stacks of them. */
#include <inttypes.h>
#include <stdio.h>

#include "nn/layer.h"

/* ---- One layer ----------------------------------------------------------------- */

/* How a decoder layer looks at a memory of another width; `attention` NULL: it has none of that. */
typedef struct Cross {
    KilnCrossAttention *attention;
    int64_t memory_width;
} Cross;

static const Cross no_cross;

static KilnStatus attention_init(KilnTransformerLayer *layer, const KilnScope *own, Cross cross,
                                 KilnError *err)
{
    const KilnTransformerSpec *spec = &layer->spec;
    KilnStatus status = kiln_nn_multi_head_attention_init(
        &layer->self_attn, own, "self_attn", spec->width, spec->heads, spec->dropout, err);

    if (status == KILN_OK && cross.attention != NULL)
        return kiln_nn_cross_attention_init(cross.attention, own, "multihead_attn", spec->width,
                                            spec->heads, cross.memory_width, spec->dropout, err);
    if (status == KILN_OK && layer->decoder)
        status = kiln_nn_multi_head_attention_init(&layer->multihead_attn, own, "multihead_attn",
                                                   spec->width, spec->heads, spec->dropout, err);
    return status;
}

static KilnStatus layer_init(KilnTransformerLayer *layer, const KilnScope *scope, const char *name,
                             KilnTransformerSpec spec, bool decoder, Cross cross, KilnError *err)
{
    KilnScope own = kiln_scope(scope, "%s", name);
    const int64_t width = spec.width, inner = spec.feedforward != 0 ? spec.feedforward : 2048;

    *layer = (KilnTransformerLayer) { .spec = spec, .decoder = decoder };
    kiln_layer_path(layer->path, &own);
    KilnStatus status = attention_init(layer, &own, cross, err);
    if (status == KILN_OK)
        status = kiln_nn_linear_init(&layer->linear1, &own, "linear1", width, inner, true, err);
    if (status == KILN_OK)
        status = kiln_nn_linear_init(&layer->linear2, &own, "linear2", inner, width, true, err);
    if (status == KILN_OK)
        status = kiln_nn_layer_norm_init(&layer->norm1, &own, "norm1", KILN_SHAPE(width), true,
                                         err);
    if (status == KILN_OK)
        status = kiln_nn_layer_norm_init(&layer->norm2, &own, "norm2", KILN_SHAPE(width), true,
                                         err);
    if (status == KILN_OK && decoder)
        status = kiln_nn_layer_norm_init(&layer->norm3, &own, "norm3", KILN_SHAPE(width), true,
                                         err);
    return status;
}

KilnStatus kiln_nn_transformer_encoder_layer_init(KilnTransformerLayer *layer,
                                                  const KilnScope *scope, const char *name,
                                                  KilnTransformerSpec spec, KilnError *err)
{
    return layer_init(layer, scope, name, spec, false, no_cross, err);
}

KilnStatus kiln_nn_transformer_decoder_layer_init(KilnTransformerLayer *layer,
                                                  const KilnScope *scope, const char *name,
                                                  KilnTransformerSpec spec, KilnError *err)
{
    return layer_init(layer, scope, name, spec, true, no_cross, err);
}

static KilnTensor *feed_forward(const KilnTransformerLayer *layer, KilnTensor *x,
                                KilnDropoutState *drop)
{
    KilnTensor *y = kiln_nn_linear(&layer->linear1, x);

    y = layer->spec.gelu ? kiln_gelu(y, KILN_GELU_ERF) : kiln_relu(y);
    return kiln_nn_linear(&layer->linear2, kiln_nn_dropout(y, layer->spec.dropout, drop));
}

/* Inputs of a layer's parts. */
typedef struct Inputs {
    KilnTensor *memory;
    KilnAttentionMasks masks, memory_masks;
    KilnDropoutState *drop;
    const KilnCrossAttention *cross; /* NULL: the layer's multihead_attn */
} Inputs;

enum { PART_SELF, PART_MEMORY, PART_FEED };

static KilnTensor *run_part(const KilnTransformerLayer *layer, int part, KilnTensor *x,
                            const Inputs *in)
{
    if (part == PART_SELF)
        return kiln_nn_multi_head_attention(&layer->self_attn, x, NULL, in->masks, in->drop);
    if (part == PART_MEMORY && in->cross != NULL)
        return kiln_nn_cross_attention(in->cross, x, in->memory, in->memory_masks, in->drop);
    if (part == PART_MEMORY)
        return kiln_nn_multi_head_attention(&layer->multihead_attn, x, in->memory, in->memory_masks,
                                            in->drop);
    return feed_forward(layer, x, in->drop);
}

/* x + part(norm(x)), or norm(x + part(x)). */
static KilnTensor *residual(const KilnTransformerLayer *layer, int part, const KilnLayerNorm *norm,
                            KilnTensor *x, const Inputs *in)
{
    const bool first = layer->spec.norm_first;
    KilnTensor *y = run_part(layer, part, first ? kiln_nn_layer_norm(norm, x) : x, in);

    x = kiln_add(x, kiln_nn_dropout(y, layer->spec.dropout, in->drop));
    return first ? x : kiln_nn_layer_norm(norm, x);
}

static KilnTensor *run_layer(const KilnTransformerLayer *layer, KilnTensor *x, const Inputs *in)
{
    KilnGraph *graph = kiln_tensor_graph(x);
    const char *before = kiln_layer_enter(x, layer->path);

    x = residual(layer, PART_SELF, &layer->norm1, x, in);
    if (layer->decoder)
        x = residual(layer, PART_MEMORY, &layer->norm2, x, in);
    x = residual(layer, PART_FEED, layer->decoder ? &layer->norm3 : &layer->norm2, x, in);
    kiln_graph_layer(graph, before);
    return x;
}

KilnTensor *kiln_nn_transformer_layer(const KilnTransformerLayer *layer, KilnTensor *x,
                                      KilnTensor *memory, KilnAttentionMasks masks,
                                      KilnAttentionMasks memory_masks, KilnDropoutState *drop)
{
    const Inputs in = { memory, masks, memory_masks, drop, NULL };

    return run_layer(layer, x, &in);
}

/* ---- Stacks -------------------------------------------------------------------- */

static KilnStatus stack_init(KilnTransformer *stack, const KilnScope *scope, const char *name,
                             KilnTransformerSpec spec, int64_t layers, bool norm, bool decoder,
                             Cross cross, KilnError *err)
{
    KilnScope own = kiln_scope(scope, "%s", name);
    KilnStatus status = KILN_OK;

    *stack = (KilnTransformer) { .count = layers, .has_norm = norm };
    if (layers < 1 || layers > KILN_TRANSFORMER_MAX)
        return kiln_error_set(err, KILN_E_RANGE, "%s: 1 to %d layers are possible, got %" PRId64,
                              own.path, KILN_TRANSFORMER_MAX, layers);
    for (int64_t i = 0; status == KILN_OK && i < layers; i++) {
        const Cross of_layer = {
            .attention = cross.attention != NULL ? &cross.attention[i] : NULL,
            .memory_width = cross.memory_width,
        };
        char layer[32];

        snprintf(layer, sizeof(layer), "layers.%d", (int)i);
        status = layer_init(&stack->layers[i], &own, layer, spec, decoder, of_layer, err);
    }
    if (status == KILN_OK && norm)
        status = kiln_nn_layer_norm_init(&stack->norm, &own, "norm", KILN_SHAPE(spec.width), true,
                                         err);
    return status;
}

KilnStatus kiln_nn_transformer_encoder_init(KilnTransformer *stack, const KilnScope *scope,
                                            const char *name, KilnTransformerSpec spec,
                                            int64_t layers, bool norm, KilnError *err)
{
    return stack_init(stack, scope, name, spec, layers, norm, false, no_cross, err);
}

KilnStatus kiln_nn_transformer_decoder_init(KilnTransformer *stack, const KilnScope *scope,
                                            const char *name, KilnTransformerSpec spec,
                                            int64_t layers, bool norm, KilnError *err)
{
    return stack_init(stack, scope, name, spec, layers, norm, true, no_cross, err);
}

KilnTensor *kiln_nn_transformer(const KilnTransformer *stack, KilnTensor *x, KilnTensor *memory,
                                KilnAttentionMasks masks, KilnAttentionMasks memory_masks,
                                KilnDropoutState *drop)
{
    for (int64_t i = 0; i < stack->count; i++)
        x = kiln_nn_transformer_layer(&stack->layers[i], x, memory, masks, memory_masks, drop);
    return stack->has_norm ? kiln_nn_layer_norm(&stack->norm, x) : x;
}

KilnStatus kiln_nn_cross_decoder_init(KilnCrossDecoder *decoder, const KilnScope *scope,
                                      const char *name, KilnTransformerSpec spec,
                                      int64_t memory_width, int64_t layers, bool norm,
                                      KilnError *err)
{
    const Cross cross = { decoder->cross, memory_width };

    return stack_init(&decoder->stack, scope, name, spec, layers, norm, true, cross, err);
}

KilnTensor *kiln_nn_cross_decoder(const KilnCrossDecoder *decoder, KilnTensor *x,
                                  KilnTensor *memory, KilnAttentionMasks masks,
                                  KilnAttentionMasks memory_masks, KilnDropoutState *drop)
{
    const KilnTransformer *stack = &decoder->stack;
    Inputs in = { memory, masks, memory_masks, drop, NULL };

    for (int64_t i = 0; i < stack->count; i++) {
        in.cross = &decoder->cross[i];
        x = run_layer(&stack->layers[i], x, &in);
    }
    return stack->has_norm ? kiln_nn_layer_norm(&stack->norm, x) : x;
}
