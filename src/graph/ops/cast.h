/* Conversion between types. */
#ifndef KILN_GRAPH_OPS_CAST_H
#define KILN_GRAPH_OPS_CAST_H

#include "kiln/ops.h"

#define KILN_OPS_CAST(X)                                                                           \
    X(cast)                                                                                        \
    X(store)

/* cast                x -> y                              KilnCastAttrs
 * store               variable*, x ->      (the variable takes x's values, converted to its type)
 */
typedef struct KilnCastAttrs {
    int32_t dtype;
    int32_t image; /* 1: for a convolution, so the backend may store blocks of channels */
} KilnCastAttrs;

#endif
