/* Operations that rearrange elements. */
#ifndef KILN_GRAPH_OPS_RESHAPE_H
#define KILN_GRAPH_OPS_RESHAPE_H

#include "kiln/ops.h"

#define KILN_OPS_SHAPE(X)                                                                          \
    X(reshape)                                                                                     \
    X(permute)                                                                                     \
    X(slice)                                                                                       \
    X(pad)                                                                                         \
    X(concat)                                                                                      \
    X(split)                                                                                       \
    X(triangle)

/* Most pieces that one node joins or cuts. */
enum { KILN_MAX_PIECES = 8 };

/* reshape             x -> y (same bytes)                 KilnShapeAttrs
 * permute             x -> y                              KilnPermuteAttrs
 * slice               x -> y;  y[i] = x[start + i*step]             KilnWindowAttrs
 * pad                 x -> y;  y[start + i*step] = x[i], else value KilnWindowAttrs
 * concat              up to 8 inputs -> y                 KilnConcatAttrs
 * split               x -> up to 8 outputs                KilnSplitAttrs
 * triangle            x [..., R, C] -> y; value where column - row is above (upper:
 *                     below) the diagonal                 KilnTriangleAttrs
 * All but triangle take every element type. */
typedef struct KilnShapeAttrs {
    KilnShape shape;
} KilnShapeAttrs;
typedef struct KilnPermuteAttrs {
    int32_t order[KILN_MAX_RANK];
} KilnPermuteAttrs;
typedef struct KilnWindowAttrs {
    KilnShape shape; /* of y; unused axes have start 0 and step 0 */
    int64_t start[KILN_MAX_RANK], step[KILN_MAX_RANK];
    double value;
} KilnWindowAttrs;
typedef struct KilnConcatAttrs {
    int64_t axis;
} KilnConcatAttrs;
typedef struct KilnSplitAttrs {
    int64_t axis, n, size[KILN_MAX_PIECES];
} KilnSplitAttrs;
typedef struct KilnTriangleAttrs {
    int64_t diagonal, upper;
    double value;
} KilnTriangleAttrs;

#endif
