/* Reductions and broadcasts. */
#ifndef KILN_GRAPH_OPS_REDUCE_H
#define KILN_GRAPH_OPS_REDUCE_H

#include "kiln/ops.h"

#define KILN_OPS_REDUCE(X)                                                                         \
    X(sum)                                                                                         \
    X(mean)                                                                                        \
    X(broadcast)                                                                                   \
    X(sum_rows)                                                                                    \
    X(broadcast_rows)                                                                              \
    X(argmax)

/* sum, mean           x -> scalar
 * broadcast           scalar -> y of attrs' shape         KilnShapeAttrs
 * sum_rows            x [..., C] -> [C]
 * broadcast_rows      b [C] -> y of attrs' shape          KilnShapeAttrs
 * argmax              x [..., C] -> i32 [...] */

#endif
