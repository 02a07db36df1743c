/* Matrix products of bf16: packs both factors into tiles, then computes blocks of 32 by 32, each
 * over its whole depth. A deep product with a small result, as of a narrow layer's weight gradient,
 * is a sum of products of parts of the depth: the shape alone decides, so results do not depend on
 * the number of threads. */
#include "backend/cpu/bf16/product.h"

#include <string.h>

#include "backend/cpu/parallel.h"
#include "base/min.h"

enum {
    PACKED = 4,                          /* rows of tiles that a thread packs at a time, */
    BAND = 4,                            /* rows of blocks that it multiplies at a time: */
    EACH = 4,                            /* at least this many shares per thread */
    GROUP_BYTES = 1024 * 1024,           /* of the right factor: fits the second-level cache */
    GROUP = 16,                          /* most blocks of columns */
    NARROW = 4096,                       /* elements of a small result */
    DEEP_PART = 2048,                    /* least depth of a part */
    DEEP_PARTS = 16,                     /* most parts */
    STRIP = GROUP * KILN_TILE_BLOCK + 16 /* floats per row, padded against cache conflicts */
};

typedef struct Work {
    const KilnBf16Product *product;
    uint16_t *left, *right;
    int64_t steps; /* tiles of depth */
    int64_t row_blocks, column_blocks;
    int64_t group, bands; /* columns of blocks per group; bands of rows */
} Work;

static int64_t blocks(int64_t n, int64_t size)
{
    return (n + size - 1) / size;
}

/* Tiles can be loaded directly from a row-major bf16 matrix if its sizes are whole tiles and its
 * rows do not conflict in the cache. */
static bool is_packed(const KilnTileMatrix *m)
{
    return !m->f32 && !m->across && m->rows % KILN_TILE_BLOCK == 0 &&
           m->depth % KILN_TILE_DEPTH == 0 && m->stride % 1024 != 0;
}

static size_t packed_bytes(const KilnTileMatrix *m)
{
    return (size_t)kiln_tiles_packed(m->rows, m->depth) * sizeof(uint16_t);
}

static size_t whole_workspace(const KilnBf16Product *p)
{
    return packed_bytes(&p->right) + (is_packed(&p->left) ? 0 : packed_bytes(&p->left));
}

/* Packs some rows of tiles of a factor. */
static void pack(const KilnTileMatrix *matrix, uint16_t *packed, bool right, KilnShares *shares)
{
    const int64_t tiles = 2 * blocks(matrix->rows, KILN_TILE_BLOCK);

    for (int64_t item; (item = kiln_next_item(shares)) >= 0;)
        kiln_tiles_pack(packed, matrix, right, item * PACKED,
                        kiln_min_i64((item + 1) * PACKED, tiles));
}

static void pack_right(void *context, KilnShares *shares)
{
    const Work *work = context;

    pack(&work->product->right, work->right, true, shares);
}

static void pack_left(void *context, KilnShares *shares)
{
    const Work *work = context;

    pack(&work->product->left, work->left, false, shares);
}

static KilnTileSide left_side(const Work *work, int64_t row_block)
{
    const KilnTileMatrix *m = &work->product->left;
    const int64_t line = work->steps * KILN_TILE_SIZE;

    if (is_packed(m))
        return (KilnTileSide) {
            .first = (const uint16_t *)m->data + row_block * KILN_TILE_BLOCK * m->stride,
            .second = KILN_TILE_ROWS * m->stride,
            .step = KILN_TILE_DEPTH,
            .row = m->stride * (int64_t)sizeof(uint16_t),
        };
    return (KilnTileSide) { .first = work->left + 2 * row_block * line,
                            .second = line,
                            .step = KILN_TILE_SIZE,
                            .row = 64 };
}

static void one_block(const Work *work, int64_t i, int64_t j, float *sums)
{
    const int64_t line = work->steps * KILN_TILE_SIZE;
    const KilnTileSide left = left_side(work, i);
    const KilnTileSide right = {
        .first = work->right + 2 * j * line, .second = line, .step = KILN_TILE_SIZE, .row = 64
    };

    work->product->tiles->block(
        sums, STRIP, &left, &right,
        kiln_min_i64(work->product->left.rows - i * KILN_TILE_BLOCK, KILN_TILE_BLOCK), work->steps,
        1, false);
}

/* Part of the result is summed. */
static void finish(const KilnBf16Product *p, float *sums, int64_t stride, const KilnGemmPart *part)
{
    if (p->done != NULL)
        p->done(p->context, sums, stride, part);
    else
        kiln_tiles_store(&p->result, sums, stride, part->row, part->column, part->rows,
                         part->columns);
}

/* Blocks j0 to j1 of row i of blocks are finished. */
static void finish_strip(const Work *work, int64_t i, int64_t j0, int64_t j1, float *sums)
{
    const KilnBf16Product *p = work->product;
    const int64_t row = i * KILN_TILE_BLOCK, column = j0 * KILN_TILE_BLOCK;
    const int64_t rows = kiln_min_i64(p->left.rows - row, KILN_TILE_BLOCK);
    const int64_t columns = kiln_min_i64(p->right.rows, j1 * KILN_TILE_BLOCK) - column;

    finish(p, sums, STRIP, &(KilnGemmPart) { row, rows, column, columns });
}

/* Computes blocks j0 to j1 of row i of blocks. */
static void one_strip(const Work *work, int64_t i, int64_t j0, int64_t j1, float *sums)
{
    for (int64_t j = j0; j < j1; j++)
        one_block(work, i, j, sums + (j - j0) * KILN_TILE_BLOCK);
    finish_strip(work, i, j0, j1, sums);
}

/* Computes the result row by row, within a group of columns, since its lines are far apart. */
static void multiply(void *context, KilnShares *shares)
{
    const Work *work = context;
    _Alignas(64) float sums[KILN_TILE_BLOCK * STRIP];

    work->product->tiles->begin();
    for (int64_t item; (item = kiln_next_item(shares)) >= 0;) {
        const int64_t j = item / work->bands * work->group, i = item % work->bands * BAND;

        for (int64_t row = i; row < kiln_min_i64(i + BAND, work->row_blocks); row++)
            one_strip(work, row, j, kiln_min_i64(j + work->group, work->column_blocks), sums);
    }
    work->product->tiles->end();
}

static void run_whole(const KilnBf16Product *product, void *workspace)
{
    Work work = {
        .product = product,
        .steps = blocks(product->left.depth, KILN_TILE_DEPTH),
        .row_blocks = blocks(product->left.rows, KILN_TILE_BLOCK),
        .column_blocks = blocks(product->right.rows, KILN_TILE_BLOCK),
    };
    const int64_t block_bytes = work.steps * KILN_TILE_SIZE * 2 * (int64_t)sizeof(uint16_t);
    const int threads = product->left.rows * product->right.rows < 4096 ? 1 : product->threads;

    work.right = workspace;
    work.left = work.right + kiln_tiles_packed(product->right.rows, product->right.depth);
    work.group = kiln_min_i64(GROUP, GROUP_BYTES / block_bytes + 1);
    work.bands = blocks(work.row_blocks, BAND);
    if (work.group * EACH * threads > work.column_blocks * work.bands)
        work.group = work.column_blocks * work.bands / (EACH * threads) + 1;
    kiln_parallel_items(threads, blocks(2 * work.column_blocks, PACKED), pack_right, &work);
    if (!is_packed(&product->left))
        kiln_parallel_items(threads, blocks(2 * work.row_blocks, PACKED), pack_left, &work);
    kiln_parallel_items(threads, work.bands * blocks(work.column_blocks, work.group), multiply,
                        &work);
}

/* ---- The depth in parts ------------------------------------------------------------- */

/* 1: as a whole. */
static int64_t depth_parts(const KilnBf16Product *p)
{
    if (p->left.rows * p->right.rows > NARROW || p->left.depth < 2 * DEEP_PART ||
        p->left.spread != 0 || p->right.spread != 0)
        return 1;
    return kiln_min_i64(p->left.depth / DEEP_PART, DEEP_PARTS);
}

/* Floats from one row of a part's sums to the next: whole vectors. */
static int64_t sums_stride(const KilnBf16Product *p)
{
    return blocks(p->right.rows, 16) * 16;
}

static KilnTileMatrix depth_range(const KilnTileMatrix *m, int64_t from, int64_t depth)
{
    KilnTileMatrix range = *m;

    range.data = (const char *)m->data + (m->across ? from * m->stride : from) *
                                             (int64_t)(m->f32 ? sizeof(float) : sizeof(uint16_t));
    range.depth = depth;
    return range;
}

/* Part number `part`, whose sums go to `sums`; parts begin at whole tiles. */
static KilnBf16Product depth_part(const KilnBf16Product *p, int64_t part, float *sums)
{
    const int64_t steps = blocks(p->left.depth, KILN_TILE_DEPTH), parts = depth_parts(p);
    const int64_t from = steps * part / parts * KILN_TILE_DEPTH;
    const int64_t to = kiln_min_i64(steps * (part + 1) / parts * KILN_TILE_DEPTH, p->left.depth);

    return (KilnBf16Product) {
        .left = depth_range(&p->left, from, to - from),
        .right = depth_range(&p->right, from, to - from),
        .result = { .data = sums, .f32 = true, .stride = sums_stride(p) },
        .tiles = p->tiles,
        .threads = 1,
    };
}

/* Bytes of the packed factors of the largest part. */
static size_t part_workspace(const KilnBf16Product *p)
{
    const int64_t depth = blocks(blocks(p->left.depth, KILN_TILE_DEPTH), depth_parts(p)) *
                          KILN_TILE_DEPTH;

    return (size_t)(kiln_tiles_packed(p->left.rows, depth) +
                    kiln_tiles_packed(p->right.rows, depth)) *
           sizeof(uint16_t);
}

/* ---- A single row ------------------------------------------------------------------------- */

/* Each element of the right factor is used once, so it is read where it is: the product takes as
 * long as reading it does. */
static bool is_single_row(const KilnBf16Product *p)
{
    return p->left.rows == 1 && !p->left.across && p->left.spread == 0 && !p->right.f32 &&
           !p->right.across;
}

typedef struct SingleRow {
    const KilnBf16Product *product;
    const float *row;
} SingleRow;

enum { COLUMNS = 64 };

/* kiln_tiles_store for columns [column, column + n) of one row, at any level. */
static void store_row(const KilnBf16Product *p, float *sums, int64_t column, int64_t n)
{
    const KilnTileResult *result = &p->result;
    uint16_t *halves = (uint16_t *)result->data + column;
    float *floats = (float *)result->data + column, before[COLUMNS];

    if (result->bias != NULL)
        p->loops->add(sums, sums, result->bias + column, n);
    if (result->add && !result->f32)
        p->loops->from_bf16(before, halves, n);
    if (result->add)
        p->loops->add(sums, sums, result->f32 ? floats : before, n);
    if (result->f32)
        memcpy(floats, sums, (size_t)n * sizeof(*sums));
    else
        p->loops->to_bf16(halves, sums, n);
}

static void run_columns(void *context, int64_t begin, int64_t end)
{
    const SingleRow *single = context;
    const KilnBf16Product *p = single->product;
    _Alignas(64) float sums[COLUMNS];

    for (int64_t j = begin; j < end; j += COLUMNS) {
        const int64_t columns = kiln_min_i64(COLUMNS, end - j);

        p->loops->dot_rows_bf16(sums, single->row,
                                (const uint16_t *)p->right.data + j * p->right.stride,
                                p->right.stride, columns, p->right.depth);
        if (p->done != NULL)
            p->done(p->context, sums, COLUMNS, &(KilnGemmPart) { 0, 1, j, columns });
        else
            store_row(p, sums, j, columns);
    }
}

static void run_single_row(const KilnBf16Product *p, float *row)
{
    const int64_t n = p->left.depth;
    const SingleRow single = { p, row };

    if (p->left.f32) {
        uint16_t *rounded = (uint16_t *)(void *)(row + n);

        p->loops->to_bf16(rounded, p->left.data, n);
        p->loops->from_bf16(row, rounded, n);
    } else {
        p->loops->from_bf16(row, p->left.data, n);
    }
    kiln_parallel(p->threads, p->right.rows, 65536 / (n + 1) + 1, 64, run_columns, (void *)&single);
}

/* ---- All products --------------------------------------------------------------------------- */

size_t kiln_bf16_product_workspace(const KilnBf16Product *p)
{
    if (is_single_row(p)) /* the row in f32 and in bf16, in whole lines of the cache */
        return (size_t)blocks(p->left.depth, 32) * 32 * (sizeof(float) + sizeof(uint16_t));
    const size_t sums = (size_t)(p->left.rows * sums_stride(p)) * sizeof(float);
    return depth_parts(p) > 1 ? (size_t)depth_parts(p) * (part_workspace(p) + sums)
                              : whole_workspace(p);
}

typedef struct Parts {
    const KilnBf16Product *product;
    int64_t count;
    char *workspace;
    float *sums; /* [count][rows][stride] */
} Parts;

static void run_depths(void *context, KilnShares *shares)
{
    const Parts *parts = context;
    const KilnBf16Product *p = parts->product;
    const int64_t size = p->left.rows * sums_stride(p);

    for (int64_t i; (i = kiln_next_item(shares)) >= 0;) {
        const KilnBf16Product part = depth_part(p, i, parts->sums + i * size);

        run_whole(&part, parts->workspace + (size_t)i * part_workspace(p));
    }
}

/* Adds the parts, in order, in some rows. */
static void join_rows(void *context, int64_t begin, int64_t end)
{
    const Parts *parts = context;
    const KilnBf16Product *p = parts->product;
    const int64_t stride = sums_stride(p), size = p->left.rows * stride;
    float *sums = parts->sums + begin * stride;

    for (int64_t i = 1; i < parts->count; i++)
        for (int64_t k = 0; k < (end - begin) * stride; k++)
            sums[k] += sums[i * size + k];
    finish(p, sums, stride, &(KilnGemmPart) { begin, end - begin, 0, p->right.rows });
}

void kiln_bf16_product(const KilnBf16Product *product, void *workspace)
{
    if (is_single_row(product)) {
        run_single_row(product, workspace);
        return;
    }
    Parts parts = { product, depth_parts(product), workspace, NULL };
    if (parts.count == 1) {
        run_whole(product, workspace);
        return;
    }
    parts.sums = (float *)(void *)(parts.workspace + (size_t)parts.count * part_workspace(product));
    kiln_parallel_items(product->threads, parts.count, run_depths, &parts);
    kiln_parallel(product->threads, product->left.rows,
                  16384 / (sums_stride(product) * parts.count) + 1, 1, join_rows, &parts);
}
