/* Matrix products with tiles in registers (Goto and van de Geijn 2008). A block of rows of a,
 * packed if it is stored by columns, and some packed panels of b as wide as a tile stay in the
 * second-level cache. A few rows of a at a time pass over these panels while they are in the
 * first-level cache, so c is written in long pieces of its rows. Sums are as deep as possible,
 * since each part of the depth reads and writes c again. */
#include "backend/cpu/isa/gemm.h"

#include <stddef.h>
#include <string.h>

#include "backend/cpu/isa/transpose.h"
#include "base/min.h"

/* ---- Vectors --------------------------------------------------------------------- */

#if defined(__AVX512F__)
enum { ROWS = 12 };
/* Keeps the compiler from reading the element again for each multiplication. */
#define IN_REGISTER(vector) __asm__("" : "+v"(vector))
#elif defined(__AVX2__) && defined(__FMA__)
enum { ROWS = 6 };
#define IN_REGISTER(vector)
#elif defined(__aarch64__)
enum { ROWS = 12 };
#define IN_REGISTER(vector)
#else
enum { ROWS = 3 };
#define IN_REGISTER(vector)
#endif

enum {
    COLUMNS = 2 * WIDTH,
    GROUP = ROWS / 3,
    DEPTH = KILN_GEMM_DEPTH,
    PANELS = KILN_GEMM_PANELS,
    AHEAD = 16, /* of depth: how far ahead to prefetch packed panels */
    PIECE = 32, /* of depth: how often to prefetch what is packed next */
    LINE = 64   /* bytes of a line of the cache */
};

static inline Vector load(const float *x)
{
    return *(const Floats *)x;
}

static inline void store(float *x, Vector value)
{
    *(Floats *)x = value;
}

static inline Vector all(float x)
{
    return x - (Vector) { 0 };
}

/* ---- Prefetching ------------------------------------------------------------------- */

/* The part of b that is packed after the current panels. Tiles fetch it to the second-level cache,
 * some lines at a time: packing would wait for the memory, which is idle while tiles run. */
typedef struct Ahead {
    const char *at;
    int64_t lines, rows; /* of the current row, and whole rows after it */
    int64_t row, jump;   /* lines of a row; bytes from the end of its last line to the next row */
    int64_t each;        /* lines to fetch at a time */
} Ahead;

static inline void fetch_ahead(Ahead *ahead)
{
    for (int64_t i = ahead->each; i > 0 && ahead->lines > 0; i--) {
        __builtin_prefetch(ahead->at, 0, 2);
        ahead->at += LINE;
        if (--ahead->lines == 0 && ahead->rows > 0) {
            ahead->rows--;
            ahead->lines = ahead->row;
            ahead->at += ahead->jump;
        }
    }
}

/* Of `rows` rows of `floats`, which are `ld` floats apart, in `times` times. */
static Ahead ahead_of(const float *from, int64_t rows, int64_t floats, int64_t ld, int64_t times)
{
    const int64_t row = (floats * (int64_t)sizeof(float) + LINE - 1) / LINE;

    if (rows <= 0)
        return (Ahead) { .lines = 0 };
    return (Ahead) { .at = (const char *)from,
                     .lines = row,
                     .rows = rows - 1,
                     .row = row,
                     .jump = ld * (int64_t)sizeof(float) - row * LINE,
                     .each = (rows * row + times - 1) / times };
}

/* ---- Tiles ------------------------------------------------------------------------ */

/* c [rows, columns] = alpha sum over l of a[i * row + l * step] b[l * COLUMNS + j]
 * + beta c. */
typedef struct Tile {
    const float *a, *b;
    ptrdiff_t row, step;
    bool packed; /* row is 1, step is ROWS */
    int64_t depth;
    float *c;
    ptrdiff_t ldc;
    float alpha, beta;
    Ahead *ahead;
} Tile;

/* Stores part of a vector through memory. */
static void put_part(const Tile *t, float *c, Vector sum, int64_t columns)
{
    float part[WIDTH] = { 0 };

    if (t->beta != 0.0f) {
        memcpy(part, c, (size_t)columns * sizeof(float));
        sum = FMA(all(t->beta), load(part), sum);
    }
    store(part, sum);
    memcpy(c, part, (size_t)columns * sizeof(float));
}

/* Stores one row of results. */
static inline void put(const Tile *t, float *c, const Vector *sums, int64_t columns)
{
    for (; columns > 0; columns -= WIDTH, c += WIDTH, sums++) {
        const Vector sum = *sums * all(t->alpha);

        if (columns < WIDTH)
            put_part(t, c, sum, columns);
        else
            store(c, t->beta == 0.0f ? sum : FMA(all(t->beta), load(c), sum));
    }
}

/* Stores all rows of a whole tile, without branches: for shallow sums this is a good part of the
 * time. */
static void put_whole(const Tile *t, const Vector *sums)
{
    const Vector alpha = all(t->alpha), beta = all(t->beta);
    float *c = t->c;

    if (t->beta == 0.0f)
        for (int i = 0; i < ROWS; i++, c += t->ldc, sums += 2) {
            store(c, sums[0] * alpha);
            store(c + WIDTH, sums[1] * alpha);
        }
    else
        for (int i = 0; i < ROWS; i++, c += t->ldc, sums += 2) {
            store(c, FMA(beta, load(c), sums[0] * alpha));
            store(c + WIDTH, FMA(beta, load(c + WIDTH), sums[1] * alpha));
        }
}

/* `rows` and `vectors` are constants where this is inlined, so that all sums stay in registers;
 * four rows share one address, since address registers are few. An element of a is read once for
 * both vectors of b: AVX-512 can broadcast it while multiplying, but then reads limit the rate. */
static inline __attribute__((always_inline)) void tile(const Tile *t, int rows, int vectors,
                                                       bool packed, Vector *sums)
{
    const ptrdiff_t row = packed ? 1 : t->row, step = packed ? ROWS : t->step;
    const float *b = t->b, *a[ROWS / GROUP];
    Vector sum[ROWS][2];

#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            sum[i][v] = (Vector) { 0 };
#pragma GCC unroll 4
    for (int i = 0; i < rows / GROUP; i++)
        a[i] = t->a + i * GROUP * row;
    for (int64_t left_over = t->depth; left_over > 0; left_over -= PIECE) {
        fetch_ahead(t->ahead);
        for (int64_t l = left_over < PIECE ? left_over : PIECE; l > 0; l--) {
            Vector right[2];

            __builtin_prefetch(b + AHEAD * COLUMNS);
            __builtin_prefetch(b + AHEAD * COLUMNS + WIDTH);
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++)
                right[v] = load(b + v * WIDTH);
#pragma GCC unroll 16
            for (int i = 0; i < rows; i++) {
                Vector left = all(a[i / GROUP][i % GROUP * row]);

                IN_REGISTER(left);
#pragma GCC unroll 2
                for (int v = 0; v < vectors; v++)
                    sum[i][v] = FMA(left, right[v], sum[i][v]);
            }
#pragma GCC unroll 4
            for (int i = 0; i < rows / GROUP; i++)
                a[i] += step;
            b += COLUMNS;
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            sums[i * vectors + v] = sum[i][v];
}

typedef void TileRun(const Tile *t, Vector *sums);

#define TILE(name, rows, vectors)                                                                  \
    static void name(const Tile *t, Vector *sums)                                                  \
    {                                                                                              \
        if (t->packed)                                                                             \
            tile(t, rows, vectors, true, sums);                                                    \
        else                                                                                       \
            tile(t, rows, vectors, false, sums);                                                   \
    }
TILE(tile_3_1, ROWS, 1)
TILE(tile_3_2, ROWS, 2)
TILE(tile_2_1, ROWS * 2 / 3, 1)
TILE(tile_2_2, ROWS * 2 / 3, 2)
TILE(tile_1_1, ROWS / 3, 1)
TILE(tile_1_2, ROWS / 3, 2)

static void run_tile(const Tile *t, int64_t rows, int64_t columns)
{
    static TileRun *const runs[3][2] = { { tile_1_1, tile_1_2 },
                                         { tile_2_1, tile_2_2 },
                                         { tile_3_1, tile_3_2 } };

    const int vectors = columns > WIDTH ? 2 : 1;
    Vector sums[ROWS * 2];

    for (int i = 0; i < rows; i++) /* c is far away, and there is time until it is needed */
        for (int v = 0; v < vectors; v++)
            __builtin_prefetch(t->c + i * t->ldc + v * WIDTH, 1);
    runs[(rows - 1) / GROUP][vectors - 1](t, sums);
    if (rows == ROWS && columns == COLUMNS) {
        put_whole(t, sums);
        return;
    }
    for (int i = 0; i < rows; i++)
        put(t, t->c + i * t->ldc, sums + i * vectors, columns);
}

/* ---- Packing ----------------------------------------------------------------------- */

/* to[l * width + j] = from[l * ld + j] for j < columns (zeros up to width). */
static inline __attribute__((always_inline)) void pack_rows(float *to, int width, const float *from,
                                                            int64_t ld, int64_t columns,
                                                            int64_t depth)
{
    if (columns >= width) {
        for (int64_t l = 0; l < depth; l++, from += ld, to += width)
            memcpy(to, from, (size_t)width * sizeof(float));
        return;
    }
    for (int64_t l = 0; l < depth; l++, from += ld, to += width)
        for (int j = 0; j < width; j++)
            to[j] = j < columns ? from[j] : 0.0f;
}

/* ---- Products ------------------------------------------------------------------------ */

_Static_assert((int)COLUMNS <= KILN_GEMM_COLUMNS && (int)WIDTH <= KILN_GEMM_VECTOR,
               "scratch holds panels of b and the end of a");

/* Columns of a, for some tiles at a time, since rows of a are far apart. */
static void pack_columns(float *to, const float *from, int64_t ld, int64_t rows, int64_t depth)
{
    const int64_t together = 4 * ROWS;
    int64_t i = 0;

    for (; i + together <= rows; i += together)
        for (int64_t l = 0; l < depth; l++)
            for (int64_t t = i; t < i + together; t += ROWS)
                memcpy(to + t * depth + l * ROWS, from + l * ld + t, ROWS * sizeof(float));
    for (; i < rows; i += ROWS)
        pack_rows(to + i * depth, ROWS, from + i, ld, kiln_min_i64(ROWS, rows - i), depth);
}

static void pack_block(float *block_a, const KilnGemm *g, const float *a, int64_t rows,
                       int64_t depth)
{
    if (g->transpose_a) {
        pack_columns(block_a, a, g->lda, rows, depth);
        return;
    }
    for (int64_t i = 0; i < rows; i += ROWS)
        pack_transposed(block_a + i * depth, ROWS, a + i * g->lda, g->lda,
                        kiln_min_i64(ROWS, rows - i), depth);
}

/* A block of rows of the product. */
typedef struct Block {
    const KilnGemm *gemm;
    const float *a, *b;
    float *c;
    int64_t row, rows;
    int64_t from, depth; /* the part of the depth */
    KilnGemmPacking packing;
    float *panels;      /* of b, packed on the way: rows of COLUMNS */
    float *packed;      /* the rows of a: for each tile its columns one after the other; the last is
                           written in whole vectors */
    KilnGemmDone *done; /* NULL: none, or more depth to come */
    void *context;
    int64_t more; /* columns of b after the product's, which the thread is likely to use next */
} Block;

static void pack_panels(const Block *block, int64_t first, int64_t columns)
{
    const KilnGemm *g = block->gemm;
    float *panel = block->panels;

    for (int64_t j = first; j < first + columns; j += COLUMNS, panel += block->depth * COLUMNS) {
        const int64_t count = kiln_min_i64(COLUMNS, first + columns - j);

        if (g->transpose_b)
            pack_transposed(panel, COLUMNS, block->b + j * g->ldb + block->from, g->ldb, count,
                            block->depth);
        else
            pack_rows(panel, COLUMNS, block->b + block->from * g->ldb + j, g->ldb, count,
                      block->depth);
    }
}

/* Runs the tile's rows over panels that are `panel` floats apart, from the first on. */
static void run_panels(Tile tile, int64_t panel, int64_t rows, int64_t columns)
{
    for (int64_t j = 0; j < columns; j += COLUMNS) {
        run_tile(&tile, rows, kiln_min_i64(COLUMNS, columns - j));
        tile.b += panel;
        tile.c += COLUMNS;
    }
}

/* Rows of a are read where they are: a line of the cache holds as many elements of a row as a tile
 * reads one after the other. Not so if it is stored by columns, or if lines of the rows of a tile
 * compete for the same places in the first-level cache, or if zeros complete the only tile. */
static bool packs_left(const KilnGemm *g)
{
    enum { CONFLICT = 4096 / sizeof(float) };

    return g->transpose_a || g->lda % CONFLICT == 0 || g->m < ROWS;
}

/* Runs all rows of the block over some columns. Tiles read whole groups of rows, so rows
 * that are left over are packed, padded with zeros. */
static void run_rows(const Block *block, const float *a, Tile tile, int64_t j, int64_t columns)
{
    const KilnGemm *g = block->gemm;
    const int64_t panel = (g->packed_b ? g->k : tile.depth) * COLUMNS;

    for (int64_t i = 0; i < block->rows; i += ROWS) {
        const int64_t rows = kiln_min_i64(ROWS, block->rows - i);

        tile.a = tile.packed ? block->packed + i * tile.depth : a + i * g->lda;
        tile.c = block->c + (block->row + i) * g->ldc + j;
        if (!tile.packed && rows % GROUP != 0) {
            pack_transposed(block->packed, ROWS, tile.a, g->lda, rows, tile.depth);
            tile.a = block->packed;
            tile.packed = true;
        }
        run_panels(tile, panel, rows, columns);
        if (block->done != NULL)
            block->done(block->context, &(KilnGemmPart) { block->row + i, rows, j, columns });
    }
}

/* What follows `columns` columns from j: further ones, or else those of the next part of the depth,
 * or else those after the product's. */
static Ahead next_panels(const Block *block, int64_t j, int64_t columns)
{
    const KilnGemm *g = block->gemm;
    const int64_t tiles = (block->rows + ROWS - 1) / ROWS * ((columns + COLUMNS - 1) / COLUMNS);
    const int64_t times = tiles * ((block->depth + PIECE - 1) / PIECE);
    int64_t from = block->from, count = g->n - j - columns, depth = block->depth;

    j += columns;
    if (count == 0 && from + depth < g->k) {
        from += depth;
        depth = kiln_min_i64(depth, g->k - from);
        j = 0;
        count = g->n;
    } else if (count == 0) {
        depth = kiln_min_i64(g->k, DEPTH);
        from = 0;
        count = block->more;
    }
    count = kiln_min_i64(count, PANELS * COLUMNS);
    if (g->packed_b)
        return ahead_of(block->b + j * g->k + from * COLUMNS, (count + COLUMNS - 1) / COLUMNS,
                        depth * COLUMNS, g->k * COLUMNS, times);
    if (g->transpose_b)
        return ahead_of(block->b + j * g->ldb + from, count, depth, g->ldb, times);
    return ahead_of(block->b + from * g->ldb + j, count > 0 ? depth : 0, count, g->ldb, times);
}

static void run_block(const Block *block)
{
    const KilnGemm *g = block->gemm;
    const int64_t depth = block->depth, from = block->from;
    const float *a = block->a +
                     (g->transpose_a ? from * g->lda + block->row : block->row * g->lda + from);
    Tile tile = { .b = block->panels,
                  .row = g->lda,
                  .step = 1,
                  .packed = packs_left(g),
                  .depth = depth,
                  .ldc = g->ldc,
                  .alpha = g->alpha,
                  .beta = from == 0 ? g->beta : 1.0f };

    if (tile.packed && block->packing != KILN_GEMM_AGAIN)
        pack_block(block->packed, g, a, block->rows, depth);
    for (int64_t j = 0; j < g->n; j += PANELS * COLUMNS) {
        const int64_t columns = kiln_min_i64(PANELS * COLUMNS, g->n - j);
        Ahead ahead = next_panels(block, j, columns);

        tile.ahead = &ahead;
        if (g->packed_b)
            tile.b = block->b + j * g->k + from * COLUMNS;
        else
            pack_panels(block, j, columns);
        run_rows(block, a, tile, j, columns);
    }
}

static void scale_only(const KilnGemm *g, float *c)
{
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++)
            c[i * g->ldc + j] = g->beta == 0.0f ? 0.0f : g->beta * c[i * g->ldc + j];
}

/* Size of a part when n is split evenly into parts of at most `most`. */
static int64_t even(int64_t n, int64_t most)
{
    const int64_t parts = (n + most - 1) / most;

    return (n + parts - 1) / parts;
}

/* x · y of `n` elements. */
static float dot(const float *x, const float *y, int64_t n)
{
    Vector sum[4] = { { 0 } }, total;
    float result = 0.0f;
    int64_t l = 0;

    for (; l + 4 * WIDTH <= n; l += 4 * WIDTH)
#pragma GCC unroll 4
        for (int v = 0; v < 4; v++)
            sum[v] = FMA(load(x + l + v * WIDTH), load(y + l + v * WIDTH), sum[v]);
    for (; l + WIDTH <= n; l += WIDTH)
        sum[0] = FMA(load(x + l), load(y + l), sum[0]);
    total = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    for (int i = 0; i < WIDTH; i++)
        result += total[i];
    for (; l < n; l++)
        result += x[l] * y[l];
    return result;
}

/* One row times the rows of b: nothing is used twice, so nothing is packed. */
static void single_row(const KilnGemm *g, const float *a, const float *b, float *c)
{
    for (int64_t j = 0; j < g->n; j++) {
        const float sum = g->alpha * dot(a, b + j * g->ldb, g->k);

        c[j] = g->beta == 0.0f ? sum : sum + g->beta * c[j];
    }
}

/* A column times a row: one sample's part of a weight's gradient. */
static void outer(const KilnGemm *g, const float *a, const float *b, float *c)
{
    for (int64_t i = 0; i < g->m; i++, c += g->ldc) {
        const float factor = g->alpha * a[g->transpose_a ? i : i * g->lda];

        if (g->beta == 0.0f)
            for (int64_t j = 0; j < g->n; j++)
                c[j] = factor * b[j];
        else
            for (int64_t j = 0; j < g->n; j++)
                c[j] = factor * b[j] + g->beta * c[j];
    }
}

/* Products that need no tiles; false: not one of them. */
static bool simple(const KilnGemm *g, const float *a, const float *b, float *c)
{
    if (g->k == 0)
        scale_only(g, c);
    else if (g->k == 1 && !g->transpose_b && !g->packed_b)
        outer(g, a, b, c);
    else if (g->m == 1 && g->transpose_b && !g->transpose_a && !g->packed_b)
        single_row(g, a, b, c);
    else
        return false;
    return true;
}

static void product(const KilnGemm *g, const float *a, const float *b, float *c,
                    KilnGemmScratch scratch, KilnGemmPacking packing, KilnGemmDone *done,
                    void *context)
{
    Block block = { .gemm = g,
                    .a = a,
                    .b = b,
                    .c = c,
                    .panels = scratch.floats,
                    .packing = packing,
                    .context = context,
                    .more = scratch.more };

    if (g->m == 0 || g->n == 0)
        return;
    if (simple(g, a, b, c)) {
        if (done != NULL)
            done(context, &(KilnGemmPart) { 0, g->m, 0, g->n });
        return;
    }
    float *const packed = scratch.floats + PANELS * DEPTH * COLUMNS;
    const int64_t depth = even(g->k, DEPTH);
    const int64_t most = packing == KILN_GEMM_PACK ? scratch.packed : KILN_GEMM_PACKED;
    const int64_t rows = (even(g->m, most / depth / ROWS * ROWS) + ROWS - 1) / ROWS * ROWS;

    for (; block.row < g->m; block.row += rows) {
        block.rows = kiln_min_i64(rows, g->m - block.row);
        for (block.from = 0; block.from < g->k; block.from += depth) {
            block.depth = kiln_min_i64(depth, g->k - block.from);
            block.packed = packed + (packing == KILN_GEMM_PACK ? 0 : block.from * rows);
            block.done = block.from + block.depth == g->k ? done : NULL;
            run_block(&block);
        }
    }
}

static void packed_product(const KilnGemmPacked *g)
{
    Ahead nothing = { .lines = 0 };

    for (int64_t j = 0; j < g->columns; j += PANELS * COLUMNS)
        for (int64_t i = 0; i < g->rows; i += ROWS) {
            const Tile tile = { .a = g->a + i * g->row,
                                .b = g->panels + j * g->depth,
                                .row = g->row,
                                .step = g->step,
                                .depth = g->depth,
                                .c = g->c + i * g->ldc + j,
                                .ldc = g->ldc,
                                .alpha = 1.0f,
                                .beta = g->add ? 1.0f : 0.0f,
                                .ahead = &nothing };

            run_panels(tile, g->depth * COLUMNS, kiln_min_i64(ROWS, g->rows - i),
                       kiln_min_i64(PANELS * COLUMNS, g->columns - j));
        }
}

const KilnGemmLoops KILN_LOOPS(gemm_loops) = {
    .rows = ROWS, .columns = COLUMNS, .product = product, .packed_product = packed_product
};
