/* Winograd's transforms of tiles of 4 x 4 pixels in bf16, for 3 x 3 convolutions and the gradients
 * of their weights (F(2 x 2, 3 x 3), Lavin and Gray 2016), 16 channels at a time. Included where
 * vdpbf16ps is used. */
#ifndef KILN_BACKEND_CPU_BF16_WINOGRAD_H
#define KILN_BACKEND_CPU_BF16_WINOGRAD_H

#include <immintrin.h>
#include <stdbool.h>

#include "graph/backend.h"

#define KILN_WINOGRAD                                                                              \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16"), always_inline)) static inline

enum {
    KILN_WINOGRAD_POINTS = 16, /* of a transformed tile: independent products */
    KILN_WINOGRAD_LANES = 16,
    KILN_WINOGRAD_PAIR = 6, /* columns of two adjacent tiles */
    KILN_WINOGRAD_MAX_CHANNELS = 4096
};

/* Finds rows x columns pixels of an image of [N, H, W, C], from row y and column x on; `image` < 0:
 * all are outside of it, and zeros. */
static inline void kiln_winograd_find(const KilnArg *source, int64_t image, int64_t y, int64_t x,
                                      int64_t rows, int64_t columns, const uint16_t **pixels)
{
    static const uint16_t zeros[KILN_WINOGRAD_MAX_CHANNELS];
    const int64_t *dim = source->shape.dim;

    for (int64_t i = 0; i < rows * columns; i++) {
        const int64_t row = y + i / columns, column = x + i % columns;
        const bool inside = image >= 0 && row >= 0 && row < dim[1] && column >= 0 &&
                            column < dim[2];

        pixels[i] = inside ? (const uint16_t *)source->data +
                                 ((image * dim[1] + row) * dim[2] + column) * dim[3]
                           : zeros;
    }
}

/* 16 channels of a pixel as floats. */
KILN_WINOGRAD __m512 kiln_winograd_load(const uint16_t *pixel)
{
    const __m256i half = _mm256_loadu_si256((const __m256i *)(const void *)pixel);

    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

/* Rounds two vectors and stores their lanes as 16 pairs, aligned to 64 bytes. */
KILN_WINOGRAD void kiln_winograd_store_pairs(uint16_t *to, __m512 first, __m512 second)
{
    static const uint16_t order[2 * KILN_WINOGRAD_LANES] = { 0,  16, 1,  17, 2,  18, 3,  19,
                                                             4,  20, 5,  21, 6,  22, 7,  23,
                                                             8,  24, 9,  25, 10, 26, 11, 27,
                                                             12, 28, 13, 29, 14, 30, 15, 31 };
    const __m512i both = (__m512i)_mm512_cvtne2ps_pbh(second, first);

    _mm512_store_si512(to, _mm512_permutexvar_epi16(_mm512_loadu_si512(order), both));
}

/* Bᵀ d, of four values along an axis. */
KILN_WINOGRAD void kiln_winograd_source(const __m512 d[4], __m512 to[4])
{
    to[0] = _mm512_sub_ps(d[0], d[2]);
    to[1] = _mm512_add_ps(d[1], d[2]);
    to[2] = _mm512_sub_ps(d[2], d[1]);
    to[3] = _mm512_sub_ps(d[1], d[3]);
}

/* Bᵀ d along each column of 4 x `columns` pixels, channels from c on: rows [y][x]. */
KILN_WINOGRAD void kiln_winograd_columns(const uint16_t *const *pixels, int columns, int64_t c,
                                         __m512 rows[4][KILN_WINOGRAD_PAIR])
{
#pragma GCC unroll 6
    for (int x = 0; x < columns; x++) {
        __m512 d[4], to[4];

#pragma GCC unroll 4
        for (int y = 0; y < 4; y++)
            d[y] = kiln_winograd_load(pixels[columns * y + x] + c);
        kiln_winograd_source(d, to);
#pragma GCC unroll 4
        for (int y = 0; y < 4; y++)
            rows[y][x] = to[y];
    }
}

/* Bᵀ d B of the tile whose columns begin at `from`. */
KILN_WINOGRAD void kiln_winograd_tile(__m512 rows[4][KILN_WINOGRAD_PAIR], int from,
                                      __m512 points[KILN_WINOGRAD_POINTS])
{
#pragma GCC unroll 4
    for (int y = 0; y < 4; y++)
        kiln_winograd_source(rows[y] + from, points + 4 * y);
}

/* ---- Taps ------------------------------------------------------------------------------- */

/* Three vectors from lanes of three: `two` picks from the first two, `third` from what that gives
 * (lanes that are right already) and the third. */
KILN_WINOGRAD void kiln_winograd_pick(const __m512 from[3], __m512 to[3],
                                      const int32_t two[3][KILN_WINOGRAD_LANES],
                                      const int32_t third[3][KILN_WINOGRAD_LANES])
{
#pragma GCC unroll 3
    for (int i = 0; i < 3; i++) {
        to[i] = _mm512_permutex2var_ps(from[0], _mm512_loadu_si512(two[i]), from[1]);
        to[i] = _mm512_permutex2var_ps(to[i], _mm512_loadu_si512(third[i]), from[2]);
    }
}

/* Lane l of to[i] is value 3 l + i of 48. */
KILN_WINOGRAD void kiln_winograd_split_thirds(const __m512 from[3], __m512 to[3])
{
    static const int32_t two[3][KILN_WINOGRAD_LANES] = {
        { 0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30 },
        { 1, 4, 7, 10, 13, 16, 19, 22, 25, 28, 31 },
        { 2, 5, 8, 11, 14, 17, 20, 23, 26, 29 },
    };
    static const int32_t third[3][KILN_WINOGRAD_LANES] = {
        { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 17, 20, 23, 26, 29 },
        { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 18, 21, 24, 27, 30 },
        { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 19, 22, 25, 28, 31 },
    };

    kiln_winograd_pick(from, to, two, third);
}

/* The inverse: value 3 l + i of 48 is lane l of from[i]. */
KILN_WINOGRAD void kiln_winograd_join_thirds(const __m512 from[3], __m512 to[3])
{
    static const int32_t two[3][KILN_WINOGRAD_LANES] = {
        { 0, 16, 0, 1, 17, 0, 2, 18, 0, 3, 19, 0, 4, 20, 0, 5 },
        { 21, 0, 6, 22, 0, 7, 23, 0, 8, 24, 0, 9, 25, 0, 10, 26 },
        { 0, 11, 27, 0, 12, 28, 0, 13, 29, 0, 14, 30, 0, 15, 31, 0 },
    };
    static const int32_t third[3][KILN_WINOGRAD_LANES] = {
        { 0, 1, 16, 3, 4, 17, 6, 7, 18, 9, 10, 19, 12, 13, 20, 15 },
        { 0, 21, 2, 3, 22, 5, 6, 23, 8, 9, 24, 11, 12, 25, 14, 15 },
        { 26, 1, 2, 27, 4, 5, 28, 7, 8, 29, 10, 11, 30, 13, 14, 31 },
    };

    kiln_winograd_pick(from, to, two, third);
}

/* The taps of 16 adjacent kernels, 9 vectors of floats: lane l of tap t is float 9 l + t. */
KILN_WINOGRAD void kiln_winograd_split_taps(const float *kernels, __m512 taps[9])
{
    __m512 thirds[3][3], to[3];

#pragma GCC unroll 3
    for (int i = 0; i < 3; i++) {
        const float *at = kernels + 3 * i * KILN_WINOGRAD_LANES;
        const __m512 from[3] = { _mm512_loadu_ps(at), _mm512_loadu_ps(at + KILN_WINOGRAD_LANES),
                                 _mm512_loadu_ps(at + 2 * KILN_WINOGRAD_LANES) };

        kiln_winograd_split_thirds(from, to);
#pragma GCC unroll 3
        for (int r = 0; r < 3; r++)
            thirds[r][i] = to[r];
    }
#pragma GCC unroll 3
    for (int r = 0; r < 3; r++) {
        kiln_winograd_split_thirds(thirds[r], to);
#pragma GCC unroll 3
        for (int q = 0; q < 3; q++)
            taps[3 * q + r] = to[q];
    }
}

/* The inverse. */
KILN_WINOGRAD void kiln_winograd_join_taps(const __m512 taps[9], float *kernels)
{
    __m512 thirds[3][3], to[3];

#pragma GCC unroll 3
    for (int r = 0; r < 3; r++) {
        const __m512 from[3] = { taps[r], taps[3 + r], taps[6 + r] };

        kiln_winograd_join_thirds(from, to);
#pragma GCC unroll 3
        for (int i = 0; i < 3; i++)
            thirds[i][r] = to[i];
    }
#pragma GCC unroll 3
    for (int i = 0; i < 3; i++) {
        kiln_winograd_join_thirds(thirds[i], to);
#pragma GCC unroll 3
        for (int k = 0; k < 3; k++)
            _mm512_storeu_ps(kernels + (3 * i + k) * KILN_WINOGRAD_LANES, to[k]);
    }
}

#endif
