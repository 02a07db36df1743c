/* Operations that rearrange elements. */
#ifndef KILN_GRAPH_OPS_SHAPE_H
#define KILN_GRAPH_OPS_SHAPE_H

#include "kiln/ops.h"

#define KILN_OPS_SHAPE(X)                                                                          \
    X(reshape)                                                                                     \
    X(permute)

/* reshape             x -> y (same bytes)                 KilnShapeAttrs
 * permute             x -> y                              KilnPermuteAttrs */
typedef struct KilnShapeAttrs {
    KilnShape shape;
} KilnShapeAttrs;
typedef struct KilnPermuteAttrs {
    int32_t order[KILN_MAX_RANK];
} KilnPermuteAttrs;

#endif
