/* Probabilities, and the losses that have their own kernels. */
#ifndef KILN_GRAPH_OPS_TRAINING_LOSS_H
#define KILN_GRAPH_OPS_TRAINING_LOSS_H

#include "kiln/ops.h"

#define KILN_OPS_LOSS(X)                                                                           \
    X(softmax)                                                                                     \
    X(softmax_grad)                                                                                \
    X(log_softmax)                                                                                 \
    X(log_softmax_grad)                                                                            \
    X(nll)                                                                                         \
    X(nll_grad)                                                                                    \
    X(cross_entropy)                                                                               \
    X(cross_entropy_grad)                                                                          \
    X(cross_entropy_soft)                                                                          \
    X(cross_entropy_soft_grad)

/* All work on the last axis, the classes C; "rows" are all other axes.
 * softmax, log_softmax    x -> y;   their gradients: dy, y -> dx
 * nll                     log_probs, labels, weight -> loss            KilnLabelAttrs
 * nll_grad                dloss, labels, weight -> dlog_probs          KilnLabelAttrs
 * cross_entropy           logits, labels, weight -> loss, probabilities       KilnLabelAttrs
 * cross_entropy_grad      dloss, probabilities, labels, weight -> dlogits     KilnLabelAttrs
 * cross_entropy_soft      logits, targets, weight -> loss, probabilities      KilnLabelAttrs
 * cross_entropy_soft_grad dloss, probabilities, targets, weight -> dlogits    KilnLabelAttrs
 *
 * labels are i32 of the rows' shape, weight (optional) [C], targets shaped as logits; loss is a
 * scalar, or has the rows' shape without reduction. */
typedef struct KilnLabelAttrs {
    double label_smoothing;
    int64_t ignore_index;
    int64_t reduction; /* KilnReduction */
    int64_t classes;
} KilnLabelAttrs;

#endif
