/* Scaled dot-product attention. */
#ifndef KILN_GRAPH_OPS_SEQUENCE_ATTENTION_H
#define KILN_GRAPH_OPS_SEQUENCE_ATTENTION_H

#include "kiln/ops.h"

#define KILN_OPS_ATTENTION(X)                                                                      \
    X(attention)                                                                                   \
    X(attention_grad)                                                                              \
    X(attention_packed)                                                                            \
    X(attention_packed_grad)

/* attention              q, k, v, mask?, padding?, key?, positions? -> y, lse   KilnAttentionAttrs
 * attention_grad         dy, y, lse, q, k, v, mask?, padding?, key?, positions?
 *                        -> dq, dk, dv, dscores?
 * attention_packed       qkv, mask?, padding?, key?, positions? -> y, lse
 * attention_packed_grad  dy, y, lse, qkv, mask?, padding?, key?, positions? -> dqkv, dscores?
 *
 * lse [B, H, Tq] is the log of the sum of each row's exponentials, from which, with y, the gradient
 * recomputes a row of probabilities. For a fully masked row lse is -inf and y is 0. dscores [B, H,
 * Tq, Tk], the gradient of the scaled products, exists only where the added mask needs a gradient.
 */
typedef struct KilnAttentionAttrs {
    double scale, dropout;
    int64_t stream;
    int32_t causal, heads_first;
    int64_t mask_grad; /* of the gradients: whether dscores exists */
} KilnAttentionAttrs;

/* Sizes, and the position of element (b, h, t, 0) of each tensor: b * batch + h * head + t * row,
 * in elements. */
typedef struct KilnAttentionView {
    int64_t batch, head, row;
} KilnAttentionView;

typedef struct KilnAttentionSizes {
    int64_t batch, heads, kv_heads, queries, keys, width;
    KilnAttentionView q, k, v, y;
    int64_t k_offset, v_offset; /* packed: of k and v in qkv, in elements */
} KilnAttentionSizes;

/* Sizes for separate tensors (k not NULL) or packed ones. */
KilnAttentionSizes kiln_attention_sizes(const KilnShape *q, const KilnShape *k,
                                        const KilnAttentionAttrs *attrs);
/* Strides of a mask [.., Tq, Tk], in elements; axes of size 1 and absent ones have stride 0. */
typedef struct KilnMaskStrides {
    int64_t batch, head, row, column;
} KilnMaskStrides;
KilnMaskStrides kiln_attention_mask(const KilnShape *mask);
/* The first key that a query may see: row `query` less its position in its document. `stride`: of
 * sequences in positions, 0 where all share them. */
static inline int64_t kiln_attention_first(const int32_t *positions, int64_t stride, int64_t b,
                                           int64_t query)
{
    const int64_t first = query - positions[b * stride + query];

    return first > 0 ? first : 0;
}
/* Index of the first random number for a row of probabilities. Each row starts a new Philox block.
 */
int64_t kiln_attention_row(const KilnAttentionSizes *sizes, int64_t b, int64_t h, int64_t query);

#endif
