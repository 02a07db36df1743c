/* Attention of one head of keys and values. Compiled once per level. */
#ifndef KILN_BACKEND_CPU_ISA_ATTENTION_H
#define KILN_BACKEND_CPU_ISA_ATTENTION_H

#include <stdbool.h>
#include <stddef.h>

#include "backend/cpu/isa/vector_loops.h"
#include "graph/ops/sequence/attention.h"
#include "backend/cpu/level.h"

/* A tensor of queries, keys, values or their gradients: f32, or bf16. */
typedef struct KilnAttentionRows {
    void *data;
    bool bf16;
} KilnAttentionRows;

typedef struct KilnAttentionLoop {
    KilnAttentionSizes s;
    float scale;
    bool causal;
    KilnAttentionRows q, k, v, y; /* y: read by backward */
    float *lse;
    KilnAttentionRows dy, dq, dk, dv; /* backward */
    float *dscores;                   /* [B, H, Tq, Tk], or NULL */
    const float *lse_in;
    const float *mask_added; /* at most one of the two masks */
    const uint8_t *mask_seen;
    KilnMaskStrides mask;
    const uint8_t *padding; /* [B, Tk], or NULL */
    bool drops;
    KilnDropoutLoop dropout;
    /* Not NULL: q, k, v and y are bf16, and these compute the products. */
    const struct KilnTileOps *tiles;
} KilnAttentionLoop;

typedef struct KilnAttentionLoops {
    /* Floats of scratch per head. */
    int64_t (*scratch)(const KilnAttentionLoop *loop, bool backward);
    /* All query heads of key and value head g, in batch element b. */
    void (*forward)(const KilnAttentionLoop *loop, float *scratch, int64_t b, int64_t g);
    void (*backward)(const KilnAttentionLoop *loop, float *scratch, int64_t b, int64_t g);
} KilnAttentionLoops;

KILN_DECLARE_LOOPS(KilnAttentionLoops, attention_loops);

#endif
