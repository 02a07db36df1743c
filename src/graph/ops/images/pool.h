/* Pooling. */
#ifndef KILN_GRAPH_OPS_IMAGES_POOL_H
#define KILN_GRAPH_OPS_IMAGES_POOL_H

#include "kiln/ops.h"

#define KILN_OPS_POOL(X)                                                                           \
    X(max_pool2d)                                                                                  \
    X(max_pool2d_grad)                                                                             \
    X(avg_pool2d)                                                                                  \
    X(avg_pool2d_grad)

/* max_pool2d          x -> y, index u8|i32: index of the maximum within its window, row by row
 *                                                         KilnPoolAttrs
 * max_pool2d_grad     dy, index -> dx                     KilnPoolAttrs (with the input's shape)
 * avg_pool2d          x -> y                              KilnPoolAttrs (adaptive: y's shape)
 * avg_pool2d_grad     dy -> dx                            KilnPoolAttrs (with the input's shape) */
typedef struct KilnPoolAttrs {
    int64_t kernel[2], stride[2], padding[2]; /* of height, of width */
    int64_t adaptive;        /* 1: y's pixels divide the image between them, kernel is 0 */
    int64_t exclude_padding; /* 1: average only over elements inside the image */
    int64_t ceil_mode;       /* 1: a last window may extend past the padding */
    KilnShape shape;
} KilnPoolAttrs;

/* Begin and end in x of the window of index i of y along an axis (0 height, 1 width), clipped to x;
 * `count` is the divisor of the average. */
typedef struct KilnWindow {
    int64_t begin, end, count;
} KilnWindow;

KilnWindow kiln_pool_window(const KilnPoolAttrs *attrs, int axis, int64_t x_size, int64_t y_size,
                            int64_t i);

#endif
