/* Sorting along an axis. */
#ifndef KILN_GRAPH_OPS_SELECT_SORT_H
#define KILN_GRAPH_OPS_SELECT_SORT_H

#include "kiln/ops.h"

#define KILN_OPS_SORT(X) X(sort)

/* sort                x float or i32 -> values, indices i32          KilnSortAttrs
 *
 * The first `count` of the sorted elements, with the order of kiln_sort. */
typedef struct KilnSortAttrs {
    int64_t axis, count, descending;
} KilnSortAttrs;

#endif
