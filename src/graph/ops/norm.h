/* Normalization. */
#ifndef KILN_GRAPH_OPS_NORM_H
#define KILN_GRAPH_OPS_NORM_H

#include "kiln/ops.h"

#define KILN_OPS_NORM(X)                                                                           \
    X(batch_norm)                                                                                  \
    X(batch_norm_grad)                                                                             \
    X(batch_norm_eval)

/* batch_norm          x, weight, bias, more? -> y, mean, var     KilnBatchNormAttrs (biased var)
 * batch_norm_grad     dy, x, weight, mean, var, bias?, y?, more_dy? -> dx, dweight, dbias, masked?
 *                                                                KilnBatchNormAttrs
 * batch_norm_eval     x, weight, bias, mean, var, more? -> y     KilnBatchNormAttrs
 *
 * What is marked with ? and the relu only the pass fuse_norm gives: y is then relu(norm(x) + more)
 * (without relu when it is 0), and its gradient dy + more_dy, which counts where y > 0; y, where
 * it is left out, is found again from x and the bias. `masked` is the gradient as it counts, which
 * is that of `more`. */
typedef struct KilnBatchNormAttrs {
    double eps;
    int64_t relu;
} KilnBatchNormAttrs;

#endif
