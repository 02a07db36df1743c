/* Products of bf16 by tiles, with each of the processor's instructions, beside sums in double. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cpu/bf16/product.h"
#include "backend/cpu/level.h"
#include "kiln/rng.h"
#include "tensor/bf16.h"

enum { MAX_ROWS = 130, MAX_DEPTH = 600, GAP = 3 /* elements between stored rows */ };

typedef struct Factor {
    float wide[MAX_ROWS * MAX_DEPTH]; /* [rows, depth], representable in bf16 */
    float stored_f32[(MAX_ROWS + GAP) * (MAX_DEPTH + GAP)];
    uint16_t stored_bf16[(MAX_ROWS + GAP) * (MAX_DEPTH + GAP)];
    KilnTileMatrix matrix;
} Factor;

static void fill(Factor *factor, KilnRng *rng, int64_t rows, int64_t depth, bool f32, bool across)
{
    const int64_t stride = (across ? rows : depth) + GAP;

    memset(factor->stored_f32, 0xFF, sizeof(factor->stored_f32)); /* NaN: may not be used */
    memset(factor->stored_bf16, 0xFF, sizeof(factor->stored_bf16));
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < depth; k++) {
            const uint16_t value = kiln_bf16_of(kiln_rng_normal(rng));
            const int64_t at = across ? k * stride + r : r * stride + k;

            factor->wide[r * depth + k] = kiln_bf16_to(value);
            factor->stored_f32[at] = kiln_bf16_to(value);
            factor->stored_bf16[at] = value;
        }
    factor->matrix = (KilnTileMatrix) {
        .data = f32 ? (const void *)factor->stored_f32 : factor->stored_bf16,
        .f32 = f32,
        .across = across,
        .stride = stride,
        .rows = rows,
        .depth = depth,
    };
}

static void check_sums(const Factor *left, const Factor *right, const float *got, int64_t stride)
{
    const int64_t depth = left->matrix.depth;

    for (int64_t i = 0; i < left->matrix.rows; i++)
        for (int64_t j = 0; j < right->matrix.rows; j++) {
            double want = 0.0;

            for (int64_t k = 0; k < depth; k++)
                want += (double)left->wide[i * depth + k] * (double)right->wide[j * depth + k];
            if (!(fabs((double)got[i * stride + j] - want) <= 1e-5 * (double)depth))
                fail_msg("%dx%dx%d, row %d, column %d: %g, expected %g", (int)left->matrix.rows,
                         (int)right->matrix.rows, (int)depth, (int)i, (int)j,
                         (double)got[i * stride + j], want);
        }
}

/* Writes the product to `y`, rows `stride` apart, whose other elements stay as they are. */
static void multiply(const KilnTileOps *tiles, const Factor *left, const Factor *right, float *y,
                     int64_t stride, int threads)
{
    const KilnBf16Product product = {
        .left = left->matrix,
        .right = right->matrix,
        .result = { .data = y, .f32 = true, .stride = stride },
        .tiles = tiles,
        .loops = &kiln_loops_base,
        .threads = threads,
    };
    const size_t bytes = (kiln_bf16_product_workspace(&product) + 63) / 64 * 64;
    void *workspace = aligned_alloc(64, bytes);

    assert_non_null(workspace);
    memset(workspace, 0xFF, bytes);
    kiln_bf16_product(&product, workspace);
    free(workspace);
}

static void check_size(const KilnTileOps *tiles, int64_t rows, int64_t columns, int64_t depth,
                       int kind)
{
    const int64_t stride = columns + GAP, count = rows * stride;
    Factor *left = malloc(sizeof(*left)), *right = malloc(sizeof(*right));
    float *one = calloc((size_t)count, sizeof(float)),
          *three = calloc((size_t)count, sizeof(float));
    KilnRng rng;

    assert_true(left != NULL && right != NULL && one != NULL && three != NULL);
    kiln_rng_init(&rng, 7, KILN_RNG_USER, (uint32_t)depth, (uint64_t)(rows * columns));
    fill(left, &rng, rows, depth, (kind & 1) != 0, (kind & 2) != 0);
    fill(right, &rng, columns, depth, (kind & 4) != 0, (kind & 8) != 0);
    multiply(tiles, left, right, one, stride, 1);
    multiply(tiles, left, right, three, stride, 3);
    check_sums(left, right, one, stride);
    assert_memory_equal(one, three, (size_t)count * sizeof(float));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = columns; j < stride; j++)
            assert_true(one[i * stride + j] == 0.0f);
    free(left);
    free(right);
    free(one);
    free(three);
}

static void check_sizes(const KilnTileOps *tiles)
{
    static const int64_t sizes[][3] = {
        { 1, 1, 1 },   { 1, 70, 33 },  { 7, 16, 32 },    { 8, 32, 64 },   { 17, 31, 5 },
        { 32, 1, 96 }, { 64, 64, 64 }, { 65, 100, 130 }, { 130, 33, 31 }, { 96, 128, 600 },
    };

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (int kind = 0; kind < 16; kind++)
            check_size(tiles, sizes[i][0], sizes[i][1], sizes[i][2], kind);
}

static KilnCpuLevel level(void)
{
    KilnCpuLevel result = KILN_CPU_BASE;
    KilnError err = { 0 };
    bool capped;

    assert_int_equal(kiln_cpu_level_choose(&result, &capped, &err), KILN_OK);
    return result;
}

#if defined(__x86_64__)
static const KilnTileOps *const amx = &kiln_tiles_amx, *const vectors = &kiln_tiles_vectors;
#else
static const KilnTileOps *const amx = NULL, *const vectors = NULL;
#endif

/* NULL: not built for this processor. */
static void check_products(const KilnTileOps *tiles, KilnCpuLevel least)
{
    if (tiles == NULL || level() < least)
        skip();
    check_sizes(tiles);
}

static void products_on_amx(void **state)
{
    (void)state;
    check_products(amx, KILN_CPU_AMX);
}

static void products_with_vectors(void **state)
{
    (void)state;
    check_products(vectors, KILN_CPU_AVX512_BF16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_on_amx),
        cmocka_unit_test(products_with_vectors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
