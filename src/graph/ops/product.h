/* Matrix products. */
#ifndef KILN_GRAPH_OPS_PRODUCT_H
#define KILN_GRAPH_OPS_PRODUCT_H

#include "kiln/ops.h"

#define KILN_OPS_PRODUCT(X)                                                                        \
    X(matmul)                                                                                      \
    X(linear)

/* matmul              a [..., m, k], b [..., k, n] -> y   KilnMatmulAttrs
 * linear              x [..., in], weight, bias? -> y [..., out]
 *
 * The leading batch axes broadcast as in PyTorch. With `summed` the result has the axes `batch`
 * instead, which broadcast to those: products that share a matrix of the result are added. That is
 * the gradient of an input that was broadcast. */
typedef struct KilnMatmulAttrs {
    int32_t transpose_a, transpose_b, summed, zero;
    KilnShape batch;
} KilnMatmulAttrs;

/* A batched matrix product: one product for each index of the broadcast batch axes. */
typedef struct KilnBmm {
    KilnShape axes;                        /* the broadcast axes */
    int64_t count;                         /* products */
    int64_t m, n, k;                       /* of each */
    int64_t step_a[KILN_MAX_RANK];         /* per axis: matrices between neighbours, */
    int64_t step_b[KILN_MAX_RANK];         /* 0 where the input is broadcast */
    int64_t step_y[KILN_MAX_RANK];         /* or where the result is summed */
    bool transpose_a, transpose_b, add_up; /* add_up: some products share a matrix of y */
} KilnBmm;

KilnBmm kiln_bmm_of(const KilnMatmulAttrs *attrs, const KilnShape *a, const KilnShape *b,
                    const KilnShape *y);
/* Index of a matrix for product number i; `steps` is one of the batch's. */
int64_t kiln_bmm_at(const KilnBmm *batch, const int64_t *steps, int64_t i);

#endif
