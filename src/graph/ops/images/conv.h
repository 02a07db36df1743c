/* Convolutions. */
#ifndef KILN_GRAPH_OPS_IMAGES_CONV_H
#define KILN_GRAPH_OPS_IMAGES_CONV_H

#include "graph/map.h"
#include "kiln/ops.h"

#define KILN_OPS_CONV(X)                                                                           \
    X(conv2d)                                                                                      \
    X(conv2d_grad_input)                                                                           \
    X(conv2d_grad_weight)                                                                          \
    X(conv_transpose2d)

/* conv2d              x, weight, bias?, more? -> y        KilnConvAttrs
 * conv2d_grad_input   dy, weight -> dx                    KilnConvAttrs (with the input's shape)
 * conv2d_grad_weight  dy, x -> dweight                    KilnConvAttrs (with the weight's shape)
 * conv_transpose2d    x, weight, bias? -> y               KilnConvAttrs (with the output's shape):
 *                     conv2d_grad_input, and the bias
 *
 * Only the pass fold_norm sets `more` and the activation, a step that reads one value:
 * y = activation(conv(x) + more), without activation if its code is KILN_MAP_NUMBER. */
typedef struct KilnConvAttrs {
    int64_t stride[2], padding[2], dilation[2]; /* of height, of width */
    int64_t groups;
    KilnMapStep activation;
    KilnShape shape;
} KilnConvAttrs;

/* Whether element k of the kernel meets a pixel of the image, of `pixels` along the axis (0 height,
 * 1 width), at one of `places`; else it meets padding alone. */
bool kiln_conv_element_meets(const KilnConvAttrs *attrs, int axis, int64_t k, int64_t pixels,
                             int64_t places);

#endif
