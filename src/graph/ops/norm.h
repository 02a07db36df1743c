/* Normalization. */
#ifndef KILN_GRAPH_OPS_NORM_H
#define KILN_GRAPH_OPS_NORM_H

#include "kiln/ops.h"

#define KILN_OPS_NORM(X)                                                                           \
    X(batch_norm)                                                                                  \
    X(batch_norm_grad)                                                                             \
    X(batch_norm_eval)                                                                             \
    X(layer_norm)                                                                                  \
    X(layer_norm_grad)                                                                             \
    X(rms_norm)                                                                                    \
    X(rms_norm_grad)                                                                               \
    X(group_norm)                                                                                  \
    X(group_norm_grad)

/* batch_norm          x, weight, bias, more? -> y, mean, var     KilnBatchNormAttrs (biased var)
 * batch_norm_grad     dy, x, weight, mean, var, bias?, y?, more_dy? -> dx, dweight, dbias, masked?
 *                                                                KilnBatchNormAttrs
 * batch_norm_eval     x, weight, bias, mean, var, more? -> y     KilnBatchNormAttrs
 *
 * Only the pass fuse_norm sets the relu and the inputs marked ?: then y = relu(norm(x) + more) (no
 * relu if it is 0), and the incoming gradient is dy + more_dy, masked to where y > 0. Without y, it
 * is recomputed from x and the bias. `masked` is the masked gradient, which is also that of `more`.
 */
typedef struct KilnBatchNormAttrs {
    double eps;
    int64_t relu;
} KilnBatchNormAttrs;

/* Each set of values has its own statistics: a row over the last axes, or a group of channels of
 * one sample [N, ..., C].
 *
 * layer_norm, group_norm    x, weight?, bias? -> y, mean, rstd [sets]
 * rms_norm                  x, weight? -> y, rstd [sets]
 * layer_norm_grad, group_norm_grad
 *                           dy, x, weight?, mean, rstd -> dx, dweight, dbias
 * rms_norm_grad             dy, x, weight?, rstd -> dx, dweight      all with KilnSetNormAttrs */
typedef struct KilnSetNormAttrs {
    double eps;
    int64_t axes;   /* layer_norm, rms_norm: number of last axes */
    int64_t groups; /* group_norm */
} KilnSetNormAttrs;

/* How x divides into sets: set s has `pixels` runs of `run` elements, `stride` apart. */
typedef struct KilnSets {
    int64_t count, pixels, run, stride;
    int64_t groups; /* adjacent sets within `stride`; 1 for rows */
} KilnSets;

KilnSets kiln_sets(const KilnSetNormAttrs *attrs, const KilnShape *x);

#endif
