/* Times products of f32 by kiln's own loops and by OpenBLAS, in turns: the shapes of real networks
 * and squares. Prints the rate of multiply-adds in registers, which no product can exceed, and a
 * table in GFLOP/s.
 *
 *   make build/release/bench/gemm
 *   KILN_ISA=avx2 gemm [THREADS [TURNS]] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "backend/cpu/blas.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/level.h"
#include "backend/cpu/parallel.h"
#include "base/parse.h"
#include "kiln/rng.h"
#include "kiln/tools/clock.h"

enum { MOST_TURNS = 101 };
static const double least_seconds = 0.004; /* of one timing */

typedef struct Shape {
    const char *of;
    int64_t m, n, k;
    bool transpose_a, transpose_b;
} Shape;

/* Forward products have the weight [out, in] transposed; gradients of inputs take both as they are,
 * gradients of weights the output's gradient transposed. */
static const Shape shapes[] = {
    { "mlp forward", 128, 512, 784, false, true },
    { "mlp input gradient", 128, 512, 512, false, false },
    { "mlp weight gradient", 512, 784, 128, true, false },
    { "mlp last layer", 128, 10, 512, false, true },
    { "gpt projection", 2048, 384, 384, false, true },
    { "gpt feed forward", 2048, 1536, 384, false, true },
    { "gpt feed forward back", 2048, 384, 1536, false, true },
    { "gpt weight gradient", 1536, 384, 2048, true, false },
    { "gpt logits", 2048, 8192, 384, false, true },
    { "gpt 256 tokens, in", 256, 1536, 384, false, true },
    { "gpt 256 tokens, out", 256, 384, 1536, false, true },
    { "gpt 256 tokens, projection", 256, 384, 384, false, true },
    { "gpt one token", 1, 1536, 384, false, true },
    { "lstm gates", 128, 1024, 256, false, true },
    { "lstm input gradient", 128, 256, 1024, false, false },
    { "conv 1x1 image", 3136, 256, 64, false, true },
    { "conv 3x3 columns", 1024, 128, 1152, false, true },
    { "square 64", 64, 64, 64, false, false },
    { "square 128", 128, 128, 128, false, false },
    { "square 256", 256, 256, 256, false, false },
    { "square 512", 512, 512, 512, false, false },
    { "square 1024", 1024, 1024, 1024, false, false },
    { "square 2048", 2048, 2048, 2048, false, false },
    { "square 4096", 4096, 4096, 4096, false, false },
};

typedef struct Matrices {
    KilnCall call;
    KilnGemm gemm;
    float *a, *b, *c;
} Matrices;

static float *drawn(int64_t n, uint64_t key)
{
    float *values = malloc((size_t)n * sizeof(*values));
    KilnRng rng;

    if (values == NULL) {
        fputs("out of memory\n", stderr);
        exit(1);
    }
    kiln_rng_init(&rng, 1, KILN_RNG_USER, 0, key);
    for (int64_t i = 0; i < n; i++)
        values[i] = (float)kiln_rng_normal(&rng);
    return values;
}

static void by_loops(const Matrices *x)
{
    kiln_gemm_by_loops(&x->call, &x->gemm, x->a, x->b, x->c, NULL, NULL);
}

static void by_blas(const Matrices *x)
{
    kiln_blas_gemm(x->call.backend->threads, &x->gemm, KILN_F32, x->a, x->b, x->c, NULL, NULL);
}

/* ---- The floor ---------------------------------------------------------------------------- */

enum { CHAINS = 12, ROUNDS = 1000000 }; /* independent multiply-adds; how often each is done */

#if defined(__x86_64__)
#include <immintrin.h>

__attribute__((target("avx512f"))) static float chains_of_16(void)
{
    __m512 sum[CHAINS], half = _mm512_set1_ps(0.5f);

    for (int c = 0; c < CHAINS; c++)
        sum[c] = _mm512_set1_ps((float)c);
    for (int i = 0; i < ROUNDS; i++)
        for (int c = 0; c < CHAINS; c++)
            sum[c] = _mm512_fmadd_ps(sum[c], half, half);
    for (int c = 1; c < CHAINS; c++)
        sum[0] = _mm512_add_ps(sum[0], sum[c]);
    return _mm512_cvtss_f32(sum[0]);
}

__attribute__((target("avx2,fma"))) static float chains_of_8(void)
{
    __m256 sum[CHAINS], half = _mm256_set1_ps(0.5f);

    for (int c = 0; c < CHAINS; c++)
        sum[c] = _mm256_set1_ps((float)c);
    for (int i = 0; i < ROUNDS; i++)
        for (int c = 0; c < CHAINS; c++)
            sum[c] = _mm256_fmadd_ps(sum[c], half, half);
    for (int c = 1; c < CHAINS; c++)
        sum[0] = _mm256_add_ps(sum[0], sum[c]);
    return _mm256_cvtss_f32(sum[0]);
}
#endif

/* The loop of a level and its floats per vector; 0: there is none for it. */
static int choose_chains(KilnCpuLevel level, float (**ret)(void))
{
#if defined(__x86_64__)
    if (level >= KILN_CPU_AVX2) {
        *ret = level >= KILN_CPU_AVX512 ? chains_of_16 : chains_of_8;
        return level >= KILN_CPU_AVX512 ? 16 : 8;
    }
#endif
    (void)level;
    (void)ret;
    return 0;
}

typedef struct Chains {
    float (*run)(void);
    volatile float result; /* keeps the loop */
} Chains;

static void run_chains(void *context, int64_t begin, int64_t end)
{
    Chains *chains = context;

    for (int64_t i = begin; i < end; i++)
        chains->result = chains->run();
}

/* GFLOP/s of all threads, the best of `turns`; 0: not known for this level. */
static double floor_rate(int threads, int turns)
{
    KilnCpuLevel level = KILN_CPU_BASE;
    Chains chains = { .run = NULL };
    double best = 0;
    bool capped;

    if (kiln_cpu_level_choose(&level, &capped, NULL) < 0)
        return 0;
    const int floats = choose_chains(level, &chains.run);
    for (int i = 0; i < turns && floats > 0; i++) {
        const double begin = kiln_clock();

        kiln_parallel(threads, threads, 1, 1, run_chains, &chains);
        best = fmax(best, 2e-9 * floats * CHAINS * ROUNDS * threads / (kiln_clock() - begin));
    }
    return best;
}

/* ---- Products ---------------------------------------------------------------------------------
 */

static double seconds_of(void (*run)(const Matrices *x), const Matrices *x, int times)
{
    const double begin = kiln_clock();

    for (int i = 0; i < times; i++)
        run(x);
    return (kiln_clock() - begin) / times;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof(*values), ascending);
    return n % 2 != 0 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static void row(KilnBackend *backend, const Shape *shape, int turns)
{
    double loops[MOST_TURNS], blas[MOST_TURNS], ratio[MOST_TURNS];
    Matrices x = { .call = { .backend = backend },
                   .gemm = { .m = shape->m,
                             .n = shape->n,
                             .k = shape->k,
                             .lda = shape->transpose_a ? shape->m : shape->k,
                             .ldb = shape->transpose_b ? shape->k : shape->n,
                             .ldc = shape->n,
                             .transpose_a = shape->transpose_a,
                             .transpose_b = shape->transpose_b,
                             .alpha = 1.0f },
                   .a = drawn(shape->m * shape->k, 1),
                   .b = drawn(shape->k * shape->n, 2),
                   .c = drawn(shape->m * shape->n, 3) };
    const double flops = 2e-9 * (double)shape->m * (double)shape->n * (double)shape->k;

    by_blas(&x);
    by_loops(&x);
    const double once = seconds_of(by_loops, &x, 1);
    const int times = once < least_seconds ? (int)(least_seconds / once) + 1 : 1;

    for (int i = 0; i < turns; i++) {
        loops[i] = seconds_of(by_loops, &x, times);
        blas[i] = seconds_of(by_blas, &x, times);
        ratio[i] = blas[i] / loops[i];
    }
    printf("| %s | %lld x %lld x %lld | %.0f | %.0f | %.2f |\n", shape->of, (long long)shape->m,
           (long long)shape->n, (long long)shape->k, flops / median(loops, turns),
           flops / median(blas, turns), median(ratio, turns));
    fflush(stdout);
    free(x.a);
    free(x.b);
    free(x.c);
}

static int number(int argc, char **argv, int i, int64_t most, int absent)
{
    int64_t value = absent;
    KilnError err;

    if (i < argc && (kiln_parse_i64(argv[i], &value, &err) < 0 || value < 1 || value > most)) {
        fprintf(stderr, "gemm: %s: expected a number from 1 to %lld\n", argv[i], (long long)most);
        exit(2);
    }
    return (int)value;
}

int main(int argc, char **argv)
{
    const int threads = number(argc, argv, 1, 1024, 1);
    const int turns = number(argc, argv, 2, MOST_TURNS, 15);
    KilnBackend *backend = NULL;
    KilnError err = { 0 };

    if (kiln_backend_cpu_new(threads, &backend, &err) < 0 || kiln_blas_require("bench", &err) < 0) {
        fprintf(stderr, "gemm: %s\n", err.text);
        return 1;
    }
    printf("%s; %s; %d threads; multiply-adds in registers: %.0f GFLOP/s\n\n| product | m x n x k "
           "| loops GFLOP/s | OpenBLAS GFLOP/s | "
           "OpenBLAS's time / loops' |\n|---|---|---|---|---|\n",
           backend->machine, kiln_blas_version(), threads, floor_rate(threads, turns));
    for (size_t i = 0; i < KILN_COUNT(shapes); i++)
        row(backend, &shapes[i], turns);
    kiln_backend_free(backend);
    return 0;
}
