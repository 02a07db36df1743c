/* Products by OpenBLAS against plain sums, and their parts. */
#include "backend/cpu/blas.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/rng.h"
#include "tests/support/cmocka.h"

enum { EXTRA = 3 }; /* elements between the end of a row and the next */

typedef struct Product {
    KilnGemm gemm;
    KilnDType dtype;
    void *a, *b, *c;
    double *want;
    int *parts; /* that cover each element */
} Product;

static double get(const Product *p, const void *data, int64_t i)
{
    return p->dtype == KILN_F64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

static void set(const Product *p, void *data, int64_t i, double value)
{
    if (p->dtype == KILN_F64)
        ((double *)data)[i] = value;
    else
        ((float *)data)[i] = (float)value;
}

static void *drawn(const Product *p, int64_t n, uint64_t key)
{
    void *data = calloc((size_t)n, kiln_dtype_size(p->dtype));
    KilnRng rng;

    assert_non_null(data);
    kiln_rng_init(&rng, 1, KILN_RNG_USER, 0, key);
    for (int64_t i = 0; i < n; i++)
        set(p, data, i, (double)kiln_rng_normal(&rng));
    return data;
}

static double element(const Product *p, int64_t i, int64_t j)
{
    const KilnGemm *g = &p->gemm;
    double sum = 0.0;

    for (int64_t l = 0; l < g->k; l++)
        sum += get(p, p->a, g->transpose_a ? l * g->lda + i : i * g->lda + l) *
               get(p, p->b, g->transpose_b ? j * g->ldb + l : l * g->ldb + j);
    sum *= (double)g->alpha;
    return g->beta == 0.0f ? sum : sum + (double)g->beta * get(p, p->c, i * g->ldc + j);
}

static Product product_new(KilnDType dtype, int64_t m, int64_t n, int64_t k, int transposed)
{
    const bool a = (transposed & 1) != 0, b = (transposed & 2) != 0, add = (transposed & 4) != 0;
    Product p = { .dtype = dtype,
                  .gemm = { .m = m,
                            .n = n,
                            .k = k,
                            .lda = (a ? m : k) + EXTRA,
                            .ldb = (b ? k : n) + EXTRA,
                            .ldc = n + EXTRA,
                            .transpose_a = a,
                            .transpose_b = b,
                            .alpha = add ? 0.5f : 1.0f,
                            .beta = add ? 2.0f : 0.0f } };

    p.a = drawn(&p, (a ? k : m) * p.gemm.lda, 1);
    p.b = drawn(&p, (b ? n : k) * p.gemm.ldb, 2);
    p.c = drawn(&p, m * p.gemm.ldc, 3);
    p.want = calloc((size_t)(m * n), sizeof(double));
    p.parts = calloc((size_t)(m * n), sizeof(int));
    assert_true(p.want != NULL && p.parts != NULL);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            p.want[i * n + j] = element(&p, i, j);
    for (int64_t i = 0; !add && i < m * p.gemm.ldc; i++)
        set(&p, p.c, i, NAN); /* must not be read */
    return p;
}

static void product_release(Product *p)
{
    free(p->a);
    free(p->b);
    free(p->c);
    free(p->want);
    free(p->parts);
}

static void count_part(void *context, const KilnGemmPart *part)
{
    Product *p = context;

    for (int64_t i = part->row; i < part->row + part->rows; i++)
        for (int64_t j = part->column; j < part->column + part->columns; j++)
            p->parts[i * p->gemm.n + j]++;
}

static void check(const Product *p)
{
    const double most = (p->dtype == KILN_F64 ? 1e-14 : 1e-6) * (double)(p->gemm.k + 8);

    for (int64_t i = 0; i < p->gemm.m; i++)
        for (int64_t j = 0; j < p->gemm.n; j++) {
            const double got = get(p, p->c, i * p->gemm.ldc + j), want = p->want[i * p->gemm.n + j];

            if (!(fabs(got - want) <= most))
                fail_msg("%s %lld x %lld x %lld [%lld, %lld]: %.17g, want %.17g",
                         kiln_dtype_name(p->dtype), (long long)p->gemm.m, (long long)p->gemm.n,
                         (long long)p->gemm.k, (long long)i, (long long)j, got, want);
        }
}

static void test_products(void **unused)
{
    static const int64_t shapes[][3] = { { 1, 1, 1 },    { 2, 3, 5 },   { 65, 67, 33 },
                                         { 400, 10, 7 }, { 7, 500, 9 }, { 130, 140, 300 } };

    (void)unused;
    for (size_t s = 0; s < KILN_COUNT(shapes); s++)
        for (int transposed = 0; transposed < 8; transposed++)
            for (int threads = 1; threads <= 3; threads++)
                for (int f64 = 0; f64 < 2; f64++) {
                    Product p = product_new(f64 ? KILN_F64 : KILN_F32, shapes[s][0], shapes[s][1],
                                            shapes[s][2], transposed);

                    kiln_blas_gemm(threads, &p.gemm, p.dtype, p.a, p.b, p.c, count_part, &p);
                    check(&p);
                    for (int64_t i = 0; i < p.gemm.m * p.gemm.n; i++)
                        assert_int_equal(p.parts[i], 1);
                    product_release(&p);
                }
}

/* Without a lock around its buffers, several of these products go wrong in each run. */
static void test_many_threads(void **unused)
{
    enum { THREADS = 8, TIMES = 1000 };

    (void)unused;
#pragma omp parallel for num_threads(THREADS)
    for (int t = 0; t < THREADS; t++) {
        Product p = product_new(KILN_F64, 60 + t, 50, 40, 0);

        for (int i = 0; i < TIMES; i++) {
            kiln_blas_product(&p.gemm, p.dtype, p.a, p.b, p.c);
            check(&p);
        }
        product_release(&p);
    }
}

static void test_version(void **unused)
{
    (void)unused;
    assert_memory_equal(kiln_blas_version(), "OpenBLAS ", strlen("OpenBLAS "));
    assert_int_equal(strspn(kiln_blas_version() + strlen("OpenBLAS "), "0123456789."),
                     strcspn(kiln_blas_version() + strlen("OpenBLAS "), " "));
}

static int load(void **unused)
{
    KilnError err = { 0 };

    (void)unused;
    if (kiln_blas_require("test", &err) < 0)
        fail_msg("%s", err.text);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_many_threads),
        cmocka_unit_test(test_version),
    };

    return cmocka_run_group_tests(tests, load, NULL);
}
