/* Matrix products: by OpenBLAS (blas.c), or by the loops in isa/gemm.c, split between the threads.
 */
#include "backend/cpu/kernels/gemm.h"

#include "backend/cpu/blas.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/isa/gemm.h"
#include "base/min.h"

/* Multiplications below which a second thread costs more than it gains. */
static const int64_t alone_below = INT64_C(1) << 19;

/* A deep product with a small result, as of a narrow layer's weight gradient, is a sum of products
 * of parts of the depth, since its rows and columns do not suffice for many threads. The shape
 * alone decides, so that sums are the same for any number of threads. */
enum {
    DEEP_PART = 1024, /* least depth of a part */
    DEEP_PARTS = KILN_GEMM_SUMS / KILN_GEMM_NARROW
};

bool kiln_gemm_is_deep(const KilnGemm *gemm)
{
    return gemm->m > 1 && gemm->m * gemm->n <= KILN_GEMM_NARROW && gemm->k >= 2 * DEEP_PART;
}

/* ---- Splitting between threads -------------------------------------------------- */

/* A product cut into down × across parts. */
typedef struct Job {
    const KilnCpuBackend *cpu;
    const KilnGemmLoops *loops;
    const KilnGemm *gemm;
    const float *a, *b;
    float *c;
    KilnGemmDone *done; /* NULL: none */
    void *context;
    int64_t down, across, rows, columns; /* rows and columns of a part */
    int64_t most;                        /* parts that a thread takes at once */
    bool whole;                          /* a thread packs a once for all its parts */
} Job;

/* Size of a part when n is split into `parts`, in whole tiles. */
static int64_t part_of(int64_t n, int64_t parts, int64_t tile)
{
    const int64_t tiles = (n + tile - 1) / tile;

    return (tiles + parts - 1) / parts * tile;
}

/* Chooses the fastest grid: a part of r × c costs r c / 32 cycles for each of k, and packing its c
 * columns about a third of a cycle each. */
static void choose_grid(Job *job, int threads)
{
    double best = 0.0;

    for (int64_t down = 1; down <= threads; down++) {
        const int64_t rows = part_of(job->gemm->m, down, job->loops->rows);
        const int64_t columns = part_of(job->gemm->n, threads / down, job->loops->columns);
        const double cost = (double)columns * ((double)rows / 32.0 + 0.3) + 0.1 * (double)rows;

        if (down > 1 && cost >= best)
            continue;
        best = cost;
        job->down = down;
        job->across = threads / down;
        job->rows = rows;
        job->columns = columns;
    }
    job->most = 1;
}

/* Parts of all rows and one tile's columns, of which threads take several at once, if all of a fits
 * the packing buffer. False: it does not, or there is little to split. */
static bool choose_strips(Job *job, int threads)
{
    enum { TOGETHER = 4, EACH = 4 };
    const KilnGemm *g = job->gemm;
    const int64_t rows = part_of(g->m, 1, job->loops->rows);
    const int64_t across = (g->n + job->loops->columns - 1) / job->loops->columns;

    if (across < EACH * threads || rows > job->cpu->gemm_packed / (g->k + 1))
        return false;
    job->whole = true;
    job->most = TOGETHER;
    job->down = 1;
    job->across = across;
    job->rows = rows;
    job->columns = job->loops->columns;
    return true;
}

/* A part of the product; adds its position to the parts reported to `done`. */
typedef struct Offset {
    const Job *job;
    int64_t row, column;
} Offset;

static void part_done(void *context, const KilnGemmPart *part)
{
    const Offset *offset = context;

    offset->job->done(offset->job->context,
                      &(KilnGemmPart) { offset->row + part->row, part->rows,
                                        offset->column + part->column, part->columns });
}

/* The scratch of the calling thread. */
static KilnGemmScratch scratch_of(const KilnCpuBackend *cpu)
{
    return (KilnGemmScratch) { cpu->scratch + (int64_t)kiln_thread() * KILN_GEMM_SCRATCH,
                               cpu->gemm_packed, 0 };
}

static void run_part(const Job *job, int64_t row, int64_t column, int64_t columns,
                     KilnGemmPacking packing)
{
    const KilnGemm *whole = job->gemm;
    KilnGemm gemm = *whole;
    KilnGemmScratch scratch = scratch_of(job->cpu);
    Offset offset = { job, row, column };

    /* A row left over belongs to the part before: a product of one row adds in another order. */
    gemm.m = kiln_min_i64(job->rows, whole->m - row);
    if (whole->m - row == job->rows + 1)
        gemm.m++;
    gemm.n = kiln_min_i64(columns, whole->n - column);
    if (gemm.m <= 0 || gemm.n <= 0 || (row > 0 && gemm.m == 1))
        return;
    scratch.more = whole->n - column - gemm.n;
    const int64_t right = gemm.packed_b      ? column * gemm.k
                          : gemm.transpose_b ? column * gemm.ldb
                                             : column;

    job->loops->product(&gemm, job->a + (gemm.transpose_a ? row : row * gemm.lda), job->b + right,
                        job->c + row * gemm.ldc + column, scratch, packing,
                        job->done != NULL ? part_done : NULL, &offset);
}

static void run_parts(void *context, KilnShares *shares)
{
    const Job *job = context;
    KilnGemmPacking packing = job->whole ? KILN_GEMM_PACK_WHOLE : KILN_GEMM_PACK;

    for (int64_t begin, end; (begin = kiln_next_items(shares, job->most, &end)) >= 0;) {
        run_part(job, begin / job->across * job->rows, begin % job->across * job->columns,
                 (end - begin) * job->columns, packing);
        packing = job->whole ? KILN_GEMM_AGAIN : KILN_GEMM_PACK;
    }
}

/* ---- Splitting the depth ---------------------------------------------------------------- */

typedef struct Deep {
    const Job *job;
    int64_t parts;
    float *sums; /* [parts][m, n] */
} Deep;

static void run_depths(void *context, KilnShares *shares)
{
    const Deep *deep = context;
    const Job *job = deep->job;
    KilnGemm gemm = *job->gemm;

    gemm.beta = 0.0f;
    gemm.ldc = gemm.n;
    for (int64_t part; (part = kiln_next_item(shares)) >= 0;) {
        const int64_t from = job->gemm->k * part / deep->parts;

        gemm.k = job->gemm->k * (part + 1) / deep->parts - from;
        job->loops->product(&gemm, job->a + (gemm.transpose_a ? from * gemm.lda : from),
                            job->b + (gemm.transpose_b ? from : from * gemm.ldb),
                            deep->sums + part * gemm.m * gemm.n, scratch_of(job->cpu),
                            KILN_GEMM_PACK, NULL, NULL);
    }
}

/* Adds the parts' sums, in order, in rows [begin, end) of c. */
static void join_rows(void *context, int64_t begin, int64_t end)
{
    const Deep *deep = context;
    const Job *job = deep->job;
    const KilnGemm *g = job->gemm;

    for (int64_t i = begin; i < end; i++) {
        float *c = job->c + i * g->ldc;

        for (int64_t j = 0; j < g->n; j++)
            c[j] = g->beta == 0.0f ? 0.0f : g->beta * c[j];
        for (int64_t part = 0; part < deep->parts; part++)
            job->cpu->loops->add(c, c, deep->sums + (part * g->m + i) * g->n, g->n);
    }
    if (job->done != NULL)
        job->done(job->context, &(KilnGemmPart) { begin, end - begin, 0, g->n });
}

static void run_deep(const Job *job, int threads)
{
    const KilnGemm *g = job->gemm;
    Deep deep = { .job = job,
                  .parts = kiln_min_i64(g->k / DEEP_PART, DEEP_PARTS),
                  .sums = job->cpu->scratch + (int64_t)threads * KILN_GEMM_SCRATCH };

    kiln_parallel_items(threads, deep.parts, run_depths, &deep);
    kiln_parallel(threads, g->m, 16384 / (g->n * deep.parts) + 1, 1, join_rows, &deep);
}

/* ---- Products --------------------------------------------------------------------------- */

/* Whether OpenBLAS computes a product: on processors for which the loops have no vectors of their
 * own, unless it is too small for a call to pay. */
static bool by_blas(const KilnCpuBackend *cpu, const KilnGemm *gemm)
{
    return cpu->blas && gemm->m > 1 && gemm->n > 1 && gemm->k > 1;
}

/* A single row is multiplied with the rows of b, and a deep product has parts of its own. */
int64_t kiln_gemm_panel(const KilnCall *call, const KilnGemm *gemm)
{
    const KilnCpuBackend *cpu = kiln_cpu(call);

    return gemm->m > 1 && gemm->k > 1 && !by_blas(cpu, gemm) && !kiln_gemm_is_deep(gemm)
               ? cpu->loops->gemm->columns
               : 0;
}

void kiln_gemm_by_loops(const KilnCall *call, const KilnGemm *gemm, const float *a, const float *b,
                        float *c, KilnGemmDone *done, void *context)
{
    const bool small = gemm->m * gemm->n <= alone_below / (gemm->k + 1);
    const int threads = small ? 1 : call->backend->threads;
    Job job = { .cpu = kiln_cpu(call),
                .loops = kiln_cpu(call)->loops->gemm,
                .gemm = gemm,
                .a = a,
                .b = b,
                .c = c,
                .done = done,
                .context = context };

    if (kiln_gemm_is_deep(gemm)) {
        run_deep(&job, call->backend->threads);
        return;
    }
    if (threads == 1) {
        job.rows = gemm->m;
        run_part(&job, 0, 0, gemm->n, KILN_GEMM_PACK);
        return;
    }
    if (!choose_strips(&job, threads))
        choose_grid(&job, threads);
    kiln_parallel_items(threads, job.down * job.across, run_parts, &job);
}

void kiln_gemm_then(const KilnCall *call, const KilnGemm *gemm, const float *a, const float *b,
                    float *c, KilnGemmDone *done, void *context)
{
    if (by_blas(kiln_cpu(call), gemm))
        kiln_blas_gemm(call->backend->threads, gemm, KILN_F32, a, b, c, done, context);
    else
        kiln_gemm_by_loops(call, gemm, a, b, c, done, context);
}

void kiln_gemm(const KilnCall *call, const KilnGemm *gemm, const float *a, const float *b, float *c)
{
    kiln_gemm_then(call, gemm, a, b, c, NULL, NULL);
}

void kiln_gemm_alone(const KilnCall *call, const KilnGemm *gemm, const float *a, const float *b,
                     float *c)
{
    const KilnCpuBackend *cpu = kiln_cpu(call);

    if (by_blas(cpu, gemm))
        kiln_blas_product(gemm, KILN_F32, a, b, c);
    else
        cpu->loops->gemm->product(gemm, a, b, c, scratch_of(cpu), KILN_GEMM_PACK, NULL, NULL);
}
