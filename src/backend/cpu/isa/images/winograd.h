/* Winograd's transforms F(4 x 4, 3 x 3) in f32 (Lavin and Gray 2016): windows of 6 x 6 pixels and
 * kernels of 3 x 3 taps become 36 points, whose products become tiles of 4 x 4 results. Compiled
 * once per level. */
#ifndef KILN_BACKEND_CPU_ISA_WINOGRAD_H
#define KILN_BACKEND_CPU_ISA_WINOGRAD_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/cpu/isa/map.h"
#include "backend/cpu/level.h"

enum {
    KILN_F4_TILE = 4,
    KILN_F4_WINDOW = 6,
    KILN_F4_POINTS = KILN_F4_WINDOW * KILN_F4_WINDOW,
    KILN_F4_TAPS = 9
};

/* Images in blocks of channels, [N, C / block, H, W, block]; plain order is one block. */
typedef struct KilnWinogradImages {
    float *data;
    int64_t height, width, channels, block; /* both multiples of KilnWinogradLoops.width */
} KilnWinogradImages;

/* A pixel; a tile's or window's first one may lie outside of the image, where zeros are read and
 * nothing is written. */
typedef struct KilnWinogradPlace {
    int64_t image, y, x;
} KilnWinogradPlace;

/* Where points go: channel c of point p is at to[p * pitch + c / columns * panel + c % columns]. */
typedef struct KilnWinogradPoints {
    float *to;
    int64_t pitch, panel, columns;
} KilnWinogradPoints;

/* Weights [O, I, 3, 3] as the right factor of a convolution: rows are of I and columns of O, or the
 * other way round for the gradient of its input. */
typedef struct KilnWinogradWeight {
    const float *data;
    int64_t out, in;
    bool gradient;
} KilnWinogradWeight;

/* What becomes of a tile of results: y = activation(results + bias + more). */
typedef struct KilnWinogradResult {
    KilnWinogradImages y;
    const float *bias, *more; /* or NULL; more is in y's order, and may be y */
    bool relu;
    KilnMapLoop activation; /* any other, of p and q; or NULL */
    float p, q;
} KilnWinogradResult;

typedef struct KilnWinogradLoops {
    int width; /* channels at a time */
    /* Bᵀ d B of the window at `place`, all channels. */
    void (*window)(const KilnWinogradImages *from, const KilnWinogradPlace *place,
                   const KilnWinogradPoints *to);
    /* A d Aᵀ of the tile at `place`, all channels. */
    void (*spread)(const KilnWinogradImages *from, const KilnWinogradPlace *place,
                   const KilnWinogradPoints *to);
    /* G g Gᵀ of one panel's columns from `column` on, rows [begin, end), at most
     * KILN_F4_ROWS: row l of point p is at to[p * pitch + l * KilnGemmLoops.columns]. */
    void (*weight)(const KilnWinogradWeight *weight, int64_t column, int64_t begin, int64_t end,
                   float *to, int64_t pitch);
    /* Aᵀ m A, channels [channel, channel + count), the first of point p at m[p * pitch]. */
    void (*result)(const KilnWinogradResult *result, const KilnWinogradPlace *place,
                   int64_t channel, int64_t count, const float *m, int64_t pitch);
    /* Gᵀ m G of `count` kernels of 9 taps each. */
    void (*gather)(float *kernels, const float *m, int64_t pitch, int64_t count);
} KilnWinogradLoops;

enum { KILN_F4_ROWS = 16 };

KILN_DECLARE_LOOPS(KilnWinogradLoops, winograd_loops);

#endif
