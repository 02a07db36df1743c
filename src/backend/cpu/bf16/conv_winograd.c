/* 3 x 3 convolutions with stride 1, and the gradients of their input, in bf16 by Winograd's
 * algorithm F(2 x 2, 3 x 3) (Lavin and Gray 2016): 16 products for 4 pixels instead of 36. Tiles of
 * 4 x 4 pixels and the weight are transformed in f32 and rounded to bf16, the products are summed
 * and transformed back in f32. Larger tiles would save more, but their sums of far-apart values
 * need more digits than bf16 has.
 *
 * For vdpbf16ps alone: AMX multiplies faster than the transforms feed it. */
#include "backend/cpu/bf16/conv.h"

#include "backend/cpu/cpu.h"

#if defined(__x86_64__)

#include "backend/cpu/bf16/winograd.h"
#include "base/min.h"
#include "tensor/bf16.h"

#define VECTOR __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))

enum {
    POINTS = KILN_WINOGRAD_POINTS,
    LANES = KILN_WINOGRAD_LANES,
    MIN_TILES = 64, /* fewer do not pay for the weight's transform */
    MIN_GROUP = 4,  /* blocks of channels: fewer do not pay for the pixels' transform */
    EACH = 4,       /* at least this many items per thread, if there are enough channels */
    /* Between points, in elements: padded, since multiples of 4 KiB conflict in the cache. */
    SUMS_PITCH = KILN_TILE_BLOCK * KILN_TILE_BLOCK + LANES,
    PIXELS_PAD = KILN_TILE_DEPTH
};

typedef struct Work {
    const KilnArg *source, *weight, *bias, *result;
    const KilnTileOps *tiles;
    bool gradient;
    int64_t depth, channels;
    int64_t steps;               /* tiles of depth */
    int64_t padding[2];          /* before the first pixel of the source */
    int64_t down, across, count; /* tiles of pixels of an image; of all images */
    int64_t group, groups;       /* blocks of channels of an item, and how many such groups */
    uint16_t *right;             /* transformed weight: [point][row of tiles][step] */
    char *scratch;               /* per thread: transformed pixels, then sums */
} Work;

/* ---- Sizes ------------------------------------------------------------------------------ */

static int64_t channel_blocks(const Work *w)
{
    return w->channels / KILN_TILE_BLOCK;
}

static int64_t pixel_blocks(const Work *w)
{
    return (w->count + KILN_TILE_BLOCK - 1) / KILN_TILE_BLOCK;
}

/* Elements of the transformed pixels of a block, at one point. */
static int64_t pixels_pitch(const Work *w)
{
    return KILN_TILE_BLOCK * w->depth + PIXELS_PAD;
}

/* Elements of the transformed weight at one point. */
static int64_t weight_pitch(const Work *w)
{
    return w->channels * w->depth;
}

static size_t pixels_bytes(const Work *w)
{
    return (size_t)(POINTS * pixels_pitch(w)) * sizeof(uint16_t);
}

static size_t scratch_bytes(const Work *w)
{
    return pixels_bytes(w) + (size_t)(POINTS * SUMS_PITCH) * sizeof(float);
}

static bool is_fit(const KilnCall *call)
{
    const KilnConvAttrs *attrs = call->attrs;
    const int64_t *weight = call->inputs[1].shape.dim;

    if (call->inputs[0].dtype != KILN_BF16 || kiln_cpu(call)->tiles != &kiln_tiles_vectors ||
        call->backend->convolution != KILN_CONVOLUTION_AUTO || attrs->groups != 1 ||
        weight[2] != 3 || weight[3] != 3)
        return false;
    for (int axis = 0; axis < 2; axis++)
        if (attrs->stride[axis] != 1 || attrs->dilation[axis] != 1 || attrs->padding[axis] > 2 ||
            weight[axis] % KILN_TILE_BLOCK != 0 || weight[axis] > KILN_WINOGRAD_MAX_CHANNELS)
            return false;
    return true;
}

/* Input 0 is the source, for a gradient too; the weight is input 1. */
static bool measure(const KilnCall *call, bool gradient, Work *w)
{
    const KilnConvAttrs *attrs = call->attrs;
    const int64_t *weight = call->inputs[1].shape.dim, *y = call->outputs[0].shape.dim;
    const int threads = call->backend->threads;

    if (!is_fit(call))
        return false;
    *w = (Work) { .source = &call->inputs[0],
                  .weight = &call->inputs[1],
                  .bias = gradient || call->inputs[2].absent ? NULL : &call->inputs[2],
                  .result = &call->outputs[0],
                  .tiles = kiln_cpu(call)->tiles,
                  .gradient = gradient,
                  .depth = weight[gradient ? 0 : 1],
                  .channels = weight[gradient ? 1 : 0],
                  .down = (y[1] + 1) / 2,
                  .across = (y[2] + 1) / 2 };
    for (int axis = 0; axis < 2; axis++)
        w->padding[axis] = gradient ? 2 - attrs->padding[axis] : attrs->padding[axis];
    w->steps = w->depth / KILN_TILE_DEPTH;
    w->count = y[0] * w->down * w->across;
    w->group = channel_blocks(w);
    while (w->group > MIN_GROUP &&
           pixel_blocks(w) * (channel_blocks(w) / w->group) < EACH * threads)
        w->group = (w->group + 1) / 2;
    w->groups = (channel_blocks(w) + w->group - 1) / w->group;
    return w->count >= MIN_TILES;
}

/* ---- The weight --------------------------------------------------------------------------- */

/* u = G g Gᵀ of 16 kernels. */
KILN_WINOGRAD void transform_kernels(const __m512 g[3][3], __m512 u[POINTS])
{
    const __m512 half = _mm512_set1_ps(0.5f);
    __m512 rows[4][3];

#pragma GCC unroll 3
    for (int x = 0; x < 3; x++) {
        const __m512 outer = _mm512_mul_ps(half, _mm512_add_ps(g[0][x], g[2][x]));
        const __m512 inner = _mm512_mul_ps(half, g[1][x]);

        rows[0][x] = g[0][x];
        rows[1][x] = _mm512_add_ps(outer, inner);
        rows[2][x] = _mm512_sub_ps(outer, inner);
        rows[3][x] = g[2][x];
    }
#pragma GCC unroll 4
    for (int y = 0; y < 4; y++) {
        const __m512 outer = _mm512_mul_ps(half, _mm512_add_ps(rows[y][0], rows[y][2]));
        const __m512 inner = _mm512_mul_ps(half, rows[y][1]);

        u[4 * y] = rows[y][0];
        u[4 * y + 1] = _mm512_add_ps(outer, inner);
        u[4 * y + 2] = _mm512_sub_ps(outer, inner);
        u[4 * y + 3] = rows[y][2];
    }
}

/* Transforms 16 adjacent kernels; a gradient's are turned around. */
KILN_WINOGRAD void transform_weights(const Work *w, bool gradient, int64_t first, __m512 u[POINTS])
{
    const uint16_t *narrow = (const uint16_t *)w->weight->data + 9 * first;
    const float *kernels = (const float *)w->weight->data + 9 * first;
    float wide[9 * LANES];
    __m512 taps[9], g[3][3];

    if (w->weight->dtype != KILN_F32) {
        kiln_bf16_to_f32(wide, narrow, 9 * LANES);
        kernels = wide;
    }
    kiln_winograd_split_taps(kernels, taps);
#pragma GCC unroll 9
    for (int tap = 0; tap < 9; tap++)
        g[tap / 3][tap % 3] = taps[gradient ? 8 - tap : tap];
    transform_kernels(g, u);
}

/* Transforms and packs one tile at each point: channels from `row`, depth from `k`. A vector holds
 * 16 channels of one depth: two of them are the pairs of 16 rows. */
VECTOR static void pack_gradient_tile(const Work *w, int64_t row, int64_t k)
{
    uint16_t *tile = w->right + row * w->depth + k / KILN_TILE_DEPTH * KILN_TILE_SIZE;

    for (int64_t i = 0; i < KILN_TILE_DEPTH; i += 2, tile += 2 * KILN_TILE_ROWS) {
        __m512 first[POINTS], second[POINTS];

        transform_weights(w, true, (k + i) * w->channels + row, first);
        transform_weights(w, true, (k + i + 1) * w->channels + row, second);
        for (int64_t point = 0; point < POINTS; point++)
            kiln_winograd_store_pairs(tile + point * weight_pitch(w), first[point], second[point]);
    }
}

/* The same where a vector holds 16 values of depth of one channel. */
VECTOR static void pack_tile(const Work *w, int64_t row, int64_t k)
{
    enum { TILE = KILN_TILE_SIZE + 2 * LANES };
    _Alignas(64) uint16_t u[POINTS * TILE];

    for (int64_t i = 0; i < KILN_TILE_ROWS; i++) {
        const int64_t first = (row + i) * w->depth + k;
        __m512 low[POINTS], high[POINTS];

        transform_weights(w, false, first, low);
        transform_weights(w, false, first + LANES, high);
        for (int64_t point = 0; point < POINTS; point++)
            _mm512_store_si512(u + point * TILE + i * KILN_TILE_DEPTH,
                               (__m512i)_mm512_cvtne2ps_pbh(high[point], low[point]));
    }
    for (int64_t point = 0; point < POINTS; point++) {
        const KilnTileMatrix matrix = { .data = u + point * TILE,
                                        .stride = KILN_TILE_DEPTH,
                                        .rows = KILN_TILE_ROWS,
                                        .depth = KILN_TILE_DEPTH };

        kiln_tiles_pack(w->right + point * weight_pitch(w) + row * w->depth +
                            k / KILN_TILE_DEPTH * KILN_TILE_SIZE,
                        &matrix, true, 0, 1);
    }
}

/* Items are rows of tiles. */
static void pack_weight(void *context, KilnShares *shares)
{
    const Work *w = context;

    for (int64_t t; (t = kiln_next_item(shares)) >= 0;)
        for (int64_t k = 0; k < w->depth; k += KILN_TILE_DEPTH)
            (w->gradient ? pack_gradient_tile : pack_tile)(w, t * KILN_TILE_ROWS, k);
}

/* ---- Pixels ------------------------------------------------------------------------------- */

/* Where tile number `tile` is: its image, and the row and column of its first pixel. */
typedef struct Place {
    int64_t image, y, x;
} Place;

static Place place_of(const Work *w, int64_t tile)
{
    const int64_t within = tile % (w->down * w->across);

    return (Place) { tile / (w->down * w->across), within / w->across * 2, within % w->across * 2 };
}

/* Row r of a block of left factors, without the point. */
static uint16_t *row_of(const Work *w, uint16_t *v, int64_t r)
{
    return v + r / KILN_TILE_ROWS * w->steps * KILN_TILE_SIZE +
           r % KILN_TILE_ROWS * KILN_TILE_DEPTH;
}

KILN_WINOGRAD void store_points(const __m512 points[POINTS], uint16_t *v, int64_t pitch)
{
#pragma GCC unroll 16
    for (int point = 0; point < POINTS; point++)
        _mm256_store_si256((__m256i *)(void *)(v + point * pitch),
                           (__m256i)_mm512_cvtneps_pbh(points[point]));
}

/* Bᵀ d B of row r of the block; with `pair`, also of row r + 1, the next tile in the same row of
 * the image. */
VECTOR static void transform_tiles(const Work *w, const Place *place, int64_t r, bool pair,
                                   uint16_t *v)
{
    const int64_t pitch = pixels_pitch(w);
    const uint16_t *pixels[4 * KILN_WINOGRAD_PAIR];
    uint16_t *to = row_of(w, v, r), *next = row_of(w, v, r + 1);

    kiln_winograd_find(w->source, place->image, place->y - w->padding[0], place->x - w->padding[1],
                       4, pair ? KILN_WINOGRAD_PAIR : 4, pixels);
    for (int64_t k = 0; k < w->depth; k += LANES) {
        const int64_t at = k / KILN_TILE_DEPTH * KILN_TILE_SIZE + k % KILN_TILE_DEPTH;
        __m512 rows[4][KILN_WINOGRAD_PAIR], points[POINTS];

        if (pair)
            kiln_winograd_columns(pixels, KILN_WINOGRAD_PAIR, k, rows);
        else
            kiln_winograd_columns(pixels, 4, k, rows);
        kiln_winograd_tile(rows, 0, points);
        store_points(points, to + at, pitch);
        if (!pair)
            continue;
        kiln_winograd_tile(rows, 2, points);
        store_points(points, next + at, pitch);
    }
}

/* Transforms a block of tiles as left factors: [point][row of tiles][step]. */
static void transform_block(const Work *w, int64_t first, int64_t rows, uint16_t *v)
{
    for (int64_t r = 0; r < rows;) {
        const Place place = place_of(w, first + r);
        const bool pair = r + 1 < rows && place.x / 2 + 1 < w->across;

        transform_tiles(w, &place, r, pair, v);
        r += pair ? 2 : 1;
    }
}

/* ---- Results ------------------------------------------------------------------------------ */

VECTOR static void store_pixel(const Work *w, int64_t at, int64_t channel, __m512 sum)
{
    if (w->bias != NULL)
        sum = _mm512_add_ps(sum, _mm512_loadu_ps((const float *)w->bias->data + channel));
    if (w->result->dtype == KILN_F32)
        _mm512_storeu_ps((float *)w->result->data + at, sum);
    else
        _mm256_storeu_si256((__m256i *)(void *)((uint16_t *)w->result->data + at),
                            (__m256i)_mm512_cvtneps_pbh(sum));
}

/* Aᵀ m A of 16 channels of a tile: 2 x 2 pixels, of which the image may lack some. */
VECTOR static void transform_sums(const Work *w, const float *m, const Place *place,
                                  int64_t channel)
{
    const int64_t *dim = w->result->shape.dim;
    __m512 rows[2][4];

#pragma GCC unroll 4
    for (int x = 0; x < 4; x++) {
        __m512 d[4];

#pragma GCC unroll 4
        for (int y = 0; y < 4; y++)
            d[y] = _mm512_load_ps(m + (4 * y + x) * SUMS_PITCH);
        rows[0][x] = _mm512_add_ps(_mm512_add_ps(d[0], d[1]), d[2]);
        rows[1][x] = _mm512_sub_ps(_mm512_sub_ps(d[1], d[2]), d[3]);
    }
    for (int64_t y = 0; y < kiln_min_i64(2, dim[1] - place->y); y++) {
        const int64_t at = ((place->image * dim[1] + place->y + y) * dim[2] + place->x) * dim[3] +
                           channel;
        const __m512 *d = rows[y];

        store_pixel(w, at, channel, _mm512_add_ps(_mm512_add_ps(d[0], d[1]), d[2]));
        if (place->x + 1 < dim[2])
            store_pixel(w, at + dim[3], channel, _mm512_sub_ps(_mm512_sub_ps(d[1], d[2]), d[3]));
    }
}

/* ---- The product -------------------------------------------------------------------------- */

/* The products of a block of tiles and a block of channels at every point. */
static void multiply_points(const Work *w, const uint16_t *v, int64_t rows, int64_t column,
                            float *sums)
{
    const int64_t line = w->steps * KILN_TILE_SIZE;

    for (int64_t point = 0; point < POINTS; point++) {
        const KilnTileSide left = {
            .first = v + point * pixels_pitch(w), .second = line, .step = KILN_TILE_SIZE, .row = 64
        };
        const KilnTileSide right = { .first = w->right + point * weight_pitch(w) +
                                              2 * column * line,
                                     .second = line,
                                     .step = KILN_TILE_SIZE,
                                     .row = 64 };

        w->tiles->block(sums + point * SUMS_PITCH, KILN_TILE_BLOCK, &left, &right, rows, w->steps,
                        1, false);
    }
}

/* Block number `block` of tiles, for a group of channels. */
static void one_item(const Work *w, int64_t block, int64_t group, void *scratch)
{
    const int64_t first = block * KILN_TILE_BLOCK, from = group * w->group;
    const int64_t rows = kiln_min_i64(KILN_TILE_BLOCK, w->count - first);
    uint16_t *v = scratch;
    float *sums = (float *)(void *)((char *)scratch + pixels_bytes(w));

    transform_block(w, first, rows, v);
    for (int64_t column = from; column < kiln_min_i64(from + w->group, channel_blocks(w));
         column++) {
        multiply_points(w, v, rows, column, sums);
        for (int64_t r = 0; r < rows; r++) {
            const Place place = place_of(w, first + r);

            for (int64_t lane = 0; lane < KILN_TILE_BLOCK; lane += LANES)
                transform_sums(w, sums + r * KILN_TILE_BLOCK + lane, &place,
                               column * KILN_TILE_BLOCK + lane);
        }
    }
}

static void multiply(void *context, KilnShares *shares)
{
    const Work *w = context;
    void *scratch = w->scratch + (size_t)kiln_thread() * scratch_bytes(w);

    for (int64_t i; (i = kiln_next_item(shares)) >= 0;)
        one_item(w, i % pixel_blocks(w), i / pixel_blocks(w), scratch);
}

/* ---- The kernels ---------------------------------------------------------------------------- */

static size_t right_bytes(const Work *w)
{
    return (size_t)(POINTS * weight_pitch(w)) * sizeof(uint16_t);
}

bool kiln_bf16_conv_winograd_prepare(KilnCall *call, bool gradient)
{
    Work w;

    if (!measure(call, gradient, &w))
        return false;
    call->inputs[0].layout = call->inputs[1].layout = KILN_PLAIN;
    call->workspace_size = right_bytes(&w) + (size_t)call->backend->threads * scratch_bytes(&w);
    return true;
}

bool kiln_bf16_conv_winograd_run(KilnCall *call, bool gradient)
{
    const int threads = call->backend->threads;
    Work w;

    if (!measure(call, gradient, &w))
        return false;
    w.right = call->workspace;
    w.scratch = (char *)call->workspace + right_bytes(&w);
    kiln_parallel_items(threads, w.channels / KILN_TILE_ROWS, pack_weight, &w);
    kiln_parallel_items(threads, pixel_blocks(&w) * w.groups, multiply, &w);
    return true;
}

#else

/* Other processors have no vdpbf16ps. */
bool kiln_bf16_conv_winograd_prepare(KilnCall *call, bool gradient)
{
    (void)call, (void)gradient;
    return false;
}

bool kiln_bf16_conv_winograd_run(KilnCall *call, bool gradient)
{
    (void)call, (void)gradient;
    return false;
}

#endif
