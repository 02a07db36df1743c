/* Variables that updates read and write: f32 in place, bf16 a tile at a time. */
#ifndef KILN_BACKEND_CPU_KERNELS_VARIABLES_H
#define KILN_BACKEND_CPU_KERNELS_VARIABLES_H

#include "backend/cpu/cpu.h"

enum {
    /* Partial sums are over pieces of this many elements, whatever the threads. */
    KILN_UPDATE_PIECE = 1 << 15,
    KILN_UPDATE_TILE = 1024,
};

/* Loops compute in f32. Of an input of bf16 a tile is widened, and narrowed again where
 * it is updated; those of an optimizer (up to 24 KB) stay in the first level of cache. */
typedef struct KilnTiles {
    float of[KILN_FLAT_INPUTS][KILN_UPDATE_TILE];
} KilnTiles;

/* Elements that are done at a time: a tile's where an input is bf16, else all. */
typedef struct KilnFlatSpan {
    int64_t at, n;
} KilnFlatSpan;

KilnFlatSpan kiln_flat_span_at(const KilnCall *call, int64_t at, int64_t end);

/* All elements from `begin` to `end`, none twice. */
#define KILN_EACH_FLAT_SPAN(s, call, begin, end)                                                   \
    KilnFlatSpan s = kiln_flat_span_at(call, begin, end);                                          \
    s.n > 0;                                                                                       \
    s = kiln_flat_span_at(call, s.at + s.n, end)

/* Elements of input `i` of f32 from `begin` on; NULL: absent. */
float *kiln_variable_at(const KilnCall *call, int i, int64_t begin);
/* The same of an input that may be bf16: the stretch lies in its tile then. */
float *kiln_variable_widened(const KilnCall *call, int i, KilnFlatSpan s, KilnTiles *tiles);
/* Take what was updated from the tiles. */
void kiln_variables_put_back(const KilnCall *call, KilnFlatSpan s, const KilnTiles *tiles);

#endif
