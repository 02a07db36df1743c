/* The gradient of the weight of a 3 x 3 convolution with stride 1, in bf16 by Winograd's algorithm
 * (Lavin and Gray 2016): the transpose of F(2 x 2, 3 x 3), dw = Gᵀ [(A dy Aᵀ) · (Bᵀ x B)] G, summed
 * over tiles of 2 x 2 pixels of dy and the 4 x 4 of x that they meet. 16 products for 36. Pixels
 * are transformed in f32 and rounded to bf16; sums and their transform are f32.
 *
 * At each of the 16 points it is a product [O, tiles] · [tiles, I]. Bands of tiles are transformed
 * and multiplied in order. With few channels each thread has its own bands and sums; else all
 * threads share each band, and divide the sums.
 *
 * For vdpbf16ps alone, as conv_winograd.c. */
#include "backend/cpu/bf16/conv.h"

#include "backend/cpu/cpu.h"

#if defined(__x86_64__)

#include <string.h>

#include "backend/cpu/bf16/winograd.h"
#include "base/min.h"

#define VECTOR __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))

enum {
    POINTS = KILN_WINOGRAD_POINTS,
    LANES = KILN_WINOGRAD_LANES,
    TAPS = 9,
    MIN_TILES = 64,        /* fewer do not pay for the transform of the sums */
    OWN_SUMS = 1 << 18,    /* floats, per thread with its own sums */
    OWN_BAND = 1 << 21,    /* bytes of a band, per thread with its own; all channels at a point
                            * then fit the second-level cache */
    SHARED_BAND = 1 << 23, /* bytes of a band of all threads */
    CHUNK = 4 * KILN_TILE_BLOCK, /* channels that are transformed at once */
    /* Between points, in elements: padded, since multiples of 4 KiB conflict in the cache. */
    SUMS_PITCH = KILN_TILE_BLOCK * KILN_TILE_BLOCK + LANES,
    SIDE_PAD = KILN_TILE_DEPTH
};

/* One factor: a gradient or an image, transformed. */
typedef struct Side {
    const KilnArg *source;
    int64_t channels;
    uint16_t *at; /* [point][16 channels][32 tiles][pair of tiles][channel][2] */
} Side;

typedef struct Work {
    const KilnTileOps *tiles;
    const KilnConvAttrs *attrs;
    Side dy, x;
    float *dw;
    float *sums;                 /* [block][point], for each part */
    int64_t down, across, count; /* tiles of an image; of all images */
    int64_t steps, bands;        /* of 32 tiles in a band; bands */
    int64_t rows, columns;       /* blocks of sums */
    int64_t parts;               /* threads with their own bands and sums; 1: all share each band */
    int64_t band, begin;         /* current band; the first of this part */
} Work;

/* ---- Sizes ------------------------------------------------------------------------------ */

static int64_t pitch_of(const Work *w, const Side *side)
{
    return side->channels * w->steps * KILN_TILE_DEPTH + SIDE_PAD;
}

static int64_t band_size(const Work *w)
{
    return POINTS * (pitch_of(w, &w->dy) + pitch_of(w, &w->x));
}

static int64_t block_count(const Work *w)
{
    return w->rows * w->columns;
}

static int64_t sums_size(const Work *w)
{
    return block_count(w) * POINTS * SUMS_PITCH;
}

static bool is_fit(const KilnCall *call)
{
    const KilnConvAttrs *attrs = call->attrs;
    const int64_t *weight = call->outputs[0].shape.dim;

    if (call->inputs[0].dtype != KILN_BF16 || call->inputs[1].dtype != KILN_BF16 ||
        kiln_cpu(call)->tiles != &kiln_tiles_vectors || attrs->groups != 1 ||
        call->backend->convolution != KILN_CONVOLUTION_AUTO || weight[2] != 3 || weight[3] != 3)
        return false;
    for (int axis = 0; axis < 2; axis++)
        if (attrs->stride[axis] != 1 || attrs->dilation[axis] != 1 ||
            weight[axis] % KILN_TILE_BLOCK != 0 || weight[axis] > KILN_WINOGRAD_MAX_CHANNELS)
            return false;
    return true;
}

static bool measure(const KilnCall *call, Work *w)
{
    const KilnArg *dy = &call->inputs[0], *x = &call->inputs[1];
    const int64_t *dim = dy->shape.dim;
    const int64_t threads = call->backend->threads;

    if (!is_fit(call))
        return false;
    *w = (Work) { .tiles = kiln_cpu(call)->tiles,
                  .attrs = call->attrs,
                  .dy = { .source = dy, .channels = dim[3] },
                  .x = { .source = x, .channels = x->shape.dim[3] },
                  .dw = call->outputs[0].data,
                  .down = (dim[1] + 1) / 2,
                  .across = (dim[2] + 1) / 2,
                  .rows = dim[3] / KILN_TILE_BLOCK,
                  .columns = x->shape.dim[3] / KILN_TILE_BLOCK };
    w->count = dim[0] * w->down * w->across;

    const int64_t all = (w->count + KILN_TILE_DEPTH - 1) / KILN_TILE_DEPTH;
    const int64_t step = POINTS * KILN_TILE_DEPTH * (int64_t)sizeof(uint16_t) *
                         (w->dy.channels + w->x.channels);
    const bool own = w->dy.channels * w->x.channels * POINTS <= OWN_SUMS && all >= 4 * threads;
    const int64_t most = (own ? OWN_BAND : SHARED_BAND) / step;

    w->steps = kiln_min_i64(most > 0 ? most : 1, own ? (all + threads - 1) / threads : all);
    w->bands = (all + w->steps - 1) / w->steps;
    w->parts = own ? kiln_min_i64(threads, w->bands) : 1;
    return w->count >= MIN_TILES;
}

/* ---- Pixels ------------------------------------------------------------------------------- */

/* The pixels of two tiles on one side: of both together where they are adjacent, else of one and
 * then the other. */
typedef struct Pixels {
    const uint16_t *at[2 * POINTS];
    bool adjacent;
} Pixels;

/* Bᵀ d B of two tiles of x. */
VECTOR static void transform_x(const Pixels *pixels, int64_t c, uint16_t *to, int64_t pitch)
{
    __m512 rows[4][KILN_WINOGRAD_PAIR], first[POINTS], second[POINTS];

    if (pixels->adjacent) {
        kiln_winograd_columns(pixels->at, KILN_WINOGRAD_PAIR, c, rows);
        kiln_winograd_tile(rows, 0, first);
        kiln_winograd_tile(rows, 2, second);
    } else {
        kiln_winograd_columns(pixels->at, 4, c, rows);
        kiln_winograd_tile(rows, 0, first);
        kiln_winograd_columns(pixels->at + POINTS, 4, c, rows);
        kiln_winograd_tile(rows, 0, second);
    }
#pragma GCC unroll 16
    for (int point = 0; point < POINTS; point++)
        kiln_winograd_store_pairs(to + point * pitch, first[point], second[point]);
}

/* A d, of two values along an axis. */
KILN_WINOGRAD void spread(__m512 a, __m512 b, __m512 to[4])
{
    to[0] = a;
    to[1] = _mm512_add_ps(a, b);
    to[2] = _mm512_sub_ps(a, b);
    to[3] = _mm512_sub_ps(_mm512_setzero_ps(), b);
}

/* A d Aᵀ of 2 x 2 pixels. */
KILN_WINOGRAD void spread_tile(const uint16_t *const pixels[4], int64_t c, __m512 points[POINTS])
{
    __m512 left[4], right[4];
    const __m512 d00 = kiln_winograd_load(pixels[0] + c), d01 = kiln_winograd_load(pixels[1] + c);
    const __m512 d10 = kiln_winograd_load(pixels[2] + c), d11 = kiln_winograd_load(pixels[3] + c);

    spread(d00, d10, left);
    spread(d01, d11, right);
#pragma GCC unroll 4
    for (int y = 0; y < 4; y++)
        spread(left[y], right[y], points + 4 * y);
}

VECTOR static void transform_dy(const Pixels *pixels, int64_t c, uint16_t *to, int64_t pitch)
{
    __m512 first[POINTS], second[POINTS];

    spread_tile(pixels->at, c, first);
    spread_tile(pixels->at + POINTS, c, second);
#pragma GCC unroll 16
    for (int point = 0; point < POINTS; point++)
        kiln_winograd_store_pairs(to + point * pitch, first[point], second[point]);
}

/* Finds the pixels of tiles `tile` and `tile` + 1; there are none after the last tile. */
static void find_pixels(const Work *w, const Side *side, int64_t tile, Pixels *ret)
{
    const bool is_x = side == &w->x;
    const int64_t tiles = w->down * w->across, size = is_x ? 4 : 2;
    const int64_t *padding = w->attrs->padding;

    ret->adjacent = is_x && tile % w->across + 1 < w->across;
    for (int i = 0; i < (ret->adjacent ? 1 : 2); i++) {
        const int64_t at = (tile + i) % tiles;
        const int64_t image = tile + i < w->count ? (tile + i) / tiles : -1;

        kiln_winograd_find(side->source, image, at / w->across * 2 - (is_x ? padding[0] : 0),
                           at % w->across * 2 - (is_x ? padding[1] : 0), size,
                           ret->adjacent ? KILN_WINOGRAD_PAIR : size, ret->at + i * POINTS);
    }
}

/* Transforms 32 tiles, channels [from, from + CHUNK), into step number `step` of the band. */
static void transform_step(const Work *w, const Side *side, int64_t step, int64_t from)
{
    const int64_t first = (w->band * w->steps + step) * KILN_TILE_DEPTH;
    const int64_t end = kiln_min_i64(from + CHUNK, side->channels);

    for (int64_t pair = 0; pair < KILN_TILE_DEPTH / 2; pair++) {
        Pixels pixels;

        find_pixels(w, side, first + 2 * pair, &pixels);
        for (int64_t c = from; c < end; c += LANES) {
            uint16_t *to = side->at + (c / LANES * w->steps + step) * KILN_TILE_SIZE +
                           pair * 2 * LANES;

            (side == &w->x ? transform_x : transform_dy)(&pixels, c, to, pitch_of(w, side));
        }
    }
}

static int64_t chunks_of(const Side *side)
{
    return (side->channels + CHUNK - 1) / CHUNK;
}

/* Chunks of channels of dy, then of x, at each step. */
static int64_t transform_count(const Work *w)
{
    return w->steps * (chunks_of(&w->dy) + chunks_of(&w->x));
}

static void transform_item(const Work *w, int64_t i)
{
    const int64_t chunk = i / w->steps, step = i % w->steps;

    if (chunk < chunks_of(&w->dy))
        transform_step(w, &w->dy, step, chunk * CHUNK);
    else
        transform_step(w, &w->x, step, (chunk - chunks_of(&w->dy)) * CHUNK);
}

static void transform(void *context, KilnShares *shares)
{
    for (int64_t i; (i = kiln_next_item(shares)) >= 0;)
        transform_item(context, i);
}

/* ---- The products --------------------------------------------------------------------------- */

/* The tiles of a block of channels at a point. */
static KilnTileSide side_at(const Work *w, const Side *side, int64_t block, int64_t point)
{
    const int64_t line = w->steps * KILN_TILE_SIZE;

    return (KilnTileSide) { .first = side->at + point * pitch_of(w, side) + 2 * block * line,
                            .second = line,
                            .step = KILN_TILE_SIZE,
                            .row = KILN_TILE_PAIRED };
}

static void multiply_point(const Work *w, int64_t block, int64_t point)
{
    const KilnTileSide left = side_at(w, &w->dy, block / w->columns, point);
    const KilnTileSide right = side_at(w, &w->x, block % w->columns, point);

    w->tiles->block(w->sums + (block * POINTS + point) * SUMS_PITCH, KILN_TILE_BLOCK, &left, &right,
                    KILN_TILE_BLOCK, w->steps, 1, w->band > w->begin);
}

/* Items are blocks of sums. */
static void multiply(void *context, KilnShares *shares)
{
    const Work *w = context;

    for (int64_t i; (i = kiln_next_item(shares)) >= 0;)
        for (int64_t point = 0; point < POINTS; point++)
            multiply_point(w, i, point);
}

/* ---- Sums to gradients ------------------------------------------------------------------------
 */

/* Gᵀ m, of four values along an axis. */
KILN_WINOGRAD void gather(const __m512 m[4], __m512 to[3])
{
    const __m512 half = _mm512_set1_ps(0.5f);
    const __m512 outer = _mm512_mul_ps(half, _mm512_add_ps(m[1], m[2]));

    to[0] = _mm512_add_ps(m[0], outer);
    to[1] = _mm512_mul_ps(half, _mm512_sub_ps(m[1], m[2]));
    to[2] = _mm512_add_ps(outer, m[3]);
}

/* Gᵀ m G of 16 kernels, from the sums of all parts. */
KILN_WINOGRAD void gather_kernels(const Work *w, const float *sums, __m512 taps[TAPS])
{
    __m512 rows[3][4];

#pragma GCC unroll 4
    for (int x = 0; x < 4; x++) {
        __m512 m[4], to[3];

#pragma GCC unroll 4
        for (int y = 0; y < 4; y++) {
            const float *at = sums + (4 * y + x) * SUMS_PITCH;

            m[y] = _mm512_loadu_ps(at);
            for (int64_t part = 1; part < w->parts; part++)
                m[y] = _mm512_add_ps(m[y], _mm512_loadu_ps(at + part * sums_size(w)));
        }
        gather(m, to);
#pragma GCC unroll 3
        for (int y = 0; y < 3; y++)
            rows[y][x] = to[y];
    }
#pragma GCC unroll 3
    for (int y = 0; y < 3; y++) {
        __m512 to[3];

        gather(rows[y], to);
#pragma GCC unroll 3
        for (int x = 0; x < 3; x++)
            taps[3 * y + x] = to[x];
    }
}

VECTOR static void finish_block(const Work *w, int64_t block)
{
    const int64_t row = block / w->columns * KILN_TILE_BLOCK;
    const int64_t column = block % w->columns * KILN_TILE_BLOCK;

    for (int64_t i = 0; i < KILN_TILE_BLOCK * KILN_TILE_BLOCK; i += LANES) {
        __m512 taps[TAPS];
        float *dw = w->dw +
                    ((row + i / KILN_TILE_BLOCK) * w->x.channels + column + i % KILN_TILE_BLOCK) *
                        TAPS;

        gather_kernels(w, w->sums + block * POINTS * SUMS_PITCH + i, taps);
        kiln_winograd_join_taps(taps, dw);
    }
}

static void finish(void *context, KilnShares *shares)
{
    for (int64_t i; (i = kiln_next_item(shares)) >= 0;)
        finish_block(context, i);
}

/* ---- The kernel -------------------------------------------------------------------------------
 */

/* Processes the bands of some parts, one after the other. */
static void run_parts(void *context, int64_t begin, int64_t end)
{
    for (int64_t part = begin; part < end; part++) {
        Work w = *(const Work *)context;
        const int64_t stop = w.bands * (part + 1) / w.parts;

        w.sums += part * sums_size(&w);
        w.dy.at += part * band_size(&w);
        w.x.at += part * band_size(&w);
        w.begin = w.bands * part / w.parts;
        for (w.band = w.begin; w.band < stop; w.band++) {
            for (int64_t i = 0; i < transform_count(&w); i++)
                transform_item(&w, i);
            for (int64_t point = 0; point < POINTS; point++)
                for (int64_t block = 0; block < block_count(&w); block++)
                    multiply_point(&w, block, point);
        }
    }
}

bool kiln_bf16_conv_weight_winograd_prepare(KilnCall *call)
{
    Work w;

    if (!measure(call, &w))
        return false;
    call->inputs[0].layout = call->inputs[1].layout = KILN_PLAIN;
    call->workspace_size = (size_t)(w.parts * sums_size(&w)) * sizeof(float) +
                           (size_t)(w.parts * band_size(&w)) * sizeof(uint16_t);
    return true;
}

bool kiln_bf16_conv_weight_winograd_run(KilnCall *call)
{
    const int threads = call->backend->threads;
    Work w;

    if (!measure(call, &w))
        return false;
    w.sums = call->workspace;
    w.dy.at = (uint16_t *)(void *)(w.sums + w.parts * sums_size(&w));
    w.x.at = w.dy.at + POINTS * pitch_of(&w, &w.dy);
    if (w.parts > 1)
        kiln_parallel(threads, w.parts, 1, 1, run_parts, &w);
    for (; w.parts == 1 && w.band < w.bands; w.band++) {
        kiln_parallel_items(threads, transform_count(&w), transform, &w);
        kiln_parallel_items(threads, block_count(&w), multiply, &w);
    }
    kiln_parallel_items(threads, block_count(&w), finish, &w);
    return true;
}

#else

/* Other processors have no vdpbf16ps. */
bool kiln_bf16_conv_weight_winograd_prepare(KilnCall *call)
{
    (void)call;
    return false;
}

bool kiln_bf16_conv_weight_winograd_run(KilnCall *call)
{
    (void)call;
    return false;
}

#endif
