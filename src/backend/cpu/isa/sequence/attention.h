/* Attention of one head of keys and values. Compiled once per level. */
#ifndef KILN_BACKEND_CPU_ISA_SEQUENCE_ATTENTION_H
#define KILN_BACKEND_CPU_ISA_SEQUENCE_ATTENTION_H

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
    const uint8_t *padding;   /* [B, Tk], or NULL */
    const int32_t *positions; /* kiln_attention_first()'s, or NULL */
    int64_t positions_stride;
    bool drops;
    KilnDropoutLoop dropout;
    /* Not NULL: q, k, v and y are bf16, and these compute the products. */
    const struct KilnTileOps *tiles;
} KilnAttentionLoop;

/* Work on a head of keys and values. A block is KILN_ATTENTION_BLOCK rows; blocks of queries are
 * those of all query heads, in order. Every sum is made in the same order in any part. */
typedef struct KilnAttentionPart {
    int64_t b, g;                /* batch element, head of keys and values */
    int64_t query, query_end;    /* blocks */
    int64_t key, key_end;        /* blocks; backward */
    bool query_grads, key_grads; /* backward: what is computed; of all keys, or of all queries */
} KilnAttentionPart;

typedef struct KilnAttentionLoops {
    /* Floats of scratch per part. */
    int64_t (*scratch)(const KilnAttentionLoop *loop, bool backward);
    void (*forward)(const KilnAttentionLoop *loop, float *scratch, const KilnAttentionPart *part);
    void (*backward)(const KilnAttentionLoop *loop, float *scratch, const KilnAttentionPart *part);
} KilnAttentionLoops;

enum { KILN_ATTENTION_BLOCK = 64 /* queries, and keys */ };

static inline int64_t kiln_attention_blocks(int64_t rows)
{
    return (rows + KILN_ATTENTION_BLOCK - 1) / KILN_ATTENTION_BLOCK;
}

KILN_DECLARE_LOOPS(KilnAttentionLoops, attention_loops);

#endif
