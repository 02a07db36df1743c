/* Matrix products of bf16: packs both factors into tiles, then computes blocks of 32 by 32, each
 * over its whole depth. */
#include "backend/cpu/bf16/product.h"

#include "backend/cpu/parallel.h"
#include "base/min.h"

enum {
    PACKED = 4,                          /* rows of tiles that a thread packs at a time, */
    BAND = 4,                            /* rows of blocks that it multiplies at a time: */
    EACH = 4,                            /* at least this many shares per thread */
    GROUP_BYTES = 1024 * 1024,           /* of the right factor: fits the second-level cache */
    GROUP = 16,                          /* most blocks of columns */
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

size_t kiln_bf16_product_workspace(const KilnBf16Product *p)
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

/* Blocks j0 to j1 of row i of blocks are finished. */
static void finish_strip(const Work *work, int64_t i, int64_t j0, int64_t j1, float *sums)
{
    const KilnBf16Product *p = work->product;
    const int64_t row = i * KILN_TILE_BLOCK, column = j0 * KILN_TILE_BLOCK;
    const int64_t rows = kiln_min_i64(p->left.rows - row, KILN_TILE_BLOCK);
    const int64_t columns = kiln_min_i64(p->right.rows, j1 * KILN_TILE_BLOCK) - column;

    if (p->done != NULL)
        p->done(p->context, sums, STRIP, &(KilnGemmPart) { row, rows, column, columns });
    else
        kiln_tiles_store(&p->result, sums, STRIP, row, column, rows, columns);
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

void kiln_bf16_product(const KilnBf16Product *product, void *workspace)
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
