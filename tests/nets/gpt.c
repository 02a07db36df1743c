#include "tests/nets/gpt.h"

static KilnStatus gpt_block_init(GptBlock *block, const KilnScope *scope, int64_t width,
                                 KilnError *err)
{
    KilnStatus status = kiln_nn_layer_norm_init(&block->ln_1, scope, "ln_1", KILN_SHAPE(width),
                                                true, err);

    if (status == KILN_OK)
        status = kiln_nn_layer_norm_init(&block->ln_2, scope, "ln_2", KILN_SHAPE(width), true, err);
    if (status == KILN_OK)
        status = kiln_nn_linear_init(&block->attn, scope, "attn", width, 3 * width, true, err);
    if (status == KILN_OK)
        status = kiln_nn_linear_init(&block->proj, scope, "proj", width, width, true, err);
    if (status == KILN_OK)
        status = kiln_nn_linear_init(&block->fc, scope, "fc", width, 4 * width, true, err);
    if (status == KILN_OK)
        status = kiln_nn_linear_init(&block->out, scope, "out", 4 * width, width, true, err);
    return status;
}

KilnStatus gpt_net_init(GptNet *net, const KilnScope *scope, GptSpec spec, KilnError *err)
{
    const int64_t width = spec.width;
    KilnStatus status = kiln_nn_embedding_init(&net->wte, scope, "wte", spec.vocabulary, width, -1,
                                               err);

    net->spec = spec;
    if (status == KILN_OK)
        status = kiln_nn_embedding_init(&net->wpe, scope, "wpe", spec.context, width, -1, err);
    for (int64_t i = 0; status == KILN_OK && i < spec.layers; i++) {
        const KilnScope block = kiln_scope(scope, "blocks.%d", (int)i);

        status = gpt_block_init(&net->blocks[i], &block, width, err);
    }
    if (status == KILN_OK)
        status = kiln_nn_layer_norm_init(&net->ln, scope, "ln", KILN_SHAPE(width), true, err);
    if (status == KILN_OK)
        status = kiln_nn_linear_init(&net->head, scope, "head", width, spec.vocabulary, false, err);
    return status;
}

static KilnTensor *gpt_block(const GptBlock *block, KilnTensor *x, int64_t heads)
{
    const int64_t batch = kiln_tensor_dim(x, 0), steps = kiln_tensor_dim(x, 1);
    const int64_t width = kiln_tensor_dim(x, 2);
    KilnTensor *qkv = kiln_nn_linear(&block->attn, kiln_nn_layer_norm(&block->ln_1, x));

    qkv = kiln_reshape(qkv, KILN_SHAPE(batch, steps, 3, heads, width / heads));
    KilnTensor *y = kiln_attention_packed(qkv, (KilnAttention) { .causal = true });
    y = kiln_reshape(y, KILN_SHAPE(batch, steps, width));
    x = kiln_add(x, kiln_nn_linear(&block->proj, y));
    y = kiln_nn_linear(&block->fc, kiln_nn_layer_norm(&block->ln_2, x));
    return kiln_add(x, kiln_nn_linear(&block->out, kiln_gelu(y, KILN_GELU_ERF)));
}

KilnTensor *gpt_net_scores(const GptNet *net, KilnTensor *tokens)
{
    KilnGraph *graph = kiln_tensor_graph(tokens);
    const int64_t steps = kiln_tensor_dim(tokens, 1);
    KilnTensor *places = kiln_arange(graph, KILN_I32, 0.0, 1.0, steps);
    KilnTensor *x = kiln_add(kiln_nn_embedding(&net->wte, tokens),
                             kiln_nn_embedding(&net->wpe, places));

    for (int64_t i = 0; i < net->spec.layers; i++)
        x = gpt_block(&net->blocks[i], x, net->spec.heads);
    return kiln_nn_linear(&net->head, kiln_nn_layer_norm(&net->ln, x));
}

KilnTensor *gpt_net_loss(const GptNet *net, KilnTensor *tokens, KilnTensor *labels)
{
    return kiln_cross_entropy(gpt_net_scores(net, tokens), labels, (KilnCrossEntropy) { 0 });
}
