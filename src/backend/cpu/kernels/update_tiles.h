/* Access of in-place updates to their variables: f32 in place, bf16 converted tile by tile. */
#ifndef KILN_BACKEND_CPU_KERNELS_UPDATE_TILES_H
#define KILN_BACKEND_CPU_KERNELS_UPDATE_TILES_H

#include "backend/cpu/cpu.h"

enum {
    /* Partial sums cover pieces of this many elements, whatever the number of threads. */
    KILN_UPDATE_PIECE = 1 << 15,
    KILN_UPDATE_TILE = 1024,
};

/* Loops compute in f32. A tile of each bf16 input is converted before, and converted back after if
 * it is updated. An optimizer's tiles (up to 24 KB) stay in the first-level cache. */
typedef struct KilnUpdateTiles {
    float of[KILN_FLAT_INPUTS][KILN_UPDATE_TILE];
} KilnUpdateTiles;

/* Elements to process at a time: a tile's if an input is bf16, else all. */
typedef struct KilnUpdateSpan {
    int64_t at, n;
} KilnUpdateSpan;

KilnUpdateSpan kiln_update_span_at(const KilnCall *call, int64_t at, int64_t end);

/* All elements of [begin, end), each once. */
#define KILN_EACH_UPDATE_SPAN(s, call, begin, end)                                                 \
    KilnUpdateSpan s = kiln_update_span_at(call, begin, end);                                      \
    s.n > 0;                                                                                       \
    s = kiln_update_span_at(call, s.at + s.n, end)

/* Elements of the f32 input `i`, from `begin` on; NULL: absent. */
float *kiln_variable_at(const KilnCall *call, int i, int64_t begin);
/* The same of an input that may be bf16: then converted into its tile. */
float *kiln_variable_f32(const KilnCall *call, int i, KilnUpdateSpan s, KilnUpdateTiles *tiles);
/* Stores the updated tiles. */
void kiln_variables_store(const KilnCall *call, KilnUpdateSpan s, const KilnUpdateTiles *tiles);

#endif
