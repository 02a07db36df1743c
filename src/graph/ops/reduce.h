/* Reductions over axes. */
#ifndef KILN_GRAPH_OPS_REDUCE_H
#define KILN_GRAPH_OPS_REDUCE_H

#include "kiln/ops.h"

#define KILN_OPS_REDUCE(X)                                                                         \
    X(sum)                                                                                         \
    X(mean)                                                                                        \
    X(max)                                                                                         \
    X(min)                                                                                         \
    X(logsumexp)                                                                                   \
    X(argmax)                                                                                      \
    X(prod)                                                                                        \
    X(prod_grad)

/* sum, mean, max, min, logsumexp   x -> y                 KilnReduceAttrs
 * argmax                           x -> i32               KilnReduceAttrs, one axis
 * prod                             x [..., n] -> [...]
 * prod_grad                        dy [...], x [..., n] -> dx */
typedef struct KilnReduceAttrs {
    uint32_t axes; /* bit i: axis i is reduced */
    int32_t keep;  /* 1: as an axis of size 1; 0: removed */
} KilnReduceAttrs;

#endif
