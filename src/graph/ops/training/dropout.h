/* Dropout. */
#ifndef KILN_GRAPH_OPS_TRAINING_DROPOUT_H
#define KILN_GRAPH_OPS_TRAINING_DROPOUT_H

#include "kiln/ops.h"

#define KILN_OPS_DROPOUT(X)                                                                        \
    X(dropout)                                                                                     \
    X(dropout_grad)

/* dropout             x, key, rate (or none) -> y, mask u8    KilnDropoutAttrs
 * dropout_grad        dy, mask, rate (or none) -> dx          KilnDropoutAttrs */
typedef struct KilnDropoutAttrs {
    double p; /* without a rate that is data */
    int64_t stream;
} KilnDropoutAttrs;

#endif
