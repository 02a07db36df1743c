/* Resizes images by weighted sums of a window of each axis: bicubic, and with anti-aliasing. */
#ifndef KILN_GRAPH_OPS_IMAGES_RESIZE_H
#define KILN_GRAPH_OPS_IMAGES_RESIZE_H

#include "kiln/ops.h"

#define KILN_OPS_RESIZE(X) X(resize)

typedef enum KilnResizeMode {
    KILN_RESIZE_BICUBIC,
    KILN_RESIZE_BICUBIC_CORNERS, /* with aligned corner pixels */
    KILN_RESIZE_BILINEAR_AREA,   /* with anti-aliasing */
    KILN_RESIZE_BICUBIC_AREA
} KilnResizeMode;

/* resize              x -> y, one axis of it in another size; `back`: the gradient, dy -> dx
 *                                                          KilnResizeAttrs */
typedef struct KilnResizeAttrs {
    int64_t axis, in, out;
    int64_t mode; /* KilnResizeMode */
    int64_t back;
} KilnResizeAttrs;

/* Most elements of x in an element of y. */
int64_t kiln_resize_window(const KilnResizeAttrs *attrs);
/* Element i of y is the sum of weights[k] times x[first + k], for k below *ret_n; returns first.
 * There is room for kiln_resize_window weights. */
int64_t kiln_resize_weights(const KilnResizeAttrs *attrs, int64_t i, double *weights,
                            int64_t *ret_n);

#endif
