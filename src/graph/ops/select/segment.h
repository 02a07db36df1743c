/* Sums, means and largest elements of groups of rows. */
#ifndef KILN_GRAPH_OPS_SELECT_SEGMENT_H
#define KILN_GRAPH_OPS_SELECT_SEGMENT_H

#include "kiln/ops.h"

#define KILN_OPS_SEGMENT(X)                                                                        \
    X(segment)                                                                                     \
    X(segment_grad)

typedef enum KilnSegmentMode {
    KILN_SEGMENT_SUM,
    KILN_SEGMENT_MEAN,
    KILN_SEGMENT_MAX
} KilnSegmentMode;

/* segment             x [n, ...], ids i32 [n] -> y [count, ...]      KilnSegmentAttrs
 * segment_grad        dy, ids, x?, y? (of the largest) -> dx         KilnSegmentAttrs */
typedef struct KilnSegmentAttrs {
    int64_t mode; /* KilnSegmentMode */
    int64_t count;
} KilnSegmentAttrs;

#endif
