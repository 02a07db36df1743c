/* Probabilities and losses. */
#ifndef KILN_GRAPH_OPS_LOSS_H
#define KILN_GRAPH_OPS_LOSS_H

#include "kiln/ops.h"

#define KILN_OPS_LOSS(X)                                                                           \
    X(softmax)                                                                                     \
    X(softmax_grad)                                                                                \
    X(cross_entropy)                                                                               \
    X(cross_entropy_grad)

/* softmax             x -> y;   softmax_grad: dy, y -> dx
 * cross_entropy       logits, labels -> loss, probabilities            KilnCrossEntropyAttrs
 * cross_entropy_grad  dloss scalar, probabilities, labels -> dlogits   KilnCrossEntropyAttrs */
typedef struct KilnCrossEntropyAttrs {
    double label_smoothing;
} KilnCrossEntropyAttrs;

#endif
