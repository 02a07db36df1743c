/* The GPT of tests and benchmarks, like class Gpt of bench/peer.py. */
#ifndef KILN_TESTS_NETS_GPT_H
#define KILN_TESTS_NETS_GPT_H

#include "kiln/nn.h"

enum { GPT_MAX_LAYERS = 96 };

typedef struct GptSpec {
    int64_t vocabulary, context, width, heads, layers;
} GptSpec;

typedef struct GptBlock {
    KilnLayerNorm ln_1, ln_2;
    KilnLinear attn, proj, fc, out;
} GptBlock;

typedef struct GptNet {
    GptSpec spec;
    KilnEmbedding wte, wpe;
    GptBlock blocks[GPT_MAX_LAYERS];
    KilnLayerNorm ln;
    KilnLinear head;
} GptNet;

KilnStatus gpt_net_init(GptNet *net, const KilnScope *scope, GptSpec spec, KilnError *err);

/* Scores of the next token: tokens i32 [B, T]. */
KilnTensor *gpt_net_scores(const GptNet *net, KilnTensor *tokens);

/* Mean cross-entropy of the next token: tokens and labels i32 [B, T]. */
KilnTensor *gpt_net_loss(const GptNet *net, KilnTensor *tokens, KilnTensor *labels);

#endif
