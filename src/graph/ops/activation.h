/* Activations: elementwise operations between layers. */
#ifndef KILN_GRAPH_OPS_ACTIVATION_H
#define KILN_GRAPH_OPS_ACTIVATION_H

#include "kiln/ops.h"

#define KILN_OPS_ACTIVATION(X)                                                                     \
    X(relu)                                                                                        \
    X(leaky_relu)                                                                                  \
    X(elu)                                                                                         \
    X(gelu)                                                                                        \
    X(gelu_tanh)                                                                                   \
    X(silu)                                                                                        \
    X(hard_swish)                                                                                  \
    X(hard_sigmoid)                                                                                \
    X(softplus)                                                                                    \
    X(sigmoid)                                                                                     \
    X(tanh)                                                                                        \
    X(relu_grad)                                                                                   \
    X(leaky_relu_grad)                                                                             \
    X(elu_grad)                                                                                    \
    X(gelu_grad)                                                                                   \
    X(gelu_tanh_grad)                                                                              \
    X(silu_grad)                                                                                   \
    X(hard_swish_grad)                                                                             \
    X(hard_sigmoid_grad)                                                                           \
    X(softplus_grad)                                                                               \
    X(sigmoid_grad)                                                                                \
    X(tanh_grad)

/* x -> y; KilnNumberAttrs: leaky_relu's slope, elu's alpha, softplus' beta and threshold.
 * relu_grad, sigmoid_grad, tanh_grad   dy, y -> dx
 * other gradients                      dy, x -> dx, with the numbers of the operation */

#endif
