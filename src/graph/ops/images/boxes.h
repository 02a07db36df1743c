/* Boxes of object detection. */
#ifndef KILN_GRAPH_OPS_IMAGES_BOXES_H
#define KILN_GRAPH_OPS_IMAGES_BOXES_H

#include "kiln/ops.h"

#define KILN_OPS_BOXES(X) X(nms)

/* nms                 boxes [n,4], i32 order [n] of falling scores, i32 groups [n] or NULL
 *                     -> i32 index [limit], i32 count [1]             KilnNmsAttrs */
typedef struct KilnNmsAttrs {
    double threshold;
    int64_t limit;
} KilnNmsAttrs;

#endif
