/* Convolutions, and the gradients of their input, in bf16: for each tap of the kernel a
 * product [pixels, depth] · [depth, channels], summed over taps.
 *
 * The source (x, or dy for a gradient) is copied with its padding, images innermost:
 * [row][column][image][channel]. Neighbouring pixels of a row, over all images, are then adjacent,
 * a tap is a constant distance, and tiles load directly from the copy. A gradient with a stride
 * runs in phases, by the pixel's remainder in x: each has the taps that reach it. */
#include "backend/cpu/bf16/conv.h"
#include "backend/cpu/cpu.h"

#include <string.h>

#include "base/min.h"

enum {
    MAX_TAPS = 64,
    MAX_PHASES = 16,
    MIN_DEPTH = 32,
    MIN_CHANNELS = 16,
    /* Below these, oneDNN's kernels are as fast if pixels are adjacent. */
    MIN_FORWARD_DEPTH = 512,
    MIN_GRADIENT_DEPTH = 256
};

/* Pixels of the result with the same taps: from `first` on, `stride` apart. */
typedef struct Phase {
    int64_t first[2], size[2];
    int taps, begin; /* start in the work's taps */
} Phase;

typedef struct Tap {
    int64_t kernel;  /* index in the weight: ky * kw + kx */
    int64_t from[2]; /* row and column in the source for pixel (0, 0) */
    int64_t at;      /* the same in the copy, in elements */
} Tap;

typedef struct Work {
    const KilnTileOps *tiles;
    const KilnArg *source, *weight, *bias, *result;
    bool gradient;
    int64_t n, depth, channels;
    int64_t lead[2], size[2]; /* of the copy: padding before, rows and columns */
    int64_t stride[2];        /* of a phase's pixels in the result */
    int64_t pitch;            /* of a pixel in the copy, padded against cache conflicts */
    int64_t line;             /* a row of tiles of a tap */
    int n_taps, n_phases;
    Tap taps[MAX_TAPS];
    Phase phases[MAX_PHASES];
    uint16_t *right, *left; /* packed weight, copied source */
    const Phase *phase;     /* in turn */
    int64_t at[MAX_TAPS];   /* its taps */
    int64_t row_blocks;     /* blocks of pixels in a row of the phase */
    bool by_channels;       /* threads split the channels, else the pixels */
} Work;

/* ---- Sizes ---------------------------------------------------------------------- */

static int64_t up(int64_t n, int64_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

/* Source position of tap k for pixel 0 of a phase; false: outside. */
static bool tap_from(const Work *w, const KilnConvAttrs *attrs, int axis, int64_t phase, int64_t k,
                     int64_t *ret)
{
    const int64_t reach = k * attrs->dilation[axis] - attrs->padding[axis];

    *ret = w->gradient ? (phase - reach) / attrs->stride[axis] : reach;
    return !w->gradient || (phase - reach) % attrs->stride[axis] == 0;
}

/* Extends the copy to what a tap of a phase reads. */
static void add_tap(Work *w, const Phase *phase, const Tap *tap)
{
    for (int axis = 0; axis < 2; axis++) {
        const int64_t last = phase->size[axis] + tap->from[axis];

        if (-tap->from[axis] > w->lead[axis])
            w->lead[axis] = -tap->from[axis];
        if (last > w->size[axis])
            w->size[axis] = last;
    }
    w->taps[w->n_taps++] = *tap;
}

static void add_phase(Work *w, const KilnConvAttrs *attrs, int64_t py, int64_t px)
{
    const int64_t *result = w->result->shape.dim, *kernel = w->weight->shape.dim + 2;
    Phase *phase = &w->phases[w->n_phases++];

    *phase = (Phase) { .first = { py, px },
                       .size = { (result[1] - py + w->stride[0] - 1) / w->stride[0],
                                 (result[2] - px + w->stride[1] - 1) / w->stride[1] },
                       .begin = w->n_taps };
    if (phase->size[0] <= 0 || phase->size[1] <= 0) {
        w->n_phases--;
        return;
    }
    for (int64_t ky = 0; ky < kernel[0]; ky++)
        for (int64_t kx = 0; kx < kernel[1]; kx++) {
            Tap tap = { .kernel = ky * kernel[1] + kx };

            if (tap_from(w, attrs, 0, py, ky, &tap.from[0]) &&
                tap_from(w, attrs, 1, px, kx, &tap.from[1]))
                add_tap(w, phase, &tap);
        }
    phase->taps = w->n_taps - phase->begin;
}

static int64_t right_size(const Work *w)
{
    return up(w->channels, KILN_TILE_BLOCK) / KILN_TILE_ROWS * w->n_taps * w->line;
}

/* Includes one extra block, as the last one may extend past the end. */
static int64_t left_size(const Work *w)
{
    return (w->size[0] * w->size[1] * w->n + KILN_TILE_BLOCK) * w->pitch;
}

/* Whether this is faster than oneDNN. */
static bool is_fit(const Work *w, const KilnConvAttrs *attrs)
{
    const int64_t *kernel = w->weight->shape.dim + 2, taps = kernel[0] * kernel[1];
    const bool apart = attrs->stride[0] * attrs->stride[1] > 1;

    if (attrs->groups != 1 || w->depth < MIN_DEPTH || w->channels < MIN_CHANNELS ||
        taps > MAX_TAPS || w->stride[0] * w->stride[1] > MAX_PHASES)
        return false;
    if (w->gradient)
        return apart || (taps > 1 && w->depth >= MIN_GRADIENT_DEPTH);
    return !apart && taps > 1 && w->depth >= MIN_FORWARD_DEPTH;
}

/* Input 0 is the source, for a gradient too; the weight is input 1. */
static bool measure(const KilnCall *call, bool gradient, Work *w)
{
    const KilnConvAttrs *attrs = call->attrs;
    const int64_t *weight = call->inputs[1].shape.dim;

    *w = (Work) { .tiles = kiln_cpu(call)->tiles,
                  .source = &call->inputs[0],
                  .weight = &call->inputs[1],
                  .bias = gradient || call->inputs[2].absent ? NULL : &call->inputs[2],
                  .result = &call->outputs[0],
                  .gradient = gradient,
                  .n = call->inputs[0].shape.dim[0],
                  .depth = weight[gradient ? 0 : 1],
                  .channels = weight[gradient ? 1 : 0],
                  .stride = { gradient ? attrs->stride[0] : 1, gradient ? attrs->stride[1] : 1 } };
    if (!is_fit(w, attrs))
        return false;
    w->pitch = up(w->depth, KILN_TILE_DEPTH);
    w->line = w->pitch / KILN_TILE_DEPTH * KILN_TILE_SIZE;
    w->pitch += KILN_TILE_DEPTH;
    for (int64_t py = 0; py < w->stride[0]; py++)
        for (int64_t px = 0; px < w->stride[1]; px++)
            add_phase(w, attrs, py, px);
    for (int axis = 0; axis < 2; axis++)
        w->size[axis] += w->lead[axis];
    for (int i = 0; i < w->n_taps; i++)
        w->taps[i].at =
            ((w->taps[i].from[0] + w->lead[0]) * w->size[1] + w->taps[i].from[1] + w->lead[1]) *
            w->n * w->pitch;
    return true;
}

/* ---- Packing ----------------------------------------------------------------------- */

/* Packs rows of tiles of the weight, one tile position for all taps at a time, since their values
 * are adjacent. */
static void pack_weight(void *context, KilnShares *shares)
{
    const Work *w = context;
    const int64_t *dim = w->weight->shape.dim, taps = dim[2] * dim[3];
    KilnTileMatrix matrix = { .f32 = true,
                              .across = w->gradient,
                              .stride = dim[1] * taps,
                              .spread = taps,
                              .rows = w->channels };
    const int64_t next = w->gradient ? matrix.stride : matrix.spread;

    for (int64_t t; (t = kiln_next_item(shares)) >= 0;)
        for (int64_t k = 0; k < w->depth; k += KILN_TILE_DEPTH)
            for (int i = 0; i < w->n_taps; i++) {
                uint16_t *tile = w->right + (t * w->n_taps + i) * w->line +
                                 k / KILN_TILE_DEPTH * KILN_TILE_SIZE;

                matrix.data = (const float *)w->weight->data + w->taps[i].kernel + k * next;
                matrix.depth = kiln_min_i64(w->depth - k, KILN_TILE_DEPTH);
                kiln_tiles_pack(tile - t * KILN_TILE_SIZE, &matrix, true, t, t + 1);
            }
}

/* Copies rows of the source. */
static void copy_source(void *context, KilnShares *shares)
{
    const Work *w = context;
    const int64_t *dim = w->source->shape.dim;
    const size_t bytes = (size_t)w->depth * sizeof(uint16_t);
    const size_t rest = (size_t)(w->pitch - w->depth) * sizeof(uint16_t);

    for (int64_t row; (row = kiln_next_item(shares)) >= 0;)
        for (int64_t column = 0; column < w->size[1]; column++) {
            const int64_t y = row - w->lead[0], x = column - w->lead[1];
            const bool inside = y >= 0 && y < dim[1] && x >= 0 && x < dim[2];
            uint16_t *to = w->left + (row * w->size[1] + column) * w->n * w->pitch;

            for (int64_t n = 0; n < w->n; n++, to += w->pitch) {
                if (!inside) {
                    memset(to, 0, bytes + rest);
                    continue;
                }
                memcpy(to,
                       (const uint16_t *)w->source->data +
                           ((n * dim[1] + y) * dim[2] + x) * w->depth,
                       bytes);
                memset(to + w->depth, 0, rest);
            }
        }
}

/* ---- The product -------------------------------------------------------------------- */

/* Stores the rows of a block to their images. */
static void store(const Work *w, const float *c, int64_t row, int64_t pixel, int64_t channel)
{
    const int64_t *dim = w->result->shape.dim;
    const int64_t pixels = kiln_min_i64(w->phase->size[1] * w->n - pixel, KILN_TILE_BLOCK);
    const int64_t y = w->phase->first[0] + row * w->stride[0];
    KilnTileResult result = { .f32 = w->result->dtype == KILN_F32,
                              .bias = w->bias != NULL ? w->bias->data : NULL };
    const int64_t size = result.f32 ? 4 : 2;

    for (int64_t i = 0; i < pixels; i++) {
        const int64_t n = (pixel + i) % w->n;
        const int64_t x = w->phase->first[1] + (pixel + i) / w->n * w->stride[1];

        result.data = (char *)w->result->data + ((n * dim[1] + y) * dim[2] + x) * dim[3] * size;
        kiln_tiles_store(&result, c + i * KILN_TILE_BLOCK, KILN_TILE_BLOCK, 0, channel, 1,
                         kiln_min_i64(w->channels - channel, KILN_TILE_BLOCK));
    }
}

static void one_block(const Work *w, int64_t block, int64_t column)
{
    const int64_t row = block / w->row_blocks, pixel = block % w->row_blocks * KILN_TILE_BLOCK;
    const KilnTileSide left = { .first = w->left + (row * w->size[1] * w->n + pixel) * w->pitch,
                                .second = KILN_TILE_ROWS * w->pitch,
                                .step = KILN_TILE_DEPTH,
                                .runs = w->at,
                                .row = w->pitch * (int64_t)sizeof(uint16_t) };
    const KilnTileSide right = { .first = w->right +
                                          (2 * column * w->n_taps + w->phase->begin) * w->line,
                                 .second = w->n_taps * w->line,
                                 .step = KILN_TILE_SIZE,
                                 .run = w->line,
                                 .row = 64 };
    _Alignas(64) float c[KILN_TILE_BLOCK * KILN_TILE_BLOCK];

    w->tiles->block(c, KILN_TILE_BLOCK, &left, &right, w->phase->size[1] * w->n - pixel,
                    w->line / KILN_TILE_SIZE, w->phase->taps, false);
    store(w, c, row, pixel, column * KILN_TILE_BLOCK);
}

static int64_t pixel_blocks(const Work *w)
{
    return w->phase->size[0] * w->row_blocks;
}

static int64_t channel_blocks(const Work *w)
{
    return up(w->channels, KILN_TILE_BLOCK) / KILN_TILE_BLOCK;
}

static void multiply(void *context, KilnShares *shares)
{
    const Work *w = context;

    w->tiles->begin();
    if (w->by_channels)
        for (int64_t column; (column = kiln_next_item(shares)) >= 0;)
            for (int64_t block = 0; block < pixel_blocks(w); block++)
                one_block(w, block, column);
    else
        for (int64_t block; (block = kiln_next_item(shares)) >= 0;)
            for (int64_t column = 0; column < channel_blocks(w); column++)
                one_block(w, block, column);
    w->tiles->end();
}

/* ---- The kernels ---------------------------------------------------------------------- */

bool kiln_bf16_conv_image_prepare(KilnCall *call, bool gradient)
{
    Work w;

    if (call->inputs[0].dtype != KILN_BF16 || call->inputs[1].dtype != KILN_F32 ||
        !measure(call, gradient, &w))
        return false;
    call->inputs[0].layout = call->inputs[1].layout = KILN_PLAIN;
    call->workspace_size = (size_t)(right_size(&w) + left_size(&w)) * sizeof(uint16_t);
    return true;
}

void kiln_bf16_conv_image_run(KilnCall *call, bool gradient)
{
    const int threads = call->backend->threads;
    Work w;

    if (!measure(call, gradient, &w))
        return; /* already succeeded in prepare */
    w.right = call->workspace;
    w.left = w.right + right_size(&w);
    w.by_channels = right_size(&w) > left_size(&w);
    kiln_parallel_items(threads, 2 * channel_blocks(&w), pack_weight, &w);
    kiln_parallel_items(threads, w.size[0], copy_source, &w);
    for (int i = 0; i < w.n_phases; i++) {
        w.phase = &w.phases[i];
        w.row_blocks = up(w.phase->size[1] * w.n, KILN_TILE_BLOCK) / KILN_TILE_BLOCK;
        for (int tap = 0; tap < w.phase->taps; tap++)
            w.at[tap] = w.taps[w.phase->begin + tap].at;
        kiln_parallel_items(threads, w.by_channels ? channel_blocks(&w) : pixel_blocks(&w),
                            multiply, &w);
    }
}
