/* Results whose size is data: the first places of a fixed size, and their count. */
#ifndef KILN_GRAPH_OPS_SELECT_COMPACT_H
#define KILN_GRAPH_OPS_SELECT_COMPACT_H

#include "kiln/ops.h"

#define KILN_OPS_COMPACT(X)                                                                        \
    X(nonzero)                                                                                     \
    X(unique)

/* nonzero             x of any type -> i32 index [limit], i32 count [1]        KilnNonzeroAttrs
 * unique              values [n] and indices [n] as sorted, float or i32 -> values [n], i32
 *                     inverse [n], i32 counts [n], i32 count [1] */
typedef struct KilnNonzeroAttrs {
    int64_t limit;
    int64_t fill; /* index in unused places */
} KilnNonzeroAttrs;

#endif
