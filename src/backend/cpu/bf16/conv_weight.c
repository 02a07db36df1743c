/* The gradient of a convolution's weight, in bf16. For each tap (ky, kx) of the kernel it is
 * a product [O, pixels] · [pixels, I] of dy and a shifted x.
 *
 * Both are packed once for all taps, with some images innermost: a row of pixels is
 * [column][image], so a tap is a whole number of images away, and columns and rows that a tap takes
 * from the padding are skipped in whole tiles. With stride s there is a plane of x for each of the
 * s x s phases. Bands of rows, sized for the second-level cache, are processed in order. If there
 * are enough for all threads and the sums fit beside them, each thread has its own bands and sums;
 * else all threads share each band.
 *
 * The zeros that pad a row of dy are multiplied by whatever x holds there, so an infinite or NaN x
 * turns unrelated sums into NaN. Such a step has no finite loss anyway. */
#include "backend/cpu/bf16/conv.h"

#include <string.h>

#include "backend/cpu/cpu.h"
#include "base/min.h"

enum {
    MAX_STEPS = 64,    /* tiles of depth in a band */
    MAX_IMAGES = 32,   /* adjacent */
    MAX_PIXELS = 4096, /* of a row in a plane of x */
    MAX_TAPS = 64,
    MAX_PLANES = 16,
    OWN_SUMS = 1 << 18 /* floats, per thread with its own sums */
};

typedef struct Tap {
    int plane;
    int64_t row, column;    /* in the plane, of the element for pixel (0, 0) */
    int64_t from[2], to[2]; /* rows and columns of dy that meet a pixel of x */
} Tap;

typedef struct Work {
    const KilnTileOps *tiles;
    const uint16_t *x, *dy;
    float *dw, *sums;
    uint16_t *left, *right;
    int64_t n, height, width, in, out_height, out_width, out;
    const int64_t *stride, *padding;
    int64_t images, groups;           /* adjacent images, and the number of such groups */
    int64_t band_rows, bands;         /* of a group */
    int64_t steps;                    /* of a row: tiles of depth */
    int64_t plane_rows, plane_pixels; /* of a band; of a row in a plane of x */
    int64_t out_tiles, in_tiles;      /* even */
    int n_taps, n_planes;
    Tap taps[MAX_TAPS];
    int64_t planes[MAX_PLANES][2]; /* phases */
    int64_t band, begin;           /* current band; total; first band of this thread */
    int64_t parts;                 /* threads with their own sums; 1: all share each band */
} Work;

/* ---- Sizes ---------------------------------------------------------------------- */

static int64_t up(int64_t n, int64_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

/* The plane of that phase, added if there is none. */
static int plane_of(Work *w, int64_t py, int64_t px)
{
    for (int i = 0; i < w->n_planes; i++)
        if (w->planes[i][0] == py && w->planes[i][1] == px)
            return i;
    if (w->n_planes == MAX_PLANES)
        return -1;
    w->planes[w->n_planes][0] = py;
    w->planes[w->n_planes][1] = px;
    return w->n_planes++;
}

/* Finds the pixels along an axis whose source for a tap at `reach` is inside x. */
static void find_inside(const Work *w, Tap *tap, int axis, int64_t reach, int64_t size,
                        int64_t pixels)
{
    const int64_t stride = w->stride[axis], before = w->padding[axis] - reach;
    const int64_t last = size - 1 + before;

    tap->from[axis] = before > 0 ? (before + stride - 1) / stride : 0;
    tap->to[axis] = last < 0 ? 0 : kiln_min_i64(pixels, last / stride + 1);
}

static bool find_taps(Work *w, const KilnConvAttrs *attrs, int64_t kh, int64_t kw)
{
    if (kh * kw > MAX_TAPS)
        return false;
    for (int64_t ky = 0; ky < kh; ky++)
        for (int64_t kx = 0; kx < kw; kx++) {
            const int64_t y = ky * attrs->dilation[0], x = kx * attrs->dilation[1];
            Tap *tap = &w->taps[w->n_taps++];

            *tap = (Tap) { .plane = plane_of(w, y % w->stride[0], x % w->stride[1]),
                           .row = y / w->stride[0],
                           .column = x / w->stride[1] };
            if (tap->plane < 0)
                return false;
            find_inside(w, tap, 0, y, w->height, w->out_height);
            find_inside(w, tap, 1, x, w->width, w->out_width);
        }
    return true;
}

static int64_t block_count(const Work *w)
{
    return w->n_taps * (w->out_tiles / 2) * (w->in_tiles / 2);
}

/* Elements of a row of tiles of dy; of a plane of x. */
static int64_t left_line(const Work *w)
{
    return w->band_rows * w->steps * KILN_TILE_SIZE;
}

static int64_t right_line(const Work *w)
{
    return w->plane_rows * w->plane_pixels * KILN_TILE_ROWS;
}

static int64_t sums_size(const Work *w)
{
    return block_count(w) * KILN_TILE_BLOCK * KILN_TILE_BLOCK;
}

/* Elements of a packed band. */
static int64_t band_size(const Work *w)
{
    return w->out_tiles * left_line(w) + w->n_planes * w->in_tiles * right_line(w);
}

/* How many images to interleave: all, up to a tile of them, if a band is then whole images; else
 * just enough to fill tiles well, for bands with more rows. */
static int64_t images_of(const Work *w)
{
    const int64_t all = kiln_min_i64(up(w->n, 2), MAX_IMAGES);
    int64_t best = all, min_pixels = INT64_MAX;

    if (w->out_height * up(w->out_width * all, KILN_TILE_DEPTH) / KILN_TILE_DEPTH <= MAX_STEPS)
        return all;
    for (int64_t images = 2; images <= all; images *= 2) {
        const int64_t pixels = up(w->out_width * images, KILN_TILE_DEPTH) * MAX_IMAGES / images;

        if (pixels < min_pixels) {
            min_pixels = pixels;
            best = images;
        }
    }
    return best;
}

static void find_bands(Work *w, const int64_t reach[2])
{
    w->images = images_of(w);
    w->groups = (w->n + w->images - 1) / w->images;
    w->steps = up(w->out_width * w->images, KILN_TILE_DEPTH) / KILN_TILE_DEPTH;
    w->band_rows = kiln_min_i64(w->out_height, w->steps < MAX_STEPS ? MAX_STEPS / w->steps : 1);
    w->bands = (w->out_height + w->band_rows - 1) / w->band_rows;
    w->plane_rows = w->band_rows + reach[0];
    w->plane_pixels = w->steps * KILN_TILE_DEPTH + reach[1] * w->images;
}

static int64_t all_bands(const Work *w)
{
    return w->groups * w->bands;
}

static bool measure(const KilnCall *call, Work *w)
{
    const KilnConvAttrs *attrs = call->attrs;
    const KilnArg *dy = &call->inputs[0], *x = &call->inputs[1], *weight = &call->outputs[0];
    const int64_t kh = weight->shape.dim[2], kw = weight->shape.dim[3];
    const int64_t threads = call->backend->threads;

    *w = (Work) { .tiles = kiln_cpu(call)->tiles,
                  .x = x->data,
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
    if (attrs->groups != 1 || w->in < KILN_TILE_ROWS || w->out < KILN_TILE_ROWS ||
        kiln_shape_count(&x->shape) > INT32_MAX || kiln_shape_count(&dy->shape) > INT32_MAX)
        return false;
    find_bands(w, (const int64_t[]) { (kh - 1) * attrs->dilation[0] / attrs->stride[0],
                                      (kw - 1) * attrs->dilation[1] / attrs->stride[1] });
    w->parts = w->out * w->in * kh * kw <= OWN_SUMS &&
                       (all_bands(w) % threads == 0 || all_bands(w) >= 4 * threads)
                   ? kiln_min_i64(threads, all_bands(w))
                   : 1;
    w->out_tiles = up(w->out, KILN_TILE_BLOCK) / KILN_TILE_ROWS;
    w->in_tiles = up(w->in, KILN_TILE_BLOCK) / KILN_TILE_ROWS;
    return w->plane_pixels <= MAX_PIXELS && find_taps(w, attrs, kh, kw);
}

/* ---- Packing ----------------------------------------------------------------------- */

/* Locates a row of pixels in a tensor [n, height, width, channels]: from pixel (y, x) on, every
 * `stride`th. */
static void find_row(const Work *w, const int64_t size[2], int64_t channels, int64_t y, int64_t x,
                     int64_t stride, int64_t pixels, int32_t *at)
{
    const int64_t first = w->band / w->bands * w->images;

    for (int64_t k = 0; k < pixels; k += w->images, x += stride) {
        const bool inside = y >= 0 && y < size[0] && x >= 0 && x < size[1];
        const int64_t end = kiln_min_i64(pixels - k, w->images);

        for (int64_t i = 0; i < end; i++)
            at[k + i] = inside && first + i < w->n
                            ? (int32_t)((((first + i) * size[0] + y) * size[1] + x) * channels)
                            : -1;
    }
}

static void pack_dy(const Work *w, int64_t row, int32_t *at)
{
    const int64_t y = w->band % w->bands * w->band_rows + row;
    const int64_t pixels = w->steps * KILN_TILE_DEPTH;

    find_row(w, (const int64_t[]) { w->out_height, w->out_width }, w->out, y, 0, 1, pixels, at);
    for (int64_t t = 0; t < w->out_tiles; t += 2)
        kiln_tiles_gather(w->left + t * left_line(w) + row * w->steps * KILN_TILE_SIZE,
                          left_line(w), w->dy + t * KILN_TILE_ROWS, at, pixels,
                          w->out - t * KILN_TILE_ROWS, w->tiles->paired);
}

static void pack_x(const Work *w, int plane, int64_t row, int32_t *at)
{
    const int64_t *phase = w->planes[plane];
    const int64_t y = (w->band % w->bands * w->band_rows + row) * w->stride[0] + phase[0] -
                      w->padding[0];
    uint16_t *to = w->right + plane * w->in_tiles * right_line(w) +
                   row * w->plane_pixels * KILN_TILE_ROWS;

    find_row(w, (const int64_t[]) { w->height, w->width }, w->in, y, phase[1] - w->padding[1],
             w->stride[1], w->plane_pixels, at);
    for (int64_t t = 0; t < w->in_tiles; t += 2)
        kiln_tiles_gather(to + t * right_line(w), right_line(w), w->x + t * KILN_TILE_ROWS, at,
                          w->plane_pixels, w->in - t * KILN_TILE_ROWS, true);
}

/* Rows of dy first, then those of every plane of x. */
static int64_t pack_count(const Work *w)
{
    return w->band_rows + w->n_planes * w->plane_rows;
}

static void pack_row(const Work *w, int64_t i)
{
    int32_t at[MAX_PIXELS];

    if (i < w->band_rows)
        pack_dy(w, i, at);
    else
        pack_x(w, (int)((i - w->band_rows) / w->plane_rows), (i - w->band_rows) % w->plane_rows,
               at);
}

static void pack(void *context, KilnShares *shares)
{
    for (int64_t i; (i = kiln_next_item(shares)) >= 0;)
        pack_row(context, i);
}

/* ---- The product -------------------------------------------------------------------- */

/* Block (row, column) of a tap's sums, over the band's rows and, in each, the tiles that meet x. */
static void tap_block(const Work *w, const Tap *tap, int64_t row, int64_t column, float *sums)
{
    const int64_t first = w->band % w->bands * w->band_rows;
    const int64_t from = tap->from[0] > first ? tap->from[0] - first : 0;
    const int64_t to = kiln_min_i64(tap->to[0] - first, w->band_rows);
    const int64_t step = tap->from[1] * w->images / KILN_TILE_DEPTH;
    const int64_t end = up(tap->to[1] * w->images, KILN_TILE_DEPTH) / KILN_TILE_DEPTH;
    const KilnTileSide left = { .first = w->left + 2 * row * left_line(w) +
                                         (from * w->steps + step) * KILN_TILE_SIZE,
                                .second = left_line(w),
                                .step = KILN_TILE_SIZE,
                                .run = w->steps * KILN_TILE_SIZE,
                                .row = w->tiles->paired ? KILN_TILE_PAIRED : 64 };
    const KilnTileSide right = { .first = w->right +
                                          (tap->plane * w->in_tiles + 2 * column) * right_line(w) +
                                          ((from + tap->row) * w->plane_pixels +
                                           tap->column * w->images + step * KILN_TILE_DEPTH) *
                                              KILN_TILE_ROWS,
                                 .second = right_line(w),
                                 .step = KILN_TILE_SIZE,
                                 .run = w->plane_pixels * KILN_TILE_ROWS,
                                 .row = 64 };

    w->tiles->block(sums, KILN_TILE_BLOCK, &left, &right, w->out - row * KILN_TILE_BLOCK,
                    end > step ? end - step : 0, to > from ? to - from : 0, w->band > w->begin);
}

/* Block i of the sums: by tap, columns, rows. */
static void one_block(const Work *w, int64_t i)
{
    const int64_t row_blocks = w->out_tiles / 2, column_blocks = w->in_tiles / 2;

    tap_block(w, &w->taps[i / row_blocks / column_blocks], i % row_blocks,
              i / row_blocks % column_blocks, w->sums + i * KILN_TILE_BLOCK * KILN_TILE_BLOCK);
}

static void multiply(void *context, KilnShares *shares)
{
    const Work *w = context;

    w->tiles->begin();
    for (int64_t i; (i = kiln_next_item(shares)) >= 0;)
        one_block(w, i);
    w->tiles->end();
}

/* Stores row o of a block, for all taps, to [O, I, kh, kw]. */
static void unpack_row(const Work *w, int64_t block, int64_t o, int64_t first_in)
{
    const int64_t size = KILN_TILE_BLOCK * KILN_TILE_BLOCK;
    const int64_t next_tap = w->out_tiles / 2 * (w->in_tiles / 2) * size;
    const int64_t columns = kiln_min_i64(KILN_TILE_BLOCK, w->in - first_in);
    const float *sums = w->sums + block * size + o % KILN_TILE_BLOCK * KILN_TILE_BLOCK;
    float *dw = w->dw + (o * w->in + first_in) * w->n_taps;

    for (int64_t tap = 0; tap < w->n_taps; tap++, sums += next_tap) {
        float total[KILN_TILE_BLOCK];

        memcpy(total, sums, sizeof(total));
        for (int64_t part = 1; part < w->parts; part++)
            for (int i = 0; i < KILN_TILE_BLOCK; i++)
                total[i] += sums[part * sums_size(w) + i];
        if (w->n_taps == 1)
            memcpy(dw, total, (size_t)columns * sizeof(float));
        else
            for (int64_t i = 0; i < columns; i++)
                dw[i * w->n_taps + tap] = total[i];
    }
}

/* Each item is the same block of all taps, which together fit the first-level cache. */
static void unpack(void *context, KilnShares *shares)
{
    const Work *w = context;
    const int64_t row_blocks = w->out_tiles / 2;

    for (int64_t block; (block = kiln_next_item(shares)) >= 0;) {
        const int64_t row = block % row_blocks * KILN_TILE_BLOCK;

        for (int64_t o = row; o < kiln_min_i64(w->out, row + KILN_TILE_BLOCK); o++)
            unpack_row(w, block, o, block / row_blocks * KILN_TILE_BLOCK);
    }
}

/* ---- The kernel ---------------------------------------------------------------------- */

bool kiln_bf16_conv_weight_prepare(KilnCall *call)
{
    Work w;

    if (call->inputs[0].dtype != KILN_BF16 || call->inputs[1].dtype != KILN_BF16 ||
        !measure(call, &w))
        return false;
    call->inputs[0].layout = call->inputs[1].layout = KILN_PLAIN;
    call->workspace_size = (size_t)(w.parts * sums_size(&w)) * sizeof(float) +
                           (size_t)(w.parts * band_size(&w)) * sizeof(uint16_t);
    return true;
}

/* Processes the bands of some threads, one after the other. */
static void multiply_own(void *context, int64_t begin, int64_t end)
{
    for (int64_t part = begin; part < end; part++) {
        Work w = *(const Work *)context;
        const int64_t stop = all_bands(&w) * (part + 1) / w.parts;

        w.sums += part * sums_size(&w);
        w.left += part * band_size(&w);
        w.right += part * band_size(&w);
        w.begin = all_bands(&w) * part / w.parts;
        for (w.band = w.begin; w.band < stop; w.band++) {
            for (int64_t i = 0; i < pack_count(&w); i++)
                pack_row(&w, i);
            w.tiles->begin();
            for (int64_t i = 0; i < block_count(&w); i++)
                one_block(&w, i);
            w.tiles->end();
        }
    }
}

void kiln_bf16_conv_weight_run(KilnCall *call)
{
    const int threads = call->backend->threads;
    Work w;

    if (!measure(call, &w))
        return; /* already succeeded in prepare */
    w.sums = call->workspace;
    w.left = (uint16_t *)(void *)(w.sums + w.parts * sums_size(&w));
    w.right = w.left + w.out_tiles * left_line(&w);
    if (w.parts > 1)
        kiln_parallel(threads, w.parts, 1, 1, multiply_own, &w);
    for (; w.parts == 1 && w.band < all_bands(&w); w.band++) {
        kiln_parallel_items(threads, pack_count(&w), pack, &w);
        kiln_parallel_items(threads, block_count(&w), multiply, &w);
    }
    kiln_parallel_items(threads, w.out_tiles / 2 * (w.in_tiles / 2), unpack, &w);
}
