/* Gradients of weights: the transpose of a convolution,
 *
 *   dw = Gᵀ [(A dy Aᵀ) · (Bᵀ x B)] G, summed over tiles of 4 x 4 pixels of dy and their windows of
 * x.
 *
 * At each of the 36 points it is a product [O, tiles] · [tiles, I]. Bands of tiles, which stay in
 * the last-level cache, are transformed, then multiplied by all threads: an item is a block of sums
 * at all points. The items of the last band become gradients at once. */
#include "backend/cpu/winograd/conv.h"

#include "backend/cpu/winograd/tiles.h"
#include "base/min.h"

enum {
    POINTS = KILN_F4_POINTS,
    TAPS = KILN_F4_TAPS,
    BAND = 1 << 21, /* floats of a band */
    ROWS = 48,      /* at most, channels of dy of a block of sums */
    COLUMNS = 64,   /* at most, channels of x */
    FEW_ROWS = 16,  /* blocks have no fewer, unless there are no more */
    EACH = 2,       /* at least this many blocks per thread, if there are enough channels */
    CHUNK = 4,      /* tiles that are transformed at once */
    PAD = 16        /* floats, since multiples of 4 KiB conflict in the cache */
};

typedef struct Work {
    const KilnGemmLoops *gemm;
    const KilnWinogradLoops *loops;
    KilnWinogradImages dy, x;
    float *dw;
    int64_t padding[2];
    KilnWinogradTiles tiles;
    int64_t out, in;
    int64_t most, bands;   /* tiles of a band; bands */
    int64_t rows, columns; /* of a block of sums */
    int64_t down, across;  /* blocks of sums */
    int64_t first, count;  /* tiles of the current band */
    float *spread;         /* [point][tile][O] */
    float *windows;        /* [point][panel][tile][columns of a panel] */
    float *sums;           /* [point][row][column] of each block, or of each thread for one band */
} Work;

/* ---- Sizes ---------------------------------------------------------------------------------- */

/* From a tile to the next. */
static int64_t spread_step(const Work *w)
{
    return w->out + PAD;
}

static int64_t spread_pitch(const Work *w)
{
    return w->most * spread_step(w) + PAD;
}

static int64_t windows_pitch(const Work *w)
{
    const int64_t columns = w->gemm->columns;

    return (w->in + columns - 1) / columns * columns * w->most + PAD;
}

static int64_t sums_pitch(const Work *w)
{
    return w->rows * w->columns + PAD;
}

/* Size of a part when n is split evenly into parts of at most `most`; a multiple of `align`. */
static int64_t even(int64_t n, int64_t most, int64_t align)
{
    const int64_t parts = (n + most - 1) / most;

    return ((n + parts - 1) / parts + align - 1) / align * align;
}

/* Results do not depend on the blocks, since each sum is made by one thread. */
static void divide_sums(Work *w, int threads)
{
    const int64_t panel = w->gemm->columns;
    int64_t rows = ROWS, columns = COLUMNS;

    for (;;) {
        w->rows = even(w->out, rows, w->loops->width);
        w->columns = even(w->in, columns, panel);
        w->down = (w->out + w->rows - 1) / w->rows;
        w->across = (w->in + w->columns - 1) / w->columns;
        if (w->down * w->across >= EACH * threads)
            return;
        if (w->columns > panel)
            columns = w->columns / 2;
        else if (w->rows > FEW_ROWS)
            rows = w->rows / 2;
        else
            return;
    }
}

static bool measure(const KilnCall *call, Work *w)
{
    const KilnArg *dy = &call->inputs[0], *dw = &call->outputs[0];
    const KilnConvAttrs *attrs = call->attrs;
    const KilnLoops *loops = kiln_cpu(call)->loops;

    if (!kiln_winograd_fits(call, dw, dy))
        return false;
    *w = (Work) { .gemm = loops->gemm,
                  .loops = loops->winograd,
                  .dw = dw->data,
                  .padding = { attrs->padding[0], attrs->padding[1] },
                  .tiles = kiln_winograd_tiles(dy),
                  .out = dw->shape.dim[0],
                  .in = dw->shape.dim[1] };
    divide_sums(w, call->backend->threads);
    w->most = BAND / (POINTS * (w->out + w->in));
    w->most = kiln_min_i64(w->most < 2 * CHUNK ? 2 * CHUNK : w->most, w->tiles.count);
    w->bands = (w->tiles.count + w->most - 1) / w->most;
    w->most = (w->tiles.count + w->bands - 1) / w->bands;
    return true;
}

static size_t sums_count(const Work *w, int threads)
{
    return (size_t)((w->bands > 1 ? w->down * w->across : threads) * POINTS * sums_pitch(w));
}

/* ---- Tiles ---------------------------------------------------------------------------------- */

static int64_t chunks(const Work *w)
{
    return (w->count + CHUNK - 1) / CHUNK;
}

static void spread_tile(const Work *w, int64_t t)
{
    const KilnWinogradPlace place = kiln_winograd_place(&w->tiles, w->first + t);
    const KilnWinogradPoints to = { .to = w->spread + t * spread_step(w),
                                    .pitch = spread_pitch(w),
                                    .columns = w->out };

    w->loops->spread(&w->dy, &place, &to);
}

static void transform_window(const Work *w, int64_t t)
{
    KilnWinogradPlace place = kiln_winograd_place(&w->tiles, w->first + t);
    const KilnWinogradPoints to = { .to = w->windows + t * w->gemm->columns,
                                    .pitch = windows_pitch(w),
                                    .panel = w->count * w->gemm->columns,
                                    .columns = w->gemm->columns };

    place.y -= w->padding[0];
    place.x -= w->padding[1];
    w->loops->window(&w->x, &place, &to);
}

/* Items are chunks of tiles of dy, then of x. */
static void transform(void *context, KilnShares *shares)
{
    const Work *w = context;

    for (int64_t i; (i = kiln_next_item(shares)) >= 0;) {
        const int64_t begin = i % chunks(w) * CHUNK;

        for (int64_t t = begin; t < kiln_min_i64(begin + CHUNK, w->count); t++)
            (i < chunks(w) ? spread_tile : transform_window)(w, t);
    }
}

/* ---- Sums ----------------------------------------------------------------------------------- */

/* Items are blocks of sums. */
static void add_up(void *context, KilnShares *shares)
{
    const Work *w = context;

    for (int64_t i; (i = kiln_next_item(shares)) >= 0;) {
        const int64_t row = i / w->across * w->rows, column = i % w->across * w->columns;
        const int64_t rows = kiln_min_i64(w->rows, w->out - row);
        const int64_t columns = kiln_min_i64(w->columns, w->in - column);
        float *sums = w->sums + (w->bands > 1 ? i : kiln_thread()) * POINTS * sums_pitch(w);

        for (int64_t point = 0; point < POINTS; point++) {
            const KilnGemmPacked gemm = { .a = w->spread + point * spread_pitch(w) + row,
                                          .panels = w->windows + point * windows_pitch(w) +
                                                    column * w->count,
                                          .c = sums + point * sums_pitch(w),
                                          .row = 1,
                                          .step = spread_step(w),
                                          .ldc = columns,
                                          .rows = rows,
                                          .columns = columns,
                                          .depth = w->count,
                                          .add = w->first > 0 };

            w->gemm->packed_product(&gemm);
        }
        for (int64_t r = 0; r < rows && w->first + w->count == w->tiles.count; r++)
            w->loops->gather(w->dw + ((row + r) * w->in + column) * TAPS, sums + r * columns,
                             sums_pitch(w), columns);
    }
}

/* ---- The kernel ----------------------------------------------------------------------------- */

KilnStatus kiln_winograd_weight_prepare(KilnCall *call, bool *ret_taken, KilnError *err)
{
    Work w;
    KilnStatus status = KILN_OK;

    *ret_taken = measure(call, &w);
    if (!*ret_taken)
        return KILN_OK;
    status = kiln_winograd_layout(call, &call->inputs[0], err);
    if (status == KILN_OK)
        status = kiln_winograd_layout(call, &call->inputs[1], err);
    if (status == KILN_OK)
        call->workspace_size = (sums_count(&w, call->backend->threads) +
                                (size_t)(POINTS * (spread_pitch(&w) + windows_pitch(&w)))) *
                               sizeof(float);
    return status;
}

bool kiln_winograd_weight_run(KilnCall *call)
{
    const int threads = call->backend->threads;
    Work w;

    if (!measure(call, &w))
        return false;
    w.dy = kiln_winograd_images(call, &call->inputs[0]);
    w.x = kiln_winograd_images(call, &call->inputs[1]);
    w.sums = call->workspace;
    w.spread = w.sums + sums_count(&w, threads);
    w.windows = w.spread + POINTS * spread_pitch(&w);
    for (; w.first < w.tiles.count; w.first += w.most) {
        w.count = kiln_min_i64(w.most, w.tiles.count - w.first);
        kiln_parallel_items(threads, 2 * chunks(&w), transform, &w);
        kiln_parallel_items(threads, w.down * w.across, add_up, &w);
    }
    return true;
}
