/* Winograd's transforms F(4 x 4, 3 x 3). */
#include "backend/cpu/isa/images/winograd.h"

#include <stddef.h>
#include <string.h>

#include "backend/cpu/isa/gemm.h"
#include "backend/cpu/isa/transpose.h"
#include "base/min.h"

#define INLINE static inline __attribute__((always_inline))

_Static_assert(KILN_F4_TILE *WIDTH % KILN_MAP_GROUP == 0, "steps run over rows of a tile");

enum {
    TILE = KILN_F4_TILE,
    WINDOW = KILN_F4_WINDOW,
    TAPS = KILN_F4_TAPS,
    COLUMNS = 2 * WIDTH /* of a panel, as in gemm.c */
};

typedef uint32_t Words __attribute__((vector_size(WIDTH * sizeof(uint32_t))));

INLINE Vector load(const float *x)
{
    return *(const Floats *)x;
}

INLINE void store(float *x, Vector value)
{
    *(Floats *)x = value;
}

INLINE Vector all(float x)
{
    return x - (Vector) { 0 };
}

/* ---- Along one axis ------------------------------------------------------------------------- */

/* The points besides 0 and infinity are A, -A, B and -B. Those of Lavin and Gray, 1 and 2, have
 * twice to four times the error. */
#define A 0.625f
#define B 1.5f
#define A2 (A * A)
#define B2 (B * B)
#define SCALE_A (1.0f / (2.0f * A2 * (A2 - B2)))
#define SCALE_B (1.0f / (2.0f * B2 * (B2 - A2)))

/* Bᵀ d */
INLINE void window_axis(const Vector d[WINDOW], Vector to[WINDOW])
{
    const Vector even = FMA(all(-B2), d[2], d[4]), odd = FMA(all(-B2), d[1], d[3]);
    const Vector even2 = FMA(all(-A2), d[2], d[4]), odd2 = FMA(all(-A2), d[1], d[3]);

    to[0] = FMA(all(-A2), FMA(all(-B2), d[0], d[2]), even);
    to[1] = FMA(all(A), odd, even);
    to[2] = FMA(all(-A), odd, even);
    to[3] = FMA(all(B), odd2, even2);
    to[4] = FMA(all(-B), odd2, even2);
    to[5] = FMA(all(-A2), odd, FMA(all(-B2), d[3], d[5]));
}

/* A d */
INLINE void spread_axis(const Vector d[TILE], Vector to[WINDOW])
{
    const Vector even = FMA(all(A2), d[2], d[0]), odd = FMA(all(A2), d[3], d[1]);
    const Vector even2 = FMA(all(B2), d[2], d[0]), odd2 = FMA(all(B2), d[3], d[1]);

    to[0] = d[0];
    to[1] = FMA(all(A), odd, even);
    to[2] = FMA(all(-A), odd, even);
    to[3] = FMA(all(B), odd2, even2);
    to[4] = FMA(all(-B), odd2, even2);
    to[5] = d[3];
}

/* G g */
INLINE void weight_axis(const Vector g[3], Vector to[WINDOW])
{
    const Vector even = all(SCALE_A) * FMA(all(A2), g[2], g[0]), odd = all(SCALE_A * A) * g[1];
    const Vector even2 = all(SCALE_B) * FMA(all(B2), g[2], g[0]), odd2 = all(SCALE_B * B) * g[1];

    to[0] = all(1.0f / (A2 * B2)) * g[0];
    to[1] = even + odd;
    to[2] = even - odd;
    to[3] = even2 + odd2;
    to[4] = even2 - odd2;
    to[5] = g[2];
}

/* Aᵀ m */
INLINE void result_axis(const Vector m[WINDOW], Vector to[TILE])
{
    const Vector sum = m[1] + m[2], difference = m[1] - m[2];
    const Vector sum2 = m[3] + m[4], difference2 = m[3] - m[4];

    to[0] = m[0] + sum + sum2;
    to[1] = FMA(all(B), difference2, all(A) * difference);
    to[2] = FMA(all(B2), sum2, all(A2) * sum);
    to[3] = FMA(all(B2 * B), difference2, FMA(all(A2 * A), difference, m[5]));
}

/* Gᵀ m */
INLINE void gather_axis(const Vector m[WINDOW], Vector to[3])
{
    const Vector sum = all(SCALE_A) * (m[1] + m[2]), sum2 = all(SCALE_B) * (m[3] + m[4]);
    const Vector difference = all(SCALE_A * A) * (m[1] - m[2]);

    to[0] = FMA(all(1.0f / (A2 * B2)), m[0], sum + sum2);
    to[1] = FMA(all(SCALE_B * B), m[3] - m[4], difference);
    to[2] = FMA(all(A2), sum, FMA(all(B2), sum2, m[5]));
}

/* ---- Pixels ---------------------------------------------------------------------------------- */

/* The pixels of a square that lie within an image, and where they are. */
typedef struct Square {
    float *block;                   /* channels of the square's first pixel, in the first block */
    int64_t row, pixel, next_block; /* floats from one to the next */
    int64_t y[2], x[2];             /* begin and end of those inside */
    bool whole;
} Square;

static Square square_at(const KilnWinogradImages *images, const KilnWinogradPlace *place,
                        int64_t size)
{
    const int64_t plane = images->height * images->width;
    Square square = {
        .row = images->width * images->block,
        .pixel = images->block,
        .next_block = plane * images->block,
        .y = { place->y < 0 ? -place->y : 0, kiln_min_i64(size, images->height - place->y) },
        .x = { place->x < 0 ? -place->x : 0, kiln_min_i64(size, images->width - place->x) },
    };

    square.block = images->data + place->image * plane * images->channels + place->y * square.row +
                   place->x * square.pixel;
    square.whole = square.y[0] == 0 && square.y[1] == size && square.x[0] == 0 &&
                   square.x[1] == size;
    return square;
}

/* Pixel (y, x) of the square; `whole` is a constant. */
INLINE Vector pixel_at(const Square *square, const float *from, int y, int x, bool whole)
{
    if (!whole && (y < square->y[0] || y >= square->y[1] || x < square->x[0] || x >= square->x[1]))
        return (Vector) { 0 };
    return load(from + y * square->row + x * square->pixel);
}

INLINE void window_vector(const Square *square, const float *from, float *to, int64_t pitch,
                          bool whole)
{
    Vector rows[WINDOW][WINDOW];

#pragma GCC unroll 6
    for (int x = 0; x < WINDOW; x++) {
        Vector d[WINDOW], points[WINDOW];

#pragma GCC unroll 6
        for (int y = 0; y < WINDOW; y++)
            d[y] = pixel_at(square, from, y, x, whole);
        window_axis(d, points);
#pragma GCC unroll 6
        for (int y = 0; y < WINDOW; y++)
            rows[y][x] = points[y];
    }
#pragma GCC unroll 6
    for (int y = 0; y < WINDOW; y++) {
        Vector points[WINDOW];

        window_axis(rows[y], points);
#pragma GCC unroll 6
        for (int x = 0; x < WINDOW; x++, to += pitch)
            store(to, points[x]);
    }
}

INLINE void spread_vector(const Square *square, const float *from, float *to, int64_t pitch,
                          bool whole)
{
    Vector rows[WINDOW][TILE];

#pragma GCC unroll 4
    for (int x = 0; x < TILE; x++) {
        Vector d[TILE], points[WINDOW];

#pragma GCC unroll 4
        for (int y = 0; y < TILE; y++)
            d[y] = pixel_at(square, from, y, x, whole);
        spread_axis(d, points);
#pragma GCC unroll 6
        for (int y = 0; y < WINDOW; y++)
            rows[y][x] = points[y];
    }
#pragma GCC unroll 6
    for (int y = 0; y < WINDOW; y++) {
        Vector points[WINDOW];

        spread_axis(rows[y], points);
#pragma GCC unroll 6
        for (int x = 0; x < WINDOW; x++, to += pitch)
            store(to, points[x]);
    }
}

typedef void PixelLoop(const Square *square, const float *from, float *to, int64_t pitch);

#define PIXEL_LOOPS(name)                                                                          \
    static void name##_whole(const Square *square, const float *from, float *to, int64_t pitch)    \
    {                                                                                              \
        name##_vector(square, from, to, pitch, true);                                              \
    }                                                                                              \
    static void name##_part(const Square *square, const float *from, float *to, int64_t pitch)     \
    {                                                                                              \
        name##_vector(square, from, to, pitch, false);                                             \
    }
PIXEL_LOOPS(window)
PIXEL_LOOPS(spread)

static void each_channel(const KilnWinogradImages *from, const Square *square, PixelLoop *loop,
                         const KilnWinogradPoints *to)
{
    for (int64_t c = 0; c < from->channels; c += WIDTH)
        loop(square, square->block + c / from->block * square->next_block + c % from->block,
             to->to + c / to->columns * to->panel + c % to->columns, to->pitch);
}

static void window(const KilnWinogradImages *from, const KilnWinogradPlace *place,
                   const KilnWinogradPoints *to)
{
    const Square square = square_at(from, place, WINDOW);

    each_channel(from, &square, square.whole ? window_whole : window_part, to);
}

static void spread(const KilnWinogradImages *from, const KilnWinogradPlace *place,
                   const KilnWinogradPoints *to)
{
    const Square square = square_at(from, place, TILE);

    each_channel(from, &square, square.whole ? spread_whole : spread_part, to);
}

/* ---- Weights --------------------------------------------------------------------------------- */

/* Of the columns of a vector. */
INLINE void weight_vector(const float *taps, bool turned, float *to, int64_t pitch)
{
    Vector rows[WINDOW][3];

#pragma GCC unroll 3
    for (int x = 0; x < 3; x++) {
        Vector g[3], points[WINDOW];

#pragma GCC unroll 3
        for (int y = 0; y < 3; y++)
            g[y] = load(taps + (turned ? 8 - 3 * y - x : 3 * y + x) * COLUMNS);
        weight_axis(g, points);
#pragma GCC unroll 6
        for (int y = 0; y < WINDOW; y++)
            rows[y][x] = points[y];
    }
#pragma GCC unroll 6
    for (int y = 0; y < WINDOW; y++) {
        Vector points[WINDOW];

        weight_axis(rows[y], points);
#pragma GCC unroll 6
        for (int x = 0; x < WINDOW; x++, to += pitch)
            store(to, points[x]);
    }
}

static void weight(const KilnWinogradWeight *weight, int64_t column, int64_t begin, int64_t end,
                   float *to, int64_t pitch)
{
    float taps[KILN_F4_ROWS * TAPS * COLUMNS];
    const int64_t rows = end - begin, in = weight->in;
    const int64_t count = kiln_min_i64(COLUMNS, (weight->gradient ? in : weight->out) - column);

    if (!weight->gradient)
        pack_transposed(taps, COLUMNS, weight->data + (column * in + begin) * TAPS, in * TAPS,
                        count, rows * TAPS);
    for (int64_t l = 0; l < rows; l++) {
        const float *row = taps + l * TAPS * COLUMNS;

        if (weight->gradient) {
            row = taps;
            pack_transposed(taps, COLUMNS, weight->data + ((begin + l) * in + column) * TAPS, TAPS,
                            count, TAPS);
        }
        for (int64_t lane = 0; lane < COLUMNS; lane += WIDTH)
            weight_vector(row + lane, weight->gradient, to + l * COLUMNS + lane, pitch);
    }
}

/* ---- Results --------------------------------------------------------------------------------- */

/* Finishes and stores `count` pixels of a row; y and `more` (or NULL) are at the first. */
INLINE void put_row(const KilnWinogradResult *result, Vector row[TILE], Vector bias,
                    const float *more, float *y, int64_t pixel, int64_t count)
{
    for (int64_t x = 0; x < count; x++) {
        row[x] += bias;
        if (more != NULL)
            row[x] += load(more + x * pixel);
        if (result->relu)
            row[x] = (Vector)((Words)row[x] & ~(Words)(row[x] < 0.0f));
    }
    if (result->activation != NULL)
        result->activation((float *)row, (const float *)row, NULL, NULL, result->p, result->q,
                           TILE * WIDTH);
    for (int64_t x = 0; x < count; x++)
        store(y + x * pixel, row[x]);
}

static void result_vector(const KilnWinogradResult *result, const Square *square, float *y,
                          Vector bias, const float *m, int64_t pitch)
{
    const float *more = result->more == NULL ? NULL : result->more + (y - result->y.data);
    Vector rows[TILE][WINDOW];

#pragma GCC unroll 6
    for (int x = 0; x < WINDOW; x++) {
        Vector d[WINDOW], to[TILE];

#pragma GCC unroll 6
        for (int k = 0; k < WINDOW; k++)
            d[k] = load(m + (k * WINDOW + x) * pitch);
        result_axis(d, to);
#pragma GCC unroll 4
        for (int k = 0; k < TILE; k++)
            rows[k][x] = to[k];
    }
    for (int64_t k = 0; k < square->y[1]; k++) {
        Vector to[TILE];

        result_axis(rows[k], to);
        put_row(result, to, bias, more == NULL ? NULL : more + k * square->row, y + k * square->row,
                square->pixel, square->x[1]);
    }
}

static void result(const KilnWinogradResult *result, const KilnWinogradPlace *place,
                   int64_t channel, int64_t count, const float *m, int64_t pitch)
{
    const Square square = square_at(&result->y, place, TILE);
    const int64_t block = result->y.block;

    for (int64_t c = channel; c < channel + count; c += WIDTH, m += WIDTH)
        result_vector(result, &square, square.block + c / block * square.next_block + c % block,
                      result->bias == NULL ? (Vector) { 0 } : load(result->bias + c), m, pitch);
}

static void gather(float *kernels, const float *m, int64_t pitch, int64_t count)
{
    for (int64_t i = 0; i < count; i += WIDTH, m += WIDTH) {
        Vector rows[3][WINDOW], taps[TAPS];

#pragma GCC unroll 6
        for (int x = 0; x < WINDOW; x++) {
            Vector d[WINDOW], to[3];

#pragma GCC unroll 6
            for (int y = 0; y < WINDOW; y++)
                d[y] = load(m + (y * WINDOW + x) * pitch);
            gather_axis(d, to);
#pragma GCC unroll 3
            for (int y = 0; y < 3; y++)
                rows[y][x] = to[y];
        }
#pragma GCC unroll 3
        for (int y = 0; y < 3; y++)
            gather_axis(rows[y], taps + 3 * y);
        for (int lane = 0; lane < WIDTH; lane++)
            for (int tap = 0; tap < TAPS; tap++)
                *kernels++ = taps[tap][lane];
    }
}

const KilnWinogradLoops KILN_LOOPS(winograd_loops) = { .width = WIDTH,
                                                       .window = window,
                                                       .spread = spread,
                                                       .weight = weight,
                                                       .result = result,
                                                       .gather = gather };
