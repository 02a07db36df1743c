/* Elementwise operations. */
#ifndef KILN_GRAPH_OPS_ELEMENTWISE_H
#define KILN_GRAPH_OPS_ELEMENTWISE_H

#include "kiln/ops.h"

#define KILN_OPS_ELEMENTWISE(X)                                                                    \
    X(add)                                                                                         \
    X(mul)                                                                                         \
    X(scale)                                                                                       \
    X(fill)                                                                                        \
    X(relu)                                                                                        \
    X(relu_grad)                                                                                   \
    X(equal)

/* add, mul            a, b -> y
 * scale               x -> y                              KilnScaleAttrs
 * fill                -> y (shape in attrs)               KilnFillAttrs
 * relu                x -> y
 * relu_grad           dy, y -> dx          (dx = dy where y > 0)
 * equal               a i32, b i32 -> float */
typedef struct KilnScaleAttrs {
    double factor, correction;
} KilnScaleAttrs;
typedef struct KilnFillAttrs {
    double value;
    KilnShape shape;
    KilnDType dtype;
    int32_t zero;
} KilnFillAttrs;

#endif
