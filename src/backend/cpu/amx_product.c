/* Matrix products of bf16: both factors are packed into tiles, then blocks of 32 by
 * 32 are computed, each over its whole depth. */
#include "backend/cpu/amx_product.h"

#include "backend/cpu/parallel.h"

enum {
    GROUP_BYTES = 1024 * 1024,          /* of the right factor: they stay in the second cache */
    GROUP = 16,                         /* blocks of columns, at most */
    STRIP = GROUP * KILN_AMX_BLOCK + 16 /* floats of a row of them; rows are not on the same
                                         * places of the cache */
};

typedef struct Work {
    const KilnAmxProduct *product;
    uint16_t *left, *right;
    int64_t steps; /* tiles of depth */
    int64_t row_blocks, column_blocks;
    bool by_columns; /* threads share the columns, else the rows */
} Work;

static int64_t blocks(int64_t n, int64_t size)
{
    return (n + size - 1) / size;
}

/* Tile loads can walk a row-major bf16 matrix as it is, when it has no rests, and
 * its rows do not fall on the same places of the cache. */
static bool is_packed(const KilnAmxMatrix *m)
{
    return !m->wide && !m->across && m->rows % KILN_AMX_BLOCK == 0 &&
           m->depth % KILN_AMX_DEPTH == 0 && m->stride % 512 != 0;
}

static size_t packed_bytes(const KilnAmxMatrix *m)
{
    return (size_t)kiln_amx_packed(m->rows, m->depth) * sizeof(uint16_t);
}

size_t kiln_amx_product_workspace(const KilnAmxProduct *p)
{
    return packed_bytes(&p->right) + (is_packed(&p->left) ? 0 : packed_bytes(&p->left));
}

static void pack_right(void *context, int64_t begin, int64_t end)
{
    const Work *work = context;

    kiln_amx_pack(work->right, &work->product->right, true, begin, end);
}

static void pack_left(void *context, int64_t begin, int64_t end)
{
    const Work *work = context;

    kiln_amx_pack(work->left, &work->product->left, false, begin, end);
}

static KilnAmxSide left_side(const Work *work, int64_t row_block)
{
    const KilnAmxMatrix *m = &work->product->left;
    const int64_t line = work->steps * KILN_AMX_TILE;

    if (is_packed(m))
        return (KilnAmxSide) {
            .first = (const uint16_t *)m->data + row_block * KILN_AMX_BLOCK * m->stride,
            .second = KILN_AMX_ROWS * m->stride,
            .step = KILN_AMX_DEPTH,
            .row = m->stride * (int64_t)sizeof(uint16_t),
        };
    return (KilnAmxSide) {
        .first = work->left + 2 * row_block * line, .second = line, .step = KILN_AMX_TILE, .row = 64
    };
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void one_block(const Work *work, int64_t i, int64_t j, float *sums)
{
    const int64_t line = work->steps * KILN_AMX_TILE;
    const KilnAmxSide left = left_side(work, i);
    const KilnAmxSide right = {
        .first = work->right + 2 * j * line, .second = line, .step = KILN_AMX_TILE, .row = 64
    };

    kiln_amx_block(sums, STRIP, &left, &right, work->steps, 1, false);
}

/* Blocks j0 to j1 of row i of blocks are complete. */
static void finish_strip(const Work *work, int64_t i, int64_t j0, int64_t j1, float *sums)
{
    const KilnAmxProduct *p = work->product;
    const int64_t row = i * KILN_AMX_BLOCK, column = j0 * KILN_AMX_BLOCK;
    const int64_t rows = least(p->left.rows - row, KILN_AMX_BLOCK);
    const int64_t columns = least(p->right.rows, j1 * KILN_AMX_BLOCK) - column;

    if (p->done != NULL)
        p->done(p->context, sums, STRIP, &(KilnGemmPart) { row, rows, column, columns });
    else
        kiln_amx_store(&p->result, sums, STRIP, row, column, rows, columns);
}

/* Row after row of the result, whose lines are far away, over groups of columns. */
static void multiply(void *context, int64_t begin, int64_t end)
{
    const Work *work = context;
    const int64_t i0 = work->by_columns ? 0 : begin, i1 = work->by_columns ? work->row_blocks : end;
    const int64_t j0 = work->by_columns ? begin : 0;
    const int64_t j1 = work->by_columns ? end : work->column_blocks;
    const int64_t block_bytes = work->steps * KILN_AMX_TILE * 2 * (int64_t)sizeof(uint16_t);
    const int64_t group = least(GROUP, GROUP_BYTES / block_bytes + 1);
    _Alignas(64) float sums[KILN_AMX_BLOCK * STRIP];

    kiln_amx_begin();
    for (int64_t g = j0; g < j1; g += group)
        for (int64_t i = i0; i < i1; i++) {
            const int64_t stop = least(g + group, j1);

            for (int64_t j = g; j < stop; j++)
                one_block(work, i, j, sums + (j - g) * KILN_AMX_BLOCK);
            finish_strip(work, i, g, stop, sums);
        }
    kiln_amx_end();
}

void kiln_amx_product(const KilnAmxProduct *product, void *workspace)
{
    Work work = {
        .product = product,
        .steps = blocks(product->left.depth, KILN_AMX_DEPTH),
        .row_blocks = blocks(product->left.rows, KILN_AMX_BLOCK),
        .column_blocks = blocks(product->right.rows, KILN_AMX_BLOCK),
    };
    const int threads = product->left.rows * product->right.rows < 4096 ? 1 : product->threads;

    work.right = workspace;
    work.left = work.right + kiln_amx_packed(product->right.rows, product->right.depth);
    work.by_columns = work.column_blocks > work.row_blocks;
    kiln_parallel(threads, work.column_blocks * 2, 1, 1, pack_right, &work);
    if (!is_packed(&product->left))
        kiln_parallel(threads, work.row_blocks * 2, 1, 1, pack_left, &work);
    kiln_parallel(threads, work.by_columns ? work.column_blocks : work.row_blocks, 1, 1, multiply,
                  &work);
}
