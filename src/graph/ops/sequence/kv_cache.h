/* Keys and values of decoding step by step. */
#ifndef KILN_GRAPH_OPS_SEQUENCE_KV_CACHE_H
#define KILN_GRAPH_OPS_SEQUENCE_KV_CACHE_H

#include "kiln/ops.h"

#define KILN_OPS_KV_CACHE(X) X(cache_write)

/* cache_write         cache* [B, ...], x, position i32 [B] or [1] ->  KilnCacheAttrs
 * (* updated in place) */
typedef struct KilnCacheAttrs {
    int64_t axis; /* of the rows, at least 1 */
} KilnCacheAttrs;

#endif
