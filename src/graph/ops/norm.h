/* Normalization. */
#ifndef KILN_GRAPH_OPS_NORM_H
#define KILN_GRAPH_OPS_NORM_H

#include "kiln/ops.h"

#define KILN_OPS_NORM(X)                                                                           \
    X(batch_norm)                                                                                  \
    X(batch_norm_grad)                                                                             \
    X(batch_norm_eval)

/* batch_norm          x, weight, bias -> y, mean, var     KilnBatchNormAttrs (biased var)
 * batch_norm_grad     dy, x, weight, mean, var -> dx, dweight, dbias   KilnBatchNormAttrs
 * batch_norm_eval     x, weight, bias, mean, var -> y     KilnBatchNormAttrs */
typedef struct KilnBatchNormAttrs {
    double eps;
} KilnBatchNormAttrs;

#endif
