/* Products of tiles by AVX-512's vdpbf16ps, which multiplies 16 pairs and adds them to 16 sums. It
 * takes one operand from a row of the right factor's pairs, the other from a pair of the left
 * factor, broadcast. */
#include "backend/cpu/bf16/tiles.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define VECTOR __attribute__((target("avx512f,avx512bf16")))
#define INLINE VECTOR static inline __attribute__((always_inline))

enum {
    ROWS = 8, /* at a time: with two vectors of columns, 16 sums hide the instruction's latency */
    PAIRS = KILN_TILE_DEPTH / 2
};

/* The tiles of one step: the left factor's from the current row on, and both of the right's. */
typedef struct Step {
    const char *a;
    const uint16_t *b[2];
} Step;

/* gcc keeps the sums in registers only if all loops over them are unrolled. `row` is a constant for
 * packed tiles, so that it needs no registers. */
INLINE void multiply(__m512 sum[ROWS][2], const Step *step, int64_t row)
{
    const int64_t next = row == KILN_TILE_PAIRED ? KILN_TILE_ROWS * KILN_TILE_PAIRED : 4;

    for (int p = 0; p < PAIRS; p++) {
        const __m512bh b0 = (__m512bh)_mm512_load_si512(step->b[0] + p * 32);
        const __m512bh b1 = (__m512bh)_mm512_load_si512(step->b[1] + p * 32);

#pragma GCC unroll 8
        for (int i = 0; i < ROWS; i++) {
            int pair;

            __builtin_memcpy(&pair, step->a + i * row + p * next, sizeof(pair));
            const __m512bh a = (__m512bh)_mm512_set1_epi32(pair);
            sum[i][0] = _mm512_dpbf16_ps(sum[i][0], a, b0);
            sum[i][1] = _mm512_dpbf16_ps(sum[i][1], a, b1);
        }
    }
}

INLINE void multiply_rows(float *c, int64_t stride, const KilnTileSide *left,
                          const KilnTileSide *right, int64_t offset, int64_t row, int64_t steps,
                          int64_t runs, bool add)
{
    __m512 sum[ROWS][2];

#pragma GCC unroll 8
    for (int i = 0; i < ROWS; i++) {
        sum[i][0] = add ? _mm512_loadu_ps(c + i * stride) : _mm512_setzero_ps();
        sum[i][1] = add ? _mm512_loadu_ps(c + i * stride + 16) : _mm512_setzero_ps();
    }
    for (int64_t run = 0; run < runs; run++) {
        const int64_t at = left->runs != NULL ? left->runs[run] : run * left->run;
        const uint16_t *a = left->first + at + offset, *b = right->first + run * right->run;

        for (int64_t s = 0; s < steps; s++, a += left->step, b += right->step)
            multiply(sum, &(Step) { (const char *)a, { b, b + right->second } }, row);
    }
#pragma GCC unroll 8
    for (int i = 0; i < ROWS; i++) {
        _mm512_storeu_ps(c + i * stride, sum[i][0]);
        _mm512_storeu_ps(c + i * stride + 16, sum[i][1]);
    }
}

VECTOR static void block(float *c, int64_t stride, const KilnTileSide *left,
                         const KilnTileSide *right, int64_t rows, int64_t steps, int64_t runs,
                         bool add)
{
    enum { PACKED_ROW = KILN_TILE_DEPTH * sizeof(uint16_t) };

    for (int64_t i = 0; i < rows && i < KILN_TILE_BLOCK; i += ROWS, c += ROWS * stride) {
        const int64_t within = i % KILN_TILE_ROWS * (left->row / (int64_t)sizeof(uint16_t));
        const int64_t offset = (i < KILN_TILE_ROWS ? 0 : left->second) + within;

        if (left->row == PACKED_ROW)
            multiply_rows(c, stride, left, right, offset, PACKED_ROW, steps, runs, add);
        else if (left->row == KILN_TILE_PAIRED)
            multiply_rows(c, stride, left, right, offset, KILN_TILE_PAIRED, steps, runs, add);
        else
            multiply_rows(c, stride, left, right, offset, left->row, steps, runs, add);
    }
}

/* Vectors need no preparation. */
static void nothing(void)
{
}

const KilnTileOps kiln_tiles_vectors = {
    .begin = nothing, .end = nothing, .block = block, .paired = true
};

#endif
