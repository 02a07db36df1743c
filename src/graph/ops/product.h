/* Matrix products. */
#ifndef KILN_GRAPH_OPS_PRODUCT_H
#define KILN_GRAPH_OPS_PRODUCT_H

#include "kiln/ops.h"

#define KILN_OPS_PRODUCT(X)                                                                        \
    X(matmul)                                                                                      \
    X(linear)

/* matmul              a, b -> y                           KilnMatmulAttrs
 * linear              x, weight, bias? -> y */
typedef struct KilnMatmulAttrs {
    int32_t transpose_a, transpose_b;
} KilnMatmulAttrs;

#endif
