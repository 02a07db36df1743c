/* Shared by the loop over a head's blocks (isa/sequence/attention.c) and the products of blocks:
 * with vectors (isa/sequence/attention_vectors.h), in bf16 (bf16/attention.c), or of one query
 * (isa/sequence/attention_one.h). */
#ifndef KILN_BACKEND_CPU_ISA_SEQUENCE_ATTENTION_HEAD_H
#define KILN_BACKEND_CPU_ISA_SEQUENCE_ATTENTION_HEAD_H

#include "backend/cpu/isa/sequence/attention.h"

/* Sums are rows of `width` floats. The products pack factors their own way into the scratch that
 * the loop allocates: width times keys or queries values each. */
typedef struct KilnAttentionHead {
    const KilnAttentionLoop *loop;
    const struct KilnAttentionProducts *products;
    const KilnAttentionPart *part;
    int64_t b, h;        /* batch element, head of q */
    int64_t width, keys; /* multiples of 32 and of a block */
    float *p, *dp;       /* [block, block]: scores, then weights; and their gradients */
    float *y;            /* [block, width]; backward: dq, without scale */
    float *dk, *dv;      /* [keys, width]; dk without scale */
    float *top, *sum;    /* [block]: of a row's scores; backward: lse, dy·y */
    /* Packed for sums over the width or, `across`, over keys or queries. */
    void *k, *v, *k_across; /* forward: v across */
    void *q, *q_across, *dy, *dy_across;
    void *p_packed; /* of tiles */
} KilnAttentionHead;

typedef struct KilnAttentionProducts {
    /* Packs keys and values of head g. */
    void (*pack_head)(const KilnAttentionHead *head, int64_t g, bool backward);
    /* Packs queries i0 ... i0 + rows - 1; backward also dy. */
    void (*pack_queries)(const KilnAttentionHead *head, int64_t i0, int64_t rows, bool backward);
    /* p = q · kᵀ, of `rows` queries and the block of keys from j0 on */
    void (*scores)(const KilnAttentionHead *head, int64_t rows, int64_t j0);
    /* y += p · v */
    void (*weigh)(const KilnAttentionHead *head, int64_t rows, int64_t j0);
    /* dp = dy · vᵀ */
    void (*weights_grad)(const KilnAttentionHead *head, int64_t rows, int64_t j0);
    /* dv += pᵀ · dy, dk += dpᵀ · q */
    void (*key_grads)(const KilnAttentionHead *head, int64_t rows, int64_t j0);
    /* dq += dp · k */
    void (*query_grads)(const KilnAttentionHead *head, int64_t rows, int64_t j0);
} KilnAttentionProducts;

/* In bf16, by loop->tiles, between its begin and end. */
extern const KilnAttentionProducts kiln_attention_tiles;

/* Index of element 0 of row t of head h. */
static inline int64_t kiln_attention_at(KilnAttentionView view, int64_t b, int64_t h, int64_t t)
{
    return b * view.batch + h * view.head + t * view.row;
}

#endif
