/* Winograd's transform of a tile of 4 x 4 pixels in bf16, for 3 x 3 convolutions and the gradients
 * of their weights (F(2 x 2, 3 x 3), Lavin and Gray 2016). Included where vdpbf16ps is used. */
#ifndef KILN_BACKEND_CPU_BF16_WINOGRAD_H
#define KILN_BACKEND_CPU_BF16_WINOGRAD_H

#include <immintrin.h>
#include <stdbool.h>

#include "graph/backend.h"

#define KILN_WINOGRAD                                                                              \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16"), always_inline)) static inline

enum {
    KILN_WINOGRAD_POINTS = 16, /* of a transformed tile: independent products */
    KILN_WINOGRAD_LANES = 16
};

/* A pixel of a tile, 16 channels at a time; zeros outside of the image. */
typedef struct KilnWinogradPixel {
    const uint16_t *data;
    int64_t step; /* 0 for zeros */
} KilnWinogradPixel;

/* Finds size x size pixels of an image of [N, H, W, C], from row y and column x on; `image` < 0:
 * all are outside. */
static inline void kiln_winograd_find(const KilnArg *source, int64_t image, int64_t y, int64_t x,
                                      int64_t size, KilnWinogradPixel *pixels)
{
    static const uint16_t zeros[KILN_WINOGRAD_LANES];
    const int64_t *dim = source->shape.dim;

    for (int64_t i = 0; i < size * size; i++) {
        const int64_t row = y + i / size, column = x + i % size;
        const bool inside = image >= 0 && row >= 0 && row < dim[1] && column >= 0 &&
                            column < dim[2];

        pixels[i] =
            inside ? (KilnWinogradPixel) { (const uint16_t *)source->data +
                                               ((image * dim[1] + row) * dim[2] + column) * dim[3],
                                           KILN_WINOGRAD_LANES }
                   : (KilnWinogradPixel) { zeros, 0 };
    }
}

/* The next 16 channels of a pixel as floats. */
KILN_WINOGRAD __m512 kiln_winograd_load(KilnWinogradPixel *pixel)
{
    const __m256i half = _mm256_loadu_si256((const __m256i *)(const void *)pixel->data);

    pixel->data += pixel->step;
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

/* Bᵀ d, of four values along an axis. */
KILN_WINOGRAD void kiln_winograd_source(const __m512 d[4], __m512 to[4])
{
    to[0] = _mm512_sub_ps(d[0], d[2]);
    to[1] = _mm512_add_ps(d[1], d[2]);
    to[2] = _mm512_sub_ps(d[2], d[1]);
    to[3] = _mm512_sub_ps(d[1], d[3]);
}

/* Bᵀ d along the columns of 4 x 4 pixels: rows [y][x]. */
KILN_WINOGRAD void kiln_winograd_columns(KilnWinogradPixel pixels[KILN_WINOGRAD_POINTS],
                                         __m512 rows[4][4])
{
#pragma GCC unroll 4
    for (int x = 0; x < 4; x++) {
        __m512 d[4], to[4];

#pragma GCC unroll 4
        for (int y = 0; y < 4; y++)
            d[y] = kiln_winograd_load(&pixels[4 * y + x]);
        kiln_winograd_source(d, to);
#pragma GCC unroll 4
        for (int y = 0; y < 4; y++)
            rows[y][x] = to[y];
    }
}

#endif
