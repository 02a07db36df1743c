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
 * The axes before the matrices' are broadcast against each other as PyTorch does.
 * With `summed` the result has the axes `batch` instead, which broadcast to those:
 * products that meet in one matrix of the result are added up. That is the
 * gradient of an input that was broadcast. */
typedef struct KilnMatmulAttrs {
    int32_t transpose_a, transpose_b, summed, zero;
    KilnShape batch;
} KilnMatmulAttrs;

/* A batched matrix product: the products of a matmul, one for each place in the broadcast
 * axes. */
typedef struct KilnBmm {
    KilnShape axes;                        /* the broadcast axes */
    int64_t count;                         /* products */
    int64_t m, n, k;                       /* of each */
    int64_t step_a[KILN_MAX_RANK];         /* per axis: matrices from one place to the next, */
    int64_t step_b[KILN_MAX_RANK];         /* 0 where the input is broadcast */
    int64_t step_y[KILN_MAX_RANK];         /* or the result is summed */
    bool transpose_a, transpose_b, add_up; /* add_up: some products share a matrix of y */
} KilnBmm;

KilnBmm kiln_bmm_of(const KilnMatmulAttrs *attrs, const KilnShape *a, const KilnShape *b,
                    const KilnShape *y);
/* Index of a matrix, for product number i; steps are one of the batch's. */
int64_t kiln_bmm_at(const KilnBmm *batch, const int64_t *steps, int64_t i);

#endif
