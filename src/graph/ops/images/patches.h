/* Patches of images, and largest elements of adaptive windows. */
#ifndef KILN_GRAPH_OPS_IMAGES_PATCHES_H
#define KILN_GRAPH_OPS_IMAGES_PATCHES_H

#include "kiln/ops.h"

#define KILN_OPS_PATCHES(X)                                                                        \
    X(unfold)                                                                                      \
    X(fold)                                                                                        \
    X(adaptive_max_pool2d)

/* unfold              x [N,H,W,C] -> y [N, places, C kh kw]          KilnUnfoldAttrs
 * fold                x [N, places, C kh kw] -> y [N,H,W,C]          KilnUnfoldAttrs
 * adaptive_max_pool2d x [N,H,W,C] -> y, i32 index in [H, W]          KilnShapeAttrs (y's) */
typedef struct KilnUnfoldAttrs {
    int64_t size[2], places[2]; /* of the image; of the kernel in it */
    int64_t kernel[2], stride[2], padding[2], dilation[2];
} KilnUnfoldAttrs;

#endif
