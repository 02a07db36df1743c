/* Padding with the tensor's own edge values. */
#ifndef KILN_GRAPH_OPS_IMAGES_PADDING_H
#define KILN_GRAPH_OPS_IMAGES_PADDING_H

#include "kiln/ops.h"

#define KILN_OPS_PADDING(X)                                                                        \
    X(pad_axis)                                                                                    \
    X(pad_axis_grad)

typedef enum KilnPadMode {
    KILN_PAD_REFLECT,  /* 2 1 | 0 1 2 | 1 0 */
    KILN_PAD_REPLICATE /* 0 0 | 0 1 2 | 2 2 */
} KilnPadMode;

/* pad_axis            x -> y, longer along one axis; any type of x    KilnPadAttrs
 * pad_axis_grad       dy -> dx                                        KilnPadAttrs */
typedef struct KilnPadAttrs {
    int64_t axis, before, after;
    int64_t mode; /* KilnPadMode */
} KilnPadAttrs;

/* The index in x, along an axis of `size`, that index i of y copies. */
int64_t kiln_pad_source(const KilnPadAttrs *attrs, int64_t size, int64_t i);

#endif
