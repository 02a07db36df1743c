/* Operations that select or scatter elements by index, or count along an axis. */
#ifndef KILN_GRAPH_OPS_SELECT_INDEX_H
#define KILN_GRAPH_OPS_SELECT_INDEX_H

#include "kiln/ops.h"

#define KILN_OPS_INDEX(X)                                                                          \
    X(gather)                                                                                      \
    X(scatter_add)                                                                                 \
    X(one_hot)                                                                                     \
    X(arange)                                                                                      \
    X(cumsum)

/* gather              x, index i32 -> y of index's shape; any type of x   KilnAxisAttrs
 * scatter_add         x, index i32, src -> y of x's shape                 KilnAxisAttrs
 * one_hot             index i32 [...] -> float [..., size]                KilnAxisAttrs
 * arange              -> y [size]; i32 or float                           KilnArangeAttrs
 * cumsum              x -> y; reverse sums from the end                   KilnCumsumAttrs */
typedef struct KilnAxisAttrs {
    int64_t axis, size;
} KilnAxisAttrs;
typedef struct KilnArangeAttrs {
    double start, step;
    int64_t size;
    KilnDType dtype;
    int32_t zero;
} KilnArangeAttrs;
typedef struct KilnCumsumAttrs {
    int64_t axis, reverse;
} KilnCumsumAttrs;

#endif
