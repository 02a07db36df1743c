/* Pooling. */
#ifndef KILN_GRAPH_OPS_POOL_H
#define KILN_GRAPH_OPS_POOL_H

#include "kiln/ops.h"

#define KILN_OPS_POOL(X)                                                                           \
    X(max_pool2d)                                                                                  \
    X(max_pool2d_grad)                                                                             \
    X(global_avg_pool2d)                                                                           \
    X(global_avg_pool2d_grad)

/* max_pool2d          x -> y, index u8|i32: place of the maximum, in the backend's own code
 *                                                         KilnPoolAttrs
 * max_pool2d_grad     dy, index -> dx                     KilnPoolAttrs (with the input's shape)
 * global_avg_pool2d   x -> y;   _grad: dy -> dx           KilnShapeAttrs (the input's shape) */
typedef struct KilnPoolAttrs {
    int64_t kernel, stride, padding;
    KilnShape shape;
} KilnPoolAttrs;

#endif
