/* Convolutions. */
#ifndef KILN_GRAPH_OPS_CONV_H
#define KILN_GRAPH_OPS_CONV_H

#include "kiln/ops.h"

#define KILN_OPS_CONV(X)                                                                           \
    X(conv2d)                                                                                      \
    X(conv2d_grad_input)                                                                           \
    X(conv2d_grad_weight)

/* conv2d              x, weight, bias? -> y               KilnConvAttrs
 * conv2d_grad_input   dy, weight -> dx                    KilnConvAttrs (with the input's shape)
 * conv2d_grad_weight  dy, x -> dweight                    KilnConvAttrs (with the weight's shape)
 */
typedef struct KilnConvAttrs {
    int64_t stride, padding;
    KilnShape shape;
} KilnConvAttrs;

#endif
