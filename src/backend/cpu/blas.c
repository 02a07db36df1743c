/* OpenBLAS: loading it, and products in parts that threads take. This is the only file that knows
 * it. */
#include "backend/cpu/blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/parallel.h"
#include "base/min.h"
#include "base/system/machine.h"
#include "base/text.h"

/* ---- The library ------------------------------------------------------------------ */

/* As the C interface to BLAS declares them; its enumerations are ints. */
typedef void Sgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                   const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
typedef void Dgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, double alpha,
                   const double *a, int lda, const double *b, int ldb, double beta, double *c,
                   int ldc);
typedef void SetThreads(int threads);
typedef int Parallel(void);
typedef char *Text(void);
typedef void *TakeBuffer(int procpos);
typedef void ReturnBuffer(void *buffer);

enum { ROW_MAJOR = 101, AS_IS = 111, TRANSPOSED = 112 };
enum { WITH_PTHREADS = 1 };                   /* openblas_get_parallel */
enum { BUFFER_MIB = 128, MOST_BUFFERS = 64 }; /* it has at least so many */

/* Written once, by load. */
static struct {
    Sgemm *sgemm;
    Dgemm *dgemm;
    TakeBuffer *take_buffer; /* NULL: unknown how it gets them */
    ReturnBuffer *return_buffer;
    bool one_at_a_time; /* it is not safe to call from several threads */
    char version[48];
} blas;

static _Atomic(const char *) chosen_core; /* kiln_blas_choose */
static pthread_once_t loaded = PTHREAD_ONCE_INIT;
static pthread_mutex_t calls = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t buffers = PTHREAD_MUTEX_INITIALIZER;

/* "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..." begins with the version. */
static void note_version(const char *config, const char *core)
{
    const size_t name = strcspn(config, " ");
    const size_t end = name + (config[name] == ' ' ? 1 + strcspn(config + name + 1, " ") : 0);

    snprintf(blas.version, sizeof(blas.version), "%.*s %s", (int)kiln_min_i64((int64_t)end, 24),
             config, core);
}

/* The variant with threads, first where Debian and Fedora have it. Its own threads get no work, but
 * it is the one that several threads may call: the serial one picks its buffers without a lock. */
static void *open_variant(void)
{
    static const char *const names[] = { "/usr/$LIB/openblas-pthread/libopenblas.so.0",
                                         "libopenblasp.so.0", "libopenblas.so.0" };
    void *library = NULL;

    for (size_t i = 0; i < KILN_COUNT(names) && library == NULL; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

/* An environment variable with another value until `restore`. */
typedef struct Override {
    const char *name;
    char *before; /* NULL: it was not set */
} Override;

/* `value` NULL: it stays as it is. */
static bool override(Override *o, const char *name, const char *value)
{
    const char *set = getenv(name);

    *o = (Override) { name, set != NULL ? kiln_strdup(set) : NULL };
    return value == NULL || setenv(name, value, true) == 0;
}

static void restore(const Override *o)
{
    if (o->before != NULL)
        (void)setenv(o->name, o->before, true);
    else
        unsetenv(o->name);
    free(o->before);
}

/* While it is loaded it starts its threads and selects its kernels. */
static void *open_library(void)
{
    static const char core[] = "OPENBLAS_CORETYPE";
    const char *chosen = getenv(core) == NULL ? atomic_load(&chosen_core) : NULL;
    Override threads, kernels;
    const bool one_thread = override(&threads, "OPENBLAS_NUM_THREADS", "1");
    void *library = override(&kernels, core, chosen) && one_thread ? open_variant() : NULL;

    restore(&kernels);
    restore(&threads);
    return library;
}

/* POSIX lets a function's address pass through dlsym's object pointer; C wants a copy of the bytes.
 */
static bool find(void *library, const char *name, void *ret_function, size_t size)
{
    void *address = dlsym(library, name);

    memcpy(ret_function, &address, size);
    return address != NULL;
}

static void load(void)
{
    void *library = open_library();
    Sgemm *sgemm;
    Dgemm *dgemm;
    SetThreads *set_threads;
    Parallel *parallel;
    Text *config, *core;

    if (library == NULL)
        return;
    if (!find(library, "cblas_sgemm", &sgemm, sizeof(sgemm)) ||
        !find(library, "cblas_dgemm", &dgemm, sizeof(dgemm)) ||
        !find(library, "openblas_set_num_threads", &set_threads, sizeof(set_threads)) ||
        !find(library, "openblas_get_parallel", &parallel, sizeof(parallel)) ||
        !find(library, "openblas_get_config", &config, sizeof(config)) ||
        !find(library, "openblas_get_corename", &core, sizeof(core))) {
        dlclose(library);
        return;
    }
    set_threads(1);
    note_version(config(), core());
    blas.one_at_a_time = parallel() != WITH_PTHREADS;
    if (!find(library, "blas_memory_alloc", &blas.take_buffer, sizeof(blas.take_buffer)) ||
        !find(library, "blas_memory_free", &blas.return_buffer, sizeof(blas.return_buffer)))
        blas.take_buffer = NULL;
    blas.sgemm = sgemm;
    blas.dgemm = dgemm;
}

bool kiln_blas_load(void)
{
    return pthread_once(&loaded, load) == 0 && blas.sgemm != NULL;
}

const char *kiln_blas_version(void)
{
    return blas.version;
}

KilnStatus kiln_blas_require(const char *use, KilnError *err)
{
    if (kiln_blas_load())
        return KILN_OK;
    return kiln_error_set(err, KILN_E_IO,
                          "%s: libopenblas.so.0 cannot be loaded; install OpenBLAS (Debian's "
                          "package is libopenblas0-pthread)",
                          use);
}

/* It keeps buffers that are returned for later products. */
static void make_buffers(int n)
{
    void *taken[MOST_BUFFERS];

    for (int i = 0; i < n; i++)
        taken[i] = blas.take_buffer(0);
    for (int i = 0; i < n; i++)
        blas.return_buffer(taken[i]);
}

KilnStatus kiln_blas_reserve(int threads, KilnError *err)
{
    static int made;
    const int wanted = blas.one_at_a_time ? 1 : (int)kiln_min_i64(threads, MOST_BUFFERS);
    KilnStatus status = KILN_OK;

    if (blas.take_buffer == NULL)
        return KILN_OK;
    pthread_mutex_lock(&buffers);
    if (wanted > made) {
        const int mib = (wanted - made) * BUFFER_MIB;

        if (kiln_addresses_left((size_t)(mib + 1) << 20)) {
            make_buffers(wanted);
            made = wanted;
        } else {
            status = kiln_error_set(err, KILN_E_NOMEM,
                                    "OpenBLAS needs %d MiB of addresses for %d threads, which a "
                                    "limit does not leave (ulimit -v); raise it, or give fewer "
                                    "trainer.threads",
                                    mib, threads);
        }
    }
    pthread_mutex_unlock(&buffers);
    return status;
}

void kiln_blas_choose(KilnCpuLevel level, bool capped)
{
    /* The oldest processor of each level. None of OpenBLAS's kernels for f32 and f64 use AMX. */
    static const char *const cores[KILN_CPU_LEVELS] = {
        [KILN_CPU_BASE] = "Prescott",   [KILN_CPU_AVX2] = "Haswell",
        [KILN_CPU_AVX512] = "SkylakeX", [KILN_CPU_AVX512_BF16] = "Cooperlake",
        [KILN_CPU_AMX] = "Cooperlake",
    };
    const bool own_choice = level == KILN_CPU_BASE && (!capped || KILN_CPU_TOP == KILN_CPU_BASE);

    atomic_store(&chosen_core, own_choice ? NULL : cores[level]);
}

/* ---- Products ----------------------------------------------------------------------- */

void kiln_blas_product(const KilnGemm *gemm, KilnDType dtype, const void *a, const void *b, void *c)
{
    const int transpose_a = gemm->transpose_a ? TRANSPOSED : AS_IS;
    const int transpose_b = gemm->transpose_b ? TRANSPOSED : AS_IS;
    const int m = (int)gemm->m, n = (int)gemm->n, k = (int)gemm->k;
    const int lda = (int)gemm->lda, ldb = (int)gemm->ldb, ldc = (int)gemm->ldc;

    if (blas.one_at_a_time)
        pthread_mutex_lock(&calls);
    if (dtype == KILN_F64)
        blas.dgemm(ROW_MAJOR, transpose_a, transpose_b, m, n, k, gemm->alpha, a, lda, b, ldb,
                   gemm->beta, c, ldc);
    else
        blas.sgemm(ROW_MAJOR, transpose_a, transpose_b, m, n, k, gemm->alpha, a, lda, b, ldb,
                   gemm->beta, c, ldc);
    if (blas.one_at_a_time)
        pthread_mutex_unlock(&calls);
}

/* A product cut into parts of rows × columns. */
typedef struct Job {
    const KilnGemm *gemm;
    KilnDType dtype;
    const char *a, *b;
    char *c;
    KilnGemmDone *done; /* NULL: none */
    void *context;
    int64_t rows, columns, down, across;
} Job;

static int64_t parts_of(int64_t n, int64_t size)
{
    return (n + size - 1) / size;
}

/* Parts as large as stay in the second level of cache, or smaller until each thread has two, since
 * cores of a virtual machine differ in speed. */
static void choose_parts(Job *job, int threads)
{
    enum { LARGEST = 384, SMALLEST = 64 };
    const int64_t m = job->gemm->m, n = job->gemm->n;

    job->rows = kiln_min_i64(m, LARGEST);
    job->columns = kiln_min_i64(n, LARGEST);
    for (;;) {
        int64_t *larger = job->rows > job->columns ? &job->rows : &job->columns;

        job->down = parts_of(m, job->rows);
        job->across = parts_of(n, job->columns);
        if (job->down * job->across >= 2 * threads || *larger <= SMALLEST)
            return;
        *larger = (*larger / 2 + 15) / 16 * 16;
    }
}

static void run_part(const Job *job, int64_t row, int64_t column)
{
    const int64_t size = (int64_t)kiln_dtype_size(job->dtype);
    const KilnGemm *whole = job->gemm;
    KilnGemm gemm = *whole;

    gemm.m = kiln_min_i64(job->rows, whole->m - row);
    gemm.n = kiln_min_i64(job->columns, whole->n - column);
    kiln_blas_product(&gemm, job->dtype, job->a + (gemm.transpose_a ? row : row * gemm.lda) * size,
                      job->b + (gemm.transpose_b ? column * gemm.ldb : column) * size,
                      job->c + (row * gemm.ldc + column) * size);
    if (job->done != NULL)
        job->done(job->context, &(KilnGemmPart) { row, gemm.m, column, gemm.n });
}

static void run_parts(void *context, KilnShares *shares)
{
    const Job *job = context;

    for (int64_t part; (part = kiln_next_item(shares)) >= 0;)
        run_part(job, part / job->across * job->rows, part % job->across * job->columns);
}

void kiln_blas_gemm(int threads, const KilnGemm *gemm, KilnDType dtype, const void *a,
                    const void *b, void *c, KilnGemmDone *done, void *context)
{
    Job job = {
        .gemm = gemm, .dtype = dtype, .a = a, .b = b, .c = c, .done = done, .context = context
    };

    if (gemm->m == 0 || gemm->n == 0)
        return;
    choose_parts(&job, threads);
    kiln_parallel_items(threads, job.down * job.across, run_parts, &job);
}
