/* Convolutions and the gradients of their inputs. At each of the 36 points it is a product
 * [tiles, depth] · [depth, channels]. An item is a block of tiles and a group of channels: its
 * windows are transformed, multiplied at all points and transformed back by one thread, in its
 * cache. */
#include "backend/cpu/winograd/conv.h"

#include "backend/cpu/winograd/tiles.h"
#include "base/min.h"

enum {
    POINTS = KILN_F4_POINTS,
    MOST_TILES = 48,    /* of a block: each element of the transformed weight is used as often */
    LONE_TILES = 64,    /* of the only block */
    MOST_CHANNELS = 64, /* of a group */
    EACH = 4,           /* at least this many items per thread, if there are enough channels */
    PAD = 16            /* floats, since multiples of 4 KiB conflict in the cache */
};

typedef struct Work {
    const KilnGemmLoops *gemm;
    const KilnWinogradLoops *loops;
    KilnWinogradImages source;
    KilnWinogradResult result;
    KilnWinogradWeight weight;
    KilnWinogradTiles tiles;
    int64_t depth, channels;
    int64_t padding[2];    /* before the first pixel of the source */
    int64_t block, blocks; /* tiles of a block, and how many such blocks */
    int64_t group, groups; /* channels of a group, and how many such groups */
    float *right;          /* transformed weight: [point][panel][depth][columns]; of a group for
                            * each thread, if there is one block */
    float *scratch;        /* per thread: transformed windows, then products */
} Work;

/* ---- Sizes ---------------------------------------------------------------------------------- */

static int64_t round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

static int64_t weight_pitch(const Work *w)
{
    return round_up(w->blocks == 1 ? w->group : w->channels, w->gemm->columns) * w->depth + PAD;
}

static int64_t right_size(const Work *w, int threads)
{
    return POINTS * weight_pitch(w) * (w->blocks == 1 ? threads : 1);
}

/* From a tile to the next. */
static int64_t window_step(const Work *w)
{
    return w->depth + PAD;
}

static int64_t window_pitch(const Work *w)
{
    return round_up(w->block, w->gemm->rows) * window_step(w) + PAD;
}

static int64_t product_pitch(const Work *w)
{
    return w->block * w->group + PAD;
}

static int64_t scratch_size(const Work *w)
{
    return POINTS * (window_pitch(w) + product_pitch(w));
}

static bool measure(const KilnCall *call, bool gradient, Work *w)
{
    const KilnConvAttrs *attrs = call->attrs;
    const KilnArg *weight = &call->inputs[1], *y = &call->outputs[0];
    const KilnLoops *loops = kiln_cpu(call)->loops;
    const int64_t threads = call->backend->threads;

    if (!kiln_winograd_fits(call, weight, y))
        return false;
    *w = (Work) { .gemm = loops->gemm,
                  .loops = loops->winograd,
                  .weight = { .data = weight->data,
                              .out = weight->shape.dim[0],
                              .in = weight->shape.dim[1],
                              .gradient = gradient },
                  .tiles = kiln_winograd_tiles(y),
                  .depth = weight->shape.dim[gradient ? 0 : 1],
                  .channels = weight->shape.dim[gradient ? 1 : 0] };
    for (int axis = 0; axis < 2; axis++)
        w->padding[axis] = gradient ? 2 - attrs->padding[axis] : attrs->padding[axis];
    w->blocks = w->tiles.count <= LONE_TILES ? 1 : (w->tiles.count + MOST_TILES - 1) / MOST_TILES;
    w->block = round_up((w->tiles.count + w->blocks - 1) / w->blocks, w->gemm->rows);
    w->blocks = (w->tiles.count + w->block - 1) / w->block;
    w->group = round_up(kiln_min_i64(w->channels, MOST_CHANNELS), w->gemm->columns);
    while (w->group > w->gemm->columns && w->blocks * (w->channels / w->group) < EACH * threads)
        w->group = round_up(w->group / 2, w->gemm->columns);
    w->groups = (w->channels + w->group - 1) / w->group;
    return true;
}

/* ---- The weight ----------------------------------------------------------------------------- */

static int64_t row_chunks(const Work *w)
{
    return (w->depth + KILN_F4_ROWS - 1) / KILN_F4_ROWS;
}

/* Columns [channel, channel + columns), rows of chunk number `chunk`. */
static void transform_chunk(const Work *w, int64_t channel, int64_t chunk, float *panel)
{
    const int64_t begin = chunk * KILN_F4_ROWS;

    w->loops->weight(&w->weight, channel, begin, kiln_min_i64(begin + KILN_F4_ROWS, w->depth),
                     panel + begin * w->gemm->columns, weight_pitch(w));
}

/* Items are chunks of panels. */
static void transform_weight(void *context, KilnShares *shares)
{
    const Work *w = context;

    for (int64_t i; (i = kiln_next_item(shares)) >= 0;) {
        const int64_t channel = i / row_chunks(w) * w->gemm->columns;

        transform_chunk(w, channel, i % row_chunks(w), w->right + channel * w->depth);
    }
}

static void transform_group(const Work *w, int64_t channel, int64_t count, float *right)
{
    for (int64_t c = 0; c < count; c += w->gemm->columns)
        for (int64_t chunk = 0; chunk < row_chunks(w); chunk++)
            transform_chunk(w, channel + c, chunk, right + c * w->depth);
}

/* ---- Tiles ---------------------------------------------------------------------------------- */

static void transform_windows(const Work *w, int64_t first, int64_t tiles, float *windows)
{
    KilnWinogradPoints to = { .to = windows, .pitch = window_pitch(w), .columns = w->depth };

    for (int64_t t = 0; t < tiles; t++, to.to += window_step(w)) {
        KilnWinogradPlace place = kiln_winograd_place(&w->tiles, first + t);

        place.y -= w->padding[0];
        place.x -= w->padding[1];
        w->loops->window(&w->source, &place, &to);
    }
}

static void multiply(const Work *w, const float *windows, int64_t tiles, const float *right,
                     int64_t count, float *products)
{
    for (int64_t point = 0; point < POINTS; point++) {
        const KilnGemmPacked gemm = { .a = windows + point * window_pitch(w),
                                      .panels = right + point * weight_pitch(w),
                                      .c = products + point * product_pitch(w),
                                      .row = window_step(w),
                                      .step = 1,
                                      .ldc = count,
                                      .rows = tiles,
                                      .columns = count,
                                      .depth = w->depth };

        w->gemm->packed_product(&gemm);
    }
}

/* Items are groups of channels of a block of tiles. */
static void convolve(void *context, KilnShares *shares)
{
    const Work *w = context;
    float *windows = w->scratch + kiln_thread() * scratch_size(w);
    float *products = windows + POINTS * window_pitch(w);
    float *own = w->right + kiln_thread() * POINTS * weight_pitch(w);
    int64_t transformed = -1;

    for (int64_t i; (i = kiln_next_item(shares)) >= 0;) {
        const int64_t block = i / w->groups, channel = i % w->groups * w->group;
        const int64_t first = block * w->block;
        const int64_t tiles = kiln_min_i64(w->block, w->tiles.count - first);
        const int64_t count = kiln_min_i64(w->group, w->channels - channel);

        if (block != transformed)
            transform_windows(w, first, tiles, windows);
        transformed = block;
        if (w->blocks == 1)
            transform_group(w, channel, count, own);
        multiply(w, windows, tiles, w->blocks == 1 ? own : w->right + channel * w->depth, count,
                 products);
        for (int64_t t = 0; t < tiles; t++) {
            const KilnWinogradPlace place = kiln_winograd_place(&w->tiles, first + t);

            w->loops->result(&w->result, &place, channel, count, products + t * count,
                             product_pitch(w));
        }
    }
}

/* ---- The kernels ---------------------------------------------------------------------------- */

KilnStatus kiln_winograd_conv_prepare(KilnCall *call, bool gradient, bool *ret_taken,
                                      KilnError *err)
{
    const int threads = call->backend->threads;
    Work w;
    KilnStatus status = KILN_OK;

    if (!measure(call, gradient, &w)) {
        *ret_taken = false;
        return KILN_OK;
    }
    status = kiln_winograd_layout(call, &call->inputs[0], err);
    if (status == KILN_OK)
        status = kiln_winograd_layout(call, &call->outputs[0], err);
    if (status != KILN_OK)
        return status;
    call->inputs[1].layout = KILN_PLAIN;
    if (!gradient) {
        call->inputs[2].layout = KILN_PLAIN;
        call->inputs[3].layout = call->outputs[0].layout;
    }
    call->workspace_size = (size_t)(right_size(&w, threads) + threads * scratch_size(&w)) *
                           sizeof(float);
    *ret_taken = true;
    return KILN_OK;
}

static void set_activation(const KilnCall *call, KilnWinogradResult *result)
{
    const KilnMapStep *step = &((const KilnConvAttrs *)call->attrs)->activation;

    result->relu = step->code == KILN_MAP_RELU;
    if (result->relu || step->code == KILN_MAP_NUMBER)
        return;
    result->activation = kiln_cpu(call)->loops->map->step[step->code];
    result->p = (float)step->p;
    result->q = (float)step->q;
}

bool kiln_winograd_conv_run(KilnCall *call, bool gradient)
{
    const int threads = call->backend->threads;
    Work w;

    if (!measure(call, gradient, &w))
        return false;
    w.source = kiln_winograd_images(call, &call->inputs[0]);
    w.result.y = kiln_winograd_images(call, &call->outputs[0]);
    if (!gradient) {
        w.result.bias = call->inputs[2].absent ? NULL : call->inputs[2].data;
        w.result.more = call->inputs[3].absent ? NULL : call->inputs[3].data;
        set_activation(call, &w.result);
    }
    w.right = call->workspace;
    w.scratch = w.right + right_size(&w, threads);
    if (w.blocks > 1)
        kiln_parallel_items(
            threads, round_up(w.channels, w.gemm->columns) / w.gemm->columns * row_chunks(&w),
            transform_weight, &w);
    kiln_parallel_items(threads, w.blocks * w.groups, convolve, &w);
    return true;
}
