/* Elementwise operations. */
#ifndef KILN_GRAPH_OPS_ELEMENTWISE_H
#define KILN_GRAPH_OPS_ELEMENTWISE_H

#include "kiln/ops.h"

/* Those with a map rule; one kernel runs them all (backend/cpu/elementwise/map.c). */
#define KILN_OPS_MAPPED(X)                                                                         \
    X(add)                                                                                         \
    X(sub)                                                                                         \
    X(mul)                                                                                         \
    X(div)                                                                                         \
    X(scale)                                                                                       \
    X(shift)                                                                                       \
    X(minimum)                                                                                     \
    X(maximum)                                                                                     \
    X(clamp)                                                                                       \
    X(eq)                                                                                          \
    X(ne)                                                                                          \
    X(lt)                                                                                          \
    X(le)                                                                                          \
    X(where)                                                                                       \
    X(exp)                                                                                         \
    X(log)                                                                                         \
    X(log1p)                                                                                       \
    X(sqrt)                                                                                        \
    X(rsqrt)                                                                                       \
    X(reciprocal)                                                                                  \
    X(square)                                                                                      \
    X(pow)                                                                                         \
    X(power)                                                                                       \
    X(abs)                                                                                         \
    X(sign)                                                                                        \
    X(floor)                                                                                       \
    X(round)                                                                                       \
    X(erf)                                                                                         \
    X(sin)                                                                                         \
    X(cos)                                                                                         \
    X(atan2)                                                                                       \
    X(clamp_grad)                                                                                  \
    X(larger_grad)                                                                                 \
    X(to_float)                                                                                    \
    X(detach)                                                                                      \
    X(broadcast)                                                                                   \
    X(map)

#define KILN_OPS_ELEMENTWISE(X)                                                                    \
    KILN_OPS_MAPPED(X)                                                                             \
    X(fill)                                                                                        \
    X(equal)

/* add, sub, mul, div, minimum, maximum, eq, ne, lt, le
 *                     a, b -> y                           a, b, and more below, broadcast
 * atan2               y, x -> angle
 * power               base, exponent -> y
 * scale               x -> y                              KilnNumberAttrs: factor
 * shift               x -> y                              KilnNumberAttrs: summand
 * pow                 x -> y                              KilnNumberAttrs: exponent
 * clamp               x -> y                              KilnNumberAttrs: min, max
 * where               condition (float or u8), a, b -> y
 * exp ... cos         x -> y
 * clamp_grad          dy, x -> dx                         KilnNumberAttrs
 * larger_grad         dy, x, other -> dx  (dy where x > other, half of it where equal)
 * to_float            x i32 or u8 -> y
 * broadcast           x -> y of attrs' shape              KilnShapeAttrs
 * map                 any -> y                            KilnMap; made by fusion
 * fill                -> y (shape in attrs)               KilnFillAttrs
 * equal               a i32, b i32 -> float */
typedef struct KilnNumberAttrs {
    double p, q;
} KilnNumberAttrs;
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
