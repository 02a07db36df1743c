/* Pooling. */
#ifndef KILN_GRAPH_OPS_POOL_H
#define KILN_GRAPH_OPS_POOL_H

#include "kiln/ops.h"

#define KILN_OPS_POOL(X)                                                                           \
    X(max_pool2d)                                                                                  \
    X(max_pool2d_grad)                                                                             \
    X(avg_pool2d)                                                                                  \
    X(avg_pool2d_grad)

/* max_pool2d          x -> y, index u8|i32: number of the maximum in its window, row by row
 *                                                         KilnPoolAttrs
 * max_pool2d_grad     dy, index -> dx                     KilnPoolAttrs (with the input's shape)
 * avg_pool2d          x -> y                              KilnPoolAttrs (adaptive: y's shape)
 * avg_pool2d_grad     dy -> dx                            KilnPoolAttrs (with the input's shape) */
typedef struct KilnPoolAttrs {
    int64_t kernel[2], stride[2], padding[2]; /* of height, of width */
    int64_t adaptive;        /* 1: windows share the image among the places of y, kernel is 0 */
    int64_t exclude_padding; /* 1: averages over the elements of the image alone */
    int64_t ceil_mode;       /* 1: a last window may reach beyond the padding */
    KilnShape shape;
} KilnPoolAttrs;

/* Where the window of place i of y begins and ends in x along an axis (0 height, 1
 * width), cut to x; `count` is what an average divides by. */
typedef struct KilnWindow {
    int64_t begin, end, count;
} KilnWindow;

KilnWindow kiln_pool_window(const KilnPoolAttrs *attrs, int axis, int64_t x_size, int64_t y_size,
                            int64_t i);

#endif
