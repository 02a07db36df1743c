/* Steps that continue earlier ones, for generating: where each sample is, and the caches of the
 * model's layers. */
#ifndef KILN_TRAIN_STEP_DECODE_H
#define KILN_TRAIN_STEP_DECODE_H

#include "graph/buffer.h"

typedef struct KilnDecodeCache {
    KilnShape shape;
    KilnDType dtype;
    KilnBuffer *buffer;
} KilnDecodeCache;

typedef struct KilnDecode {
    KilnBackend *backend;
    int64_t batch, rows; /* samples, and rows of each cache */
    int32_t *position;   /* [batch], of the first row of the next step */
    KilnDecodeCache *caches;
    size_t n, capacity;
    size_t used; /* caches that the step being recorded has asked for */
} KilnDecode;

/* Every position is 0. KILN_E_NOMEM. */
KILN_NODISCARD KilnStatus kiln_decode_init(KilnDecode *decode, KilnBackend *backend, int64_t batch,
                                           int64_t rows, KilnError *err);
/* Row r of every cache becomes what row parents[r] was, as far as they are filled: `rows` rows
 * along the second axis. KILN_E_NOMEM. */
KILN_NODISCARD KilnStatus kiln_decode_reorder(KilnDecode *decode, const int32_t *parents,
                                              int64_t rows, KilnError *err);
/* Accepts a zeroed struct. */
void kiln_decode_release(KilnDecode *decode);

#endif
