/* The gradient of a convolution's weight, in bf16 on AMX. For each tap (ky, kx) of
 * the kernel it is a product [O, places] · [places, I] of dy and a shifted x.
 *
 * Both are packed once for all taps. Places of the result are numbered in rows
 * that are as wide as x needs them, with zeros in dy where there is no place; then
 * a tap is a constant distance in x. Tiles hold pairs of places, so x is packed
 * twice, for even and for odd distances; and with a stride s there is a plane of
 * x for each of the s x s phases. Images (or bands of their rows) are taken in
 * turns, as many as stay in the second cache. Threads share a turn where one is
 * enough; else each takes its own bands, with sums of its own.
 *
 * The zeros in dy are multiplied, with whatever x has there: an infinite or NaN x
 * next to them makes NaN of sums that should not have seen it. A step with such an
 * x has no finite loss anyway. */
#include "backend/cpu/amx_conv.h"

#include <string.h>

#include "backend/cpu/amx.h"
#include "backend/cpu/parallel.h"

enum {
    MOST_STEPS = 48,    /* tiles of depth in a turn */
    MOST_PLACES = 4096, /* of a band in a plane of x */
    MOST_TAPS = 64,
    MOST_PLANES = 18
};

/* One packed copy of x: a phase, and pairs that start at even or odd places. */
typedef struct Plane {
    int64_t phase[2];
    int parity;
} Plane;

typedef struct Tap {
    int plane;
    int64_t distance; /* in pairs */
} Tap;

typedef struct Work {
    const uint16_t *x, *dy;
    float *dw, *sums;
    uint16_t *left, *right;
    int64_t n, height, width, in, out_height, out_width, out;
    const int64_t *stride, *padding;
    int64_t columns;             /* of a row of places */
    int64_t band_rows, bands;    /* of an image of dy */
    int64_t steps, places;       /* of a band: tiles of depth, places in a plane of x */
    int64_t turn;                /* bands taken together */
    int64_t out_tiles, in_tiles; /* even */
    int n_taps, n_planes;
    Tap taps[MOST_TAPS];
    Plane planes[MOST_PLANES];
    int64_t begin, first, count; /* bands: of this thread from, of this turn */
    int64_t parts, share;        /* threads with sums of their own, and the bands of one */
} Work;

/* ---- Measures -------------------------------------------------------------------- */

static int64_t up(int64_t n, int64_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The plane with that phase and parity, made when there is none. */
static int plane_of(Work *w, int64_t py, int64_t px, int parity)
{
    for (int i = 0; i < w->n_planes; i++)
        if (w->planes[i].phase[0] == py && w->planes[i].phase[1] == px &&
            w->planes[i].parity == parity)
            return i;
    if (w->n_planes == MOST_PLANES)
        return -1;
    w->planes[w->n_planes] = (Plane) { .phase = { py, px }, .parity = parity };
    return w->n_planes++;
}

static bool find_taps(Work *w, const KilnConvAttrs *attrs, int64_t kh, int64_t kw)
{
    if (kh * kw > MOST_TAPS)
        return false;
    for (int64_t ky = 0; ky < kh; ky++)
        for (int64_t kx = 0; kx < kw; kx++) {
            const int64_t y = ky * attrs->dilation[0], x = kx * attrs->dilation[1];
            const int64_t distance = y / attrs->stride[0] * w->columns + x / attrs->stride[1];
            const int plane = plane_of(w, y % attrs->stride[0], x % attrs->stride[1],
                                       (int)(distance % 2));

            if (plane < 0)
                return false;
            w->taps[w->n_taps++] = (Tap) { .plane = plane, .distance = distance / 2 };
        }
    return true;
}

static int64_t block_count(const Work *w)
{
    return w->n_taps * (w->out_tiles / 2) * (w->in_tiles / 2);
}

static int64_t left_band(const Work *w)
{
    return w->out_tiles * w->steps * KILN_AMX_TILE;
}

static int64_t plane_size(const Work *w)
{
    return w->in_tiles * w->places * KILN_AMX_ROWS;
}

static int64_t right_band(const Work *w)
{
    return w->n_planes * plane_size(w);
}

static int64_t sums_size(const Work *w)
{
    return block_count(w) * KILN_AMX_BLOCK * KILN_AMX_BLOCK;
}

/* Packed bands of a turn. */
static int64_t turn_size(const Work *w)
{
    return w->turn * (left_band(w) + right_band(w));
}

static bool measure(const KilnCall *call, Work *w)
{
    const KilnConvAttrs *attrs = call->attrs;
    const KilnArg *dy = &call->inputs[0], *x = &call->inputs[1], *weight = &call->outputs[0];
    const int64_t kh = weight->shape.dim[2], kw = weight->shape.dim[3];
    const int64_t reach[2] = { (kh - 1) * attrs->dilation[0] / attrs->stride[0],
                               (kw - 1) * attrs->dilation[1] / attrs->stride[1] };

    *w = (Work) { .x = x->data,
                  .dy = dy->data,
                  .dw = weight->data,
                  .n = x->shape.dim[0],
                  .height = x->shape.dim[1],
                  .width = x->shape.dim[2],
                  .in = x->shape.dim[3],
                  .out_height = dy->shape.dim[1],
                  .out_width = dy->shape.dim[2],
                  .out = dy->shape.dim[3],
                  .stride = attrs->stride,
                  .padding = attrs->padding };
    w->columns = w->out_width + reach[1];
    w->band_rows = least(w->out_height, MOST_STEPS * KILN_AMX_DEPTH / w->columns);
    if (attrs->groups != 1 || w->band_rows < 1 || w->in < KILN_AMX_ROWS || w->out < KILN_AMX_ROWS)
        return false;
    w->bands = (w->out_height + w->band_rows - 1) / w->band_rows;
    w->steps = up(w->band_rows * w->columns, KILN_AMX_DEPTH) / KILN_AMX_DEPTH;
    w->places = up(w->steps * KILN_AMX_DEPTH + reach[0] * w->columns + reach[1] + 1, 2);
    w->turn = least(w->n * w->bands, MOST_STEPS / w->steps);
    w->parts = w->turn < w->n * w->bands ? least(call->backend->threads, w->n * w->bands) : 1;
    w->share = (w->n * w->bands + w->parts - 1) / w->parts;
    w->parts = (w->n * w->bands + w->share - 1) / w->share;
    w->out_tiles = up(w->out, KILN_AMX_BLOCK) / KILN_AMX_ROWS;
    w->in_tiles = up(w->in, KILN_AMX_BLOCK) / KILN_AMX_ROWS;
    return w->places <= MOST_PLACES && find_taps(w, attrs, kh, kw);
}

/* ---- Packing ----------------------------------------------------------------------- */

/* Where the places of a band are in dy; the band is number `band` of all. */
static void find_dy(const Work *w, int64_t band, int32_t *at)
{
    const int64_t n = band / w->bands, row = band % w->bands * w->band_rows;

    for (int64_t k = 0; k < w->steps * KILN_AMX_DEPTH; k++) {
        const int64_t y = row + k / w->columns, x = k % w->columns;
        const bool is_place = k / w->columns < w->band_rows && y < w->out_height &&
                              x < w->out_width;

        at[k] = is_place ? (int32_t)(((n * w->out_height + y) * w->out_width + x) * w->out) : -1;
    }
}

/* The same in a plane of x. */
static void find_x(const Work *w, int64_t band, const Plane *plane, int32_t *at)
{
    const int64_t n = band / w->bands, row = band % w->bands * w->band_rows;

    for (int64_t k = 0; k < w->places; k++) {
        const int64_t place = k + plane->parity;
        const int64_t y = (row + place / w->columns) * w->stride[0] + plane->phase[0] -
                          w->padding[0];
        const int64_t x = place % w->columns * w->stride[1] + plane->phase[1] - w->padding[1];
        const bool is_pixel = y >= 0 && y < w->height && x >= 0 && x < w->width;

        at[k] = is_pixel ? (int32_t)(((n * w->height + y) * w->width + x) * w->in) : -1;
    }
}

/* Pairs of tiles of rows of dy first, then those of every plane of x, for each band. */
static int64_t pack_each(const Work *w)
{
    return (w->out_tiles + w->n_planes * w->in_tiles) / 2;
}

static void pack(void *context, int64_t begin, int64_t end)
{
    const Work *w = context;
    const int64_t each = pack_each(w), outs = w->out_tiles / 2, ins = w->in_tiles / 2;
    int32_t at[MOST_PLACES];
    int64_t found = -1; /* what `at` is of */

    for (int64_t i = begin; i < end; i++) {
        const int64_t band = i / each, pair = i % each;
        const int64_t plane = pair < outs ? -1 : (pair - outs) / ins;
        const int64_t key = band * (w->n_planes + 1) + plane + 1;
        const int64_t row = (plane < 0 ? pair : (pair - outs) % ins) * KILN_AMX_BLOCK;

        if (key != found && plane < 0)
            find_dy(w, w->first + band, at);
        else if (key != found)
            find_x(w, w->first + band, &w->planes[plane], at);
        found = key;
        if (plane < 0)
            kiln_amx_gather(w->left + band * left_band(w) + row * w->steps * KILN_AMX_DEPTH,
                            w->steps * KILN_AMX_TILE, w->dy + row, at, w->steps * KILN_AMX_DEPTH,
                            w->out - row, false);
        else
            kiln_amx_gather(
                w->right + band * right_band(w) + plane * plane_size(w) + row * w->places,
                w->places * KILN_AMX_ROWS, w->x + row, at, w->places, w->in - row, true);
    }
}

/* ---- The product -------------------------------------------------------------------- */

/* Blocks of the sums: by tap, columns, rows. */
static void multiply(void *context, int64_t begin, int64_t end)
{
    const Work *w = context;
    const int64_t row_blocks = w->out_tiles / 2, column_blocks = w->in_tiles / 2;

    kiln_amx_begin();
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = i % row_blocks, column = i / row_blocks % column_blocks;
        const Tap *tap = &w->taps[i / row_blocks / column_blocks];
        const KilnAmxSide left = { .first = w->left + 2 * row * w->steps * KILN_AMX_TILE,
                                   .second = w->steps * KILN_AMX_TILE,
                                   .step = KILN_AMX_TILE,
                                   .run = left_band(w),
                                   .row = 64 };
        const KilnAmxSide right = { .first = w->right + tap->plane * plane_size(w) +
                                             2 * column * KILN_AMX_ROWS * w->places +
                                             tap->distance * 32,
                                    .second = KILN_AMX_ROWS * w->places,
                                    .step = KILN_AMX_TILE,
                                    .run = right_band(w),
                                    .row = 64 };

        kiln_amx_block(w->sums + i * KILN_AMX_BLOCK * KILN_AMX_BLOCK, KILN_AMX_BLOCK, &left, &right,
                       w->steps, w->count, w->first > w->begin);
    }
    kiln_amx_end();
}

/* Row o of a block, of all taps, to its place in [O, I, kh, kw]. */
static void unpack_row(const Work *w, int64_t block, int64_t o, int64_t first_in)
{
    const int64_t size = KILN_AMX_BLOCK * KILN_AMX_BLOCK;
    const int64_t next_tap = w->out_tiles / 2 * (w->in_tiles / 2) * size;
    const int64_t columns = least(KILN_AMX_BLOCK, w->in - first_in);
    const float *sums = w->sums + block * size + o % KILN_AMX_BLOCK * KILN_AMX_BLOCK;
    float *dw = w->dw + (o * w->in + first_in) * w->n_taps;

    for (int64_t tap = 0; tap < w->n_taps; tap++, sums += next_tap) {
        float total[KILN_AMX_BLOCK];

        memcpy(total, sums, sizeof(total));
        for (int64_t part = 1; part < w->parts; part++)
            for (int i = 0; i < KILN_AMX_BLOCK; i++)
                total[i] += sums[part * sums_size(w) + i];
        if (w->n_taps == 1)
            memcpy(dw, total, (size_t)columns * sizeof(float));
        else
            for (int64_t i = 0; i < columns; i++)
                dw[i * w->n_taps + tap] = total[i];
    }
}

/* Parts are blocks of one tap, each with those of the other taps: together they are
 * in the nearest cache. */
static void unpack(void *context, int64_t begin, int64_t end)
{
    const Work *w = context;
    const int64_t row_blocks = w->out_tiles / 2;

    for (int64_t block = begin; block < end; block++) {
        const int64_t row = block % row_blocks * KILN_AMX_BLOCK;

        for (int64_t o = row; o < least(w->out, row + KILN_AMX_BLOCK); o++)
            unpack_row(w, block, o, block / row_blocks * KILN_AMX_BLOCK);
    }
}

/* ---- The kernel ---------------------------------------------------------------------- */

bool kiln_amx_conv_weight_prepare(KilnCall *call)
{
    Work w;

    if (call->inputs[0].dtype != KILN_BF16 || call->inputs[1].dtype != KILN_BF16 ||
        !measure(call, &w))
        return false;
    call->inputs[0].layout = call->inputs[1].layout = KILN_PLAIN;
    call->workspace_size = (size_t)(w.parts * sums_size(&w)) * sizeof(float) +
                           (size_t)(w.parts * turn_size(&w)) * sizeof(uint16_t);
    return true;
}

/* The bands of some threads, one after the other. */
static void multiply_own(void *context, int64_t begin, int64_t end)
{
    for (int64_t part = begin; part < end; part++) {
        Work w = *(const Work *)context;
        const int64_t stop = least((part + 1) * w.share, w.n * w.bands);

        w.sums += part * sums_size(&w);
        w.left += part * turn_size(&w);
        w.right += part * turn_size(&w);
        w.begin = part * w.share;
        for (w.first = w.begin; w.first < stop; w.first += w.turn) {
            w.count = least(w.turn, stop - w.first);
            pack(&w, 0, w.count * pack_each(&w));
            multiply(&w, 0, block_count(&w));
        }
    }
}

void kiln_amx_conv_weight_run(KilnCall *call)
{
    const int threads = call->backend->threads;
    Work w;

    if (!measure(call, &w))
        return; /* it was prepared, so it does measure */
    w.sums = call->workspace;
    w.left = (uint16_t *)(void *)(w.sums + w.parts * sums_size(&w));
    w.right = w.left + w.turn * left_band(&w);
    w.count = w.turn;
    if (w.turn < w.n * w.bands) {
        kiln_parallel(threads, w.parts, 1, 1, multiply_own, &w);
    } else {
        kiln_parallel(threads, w.count * pack_each(&w), 1, 1, pack, &w);
        kiln_parallel(threads, block_count(&w), 1, 1, multiply, &w);
    }
    kiln_parallel(threads, w.out_tiles / 2 * (w.in_tiles / 2), 1, 1, unpack, &w);
}
