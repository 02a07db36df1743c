/* Vector loops of probabilities and losses. Compiled once per level; KILN_ISA names it. */
#include "backend/cpu/isa/losses.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "backend/cpu/isa/libmvec.h"

/* A vector of the widest level; and what fits the first-level cache. */
enum { GROUP = 16, BLOCK = 4096 };

static float largest(const float *x, int64_t n)
{
    float top = -INFINITY;

    /* Skips NaN here; it reappears with its exponential. */
#pragma omp simd reduction(max : top)
    for (int64_t i = 0; i < n; i++)
        top = x[i] > top ? x[i] : top;
    return top;
}

/* The remainder goes through a full vector: scalar calls cost as much each. */
static void exponentials(float *y, int64_t n)
{
    const int64_t whole = n / GROUP * GROUP;
    float rest[GROUP] = { 0 };

#pragma omp simd
    for (int64_t i = 0; i < whole; i++)
        y[i] = expf(y[i]);
    if (whole == n)
        return;
    memcpy(rest, y + whole, (size_t)(n - whole) * sizeof(*rest));
#pragma omp simd
    for (int i = 0; i < GROUP; i++)
        rest[i] = expf(rest[i]);
    memcpy(y + whole, rest, (size_t)(n - whole) * sizeof(*rest));
}

/* In double: where one class is nearly certain, its loss is what the others add to 1. */
static double sum(const float *x, int64_t n)
{
    double total = 0.0;

#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < n; i++)
        total += (double)x[i];
    return total;
}

/* y = exp(x - row maximum), over consecutive rows: taking all exponentials together matters for
 * short rows. */
static void shifted_exponentials(float *y, float *tops, const float *x, int64_t rows, int64_t n)
{
    for (int64_t r = 0; r < rows; r++) {
        const float top = tops[r] = largest(x + r * n, n);

#pragma omp simd
        for (int64_t i = r * n; i < (r + 1) * n; i++)
            y[i] = x[i] - top;
    }
    exponentials(y, rows * n);
}

enum { MAX_ROWS = 256 };

/* Rows to process together. */
static int64_t rows_at_once(int64_t rows, int64_t n)
{
    int64_t most = BLOCK / n < MAX_ROWS ? BLOCK / n : MAX_ROWS;

    most = most > 0 ? most : 1;
    return rows < most ? rows : most;
}

static void softmax(float *y, double *log_sums, const float *x, int64_t rows, int64_t n)
{
    float tops[MAX_ROWS];

    for (int64_t done = 0; done < rows;) {
        const int64_t now = rows_at_once(rows - done, n);

        shifted_exponentials(y + done * n, tops, x + done * n, now, n);
        for (int64_t r = 0; r < now; r++) {
            float *row = y + (done + r) * n;
            const double total = sum(row, n);
            const float scale = (float)(1.0 / total);

#pragma omp simd
            for (int64_t i = 0; i < n; i++)
                row[i] *= scale;
            if (log_sums != NULL)
                log_sums[done + r] = (double)tops[r] + log(total);
        }
        done += now;
    }
}

static void log_softmax(float *y, const float *x, int64_t rows, int64_t n)
{
    float scratch[BLOCK], tops[MAX_ROWS];

    for (int64_t done = 0; done < rows;) {
        const int64_t now = n <= BLOCK ? rows_at_once(rows - done, n) : 1;

        if (n <= BLOCK)
            shifted_exponentials(scratch, tops, x + done * n, now, n);
        for (int64_t r = 0; r < now; r++) {
            const float *row = x + (done + r) * n;
            double total = n <= BLOCK ? sum(scratch + r * n, n) : 0.0;
            const float top = n <= BLOCK ? tops[r] : largest(row, n);

            for (int64_t from = 0; from < n && n > BLOCK; from += BLOCK) {
                const int64_t part = n - from < BLOCK ? n - from : BLOCK;

#pragma omp simd
                for (int64_t i = 0; i < part; i++)
                    scratch[i] = row[from + i] - top;
                exponentials(scratch, part);
                total += sum(scratch, part);
            }

            /* Two steps, since top and log(total) may differ much in size. */
            const float rest = (float)log(total);

#pragma omp simd
            for (int64_t i = 0; i < n; i++)
                y[(done + r) * n + i] = row[i] - top - rest;
        }
        done += now;
    }
}

static void log_softmax_grad(float *dx, const float *dy, const float *y, int64_t n)
{
    const float total = (float)sum(dy, n);
    float scratch[BLOCK];

    for (int64_t from = 0; from < n; from += BLOCK) {
        const int64_t part = n - from < BLOCK ? n - from : BLOCK;

        memcpy(scratch, y + from, (size_t)part * sizeof(*y));
        exponentials(scratch, part);
#pragma omp simd
        for (int64_t i = 0; i < part; i++)
            dx[from + i] = dy[from + i] - scratch[i] * total;
    }
}

static double weighted_sum(const float *x, const float *weight, int64_t n)
{
    double total = 0.0;

    if (weight == NULL)
        return sum(x, n);
#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < n; i++)
        total += (double)x[i] * (double)weight[i];
    return total;
}

static void entropy_grad(float *dx, const float *p, const float *weight, float a, float b,
                         int64_t n)
{
    if (weight == NULL) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            dx[i] = a * p[i] - b;
        return;
    }
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        dx[i] = a * p[i] - b * weight[i];
}

static void blend_targets(float *y, const float *target, const float *weight, float a, float b,
                          int64_t n)
{
    if (weight == NULL) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            y[i] = a + b * target[i];
        return;
    }
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = weight[i] * (a + b * target[i]);
}

static void add_scaled(float *y, const float *x, float a, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] += a * x[i];
}

/* libmvec is slow where exp underflows: below this the result is practically 0. */
static inline double exp_bounded(double x)
{
    return exp(x < -700.0 ? -700.0 : x);
}

/* The largest of the three contributes 1 to the sum of exponentials. */
static inline double log_sum_exp(double a, double b, double c)
{
    const double low = a > b ? b : a, high = a > b ? a : b;
    const double mid = high > c ? c : high, most = high > c ? high : c;
    const double top = most < -1e300 ? -1e300 : most; /* three times -inf gives no NaN */
    const double all = top + log(1.0 + exp_bounded(mid - top) + exp_bounded(low - top));

    return most < -1e300 ? most : all;
}

/* Whole vectors, since the compiler runs remainders one by one. */
static void ctc(double *restrict y, const double *restrict x, const double *restrict skip,
                int64_t n)
{
    for (int64_t from = 0; from < n; from += KILN_CTC_VECTOR)
#pragma omp simd
        for (int64_t i = from; i < from + KILN_CTC_VECTOR; i++)
            y[i] = log_sum_exp(x[i], x[i - 1], x[i - 2] + skip[i]);
}

static void ctc_states(double *restrict y, const double *restrict alpha,
                       const double *restrict beta, double loss, int64_t n)
{
    for (int64_t from = 0; from < n; from += KILN_CTC_VECTOR)
#pragma omp simd
        for (int64_t i = from; i < from + KILN_CTC_VECTOR; i++)
            y[i] = exp_bounded(alpha[i] + beta[-i] + loss);
}

static void crf_exp(double *restrict y, const double *restrict x, double shift, int64_t n)
{
    for (int64_t from = 0; from < n; from += KILN_CRF_VECTOR)
#pragma omp simd
        for (int64_t i = from; i < from + KILN_CRF_VECTOR; i++)
            y[i] = exp_bounded(x[i] - shift);
}

static void crf_log(double *restrict y, const double *restrict x, double shift, int64_t n)
{
    for (int64_t from = 0; from < n; from += KILN_CRF_VECTOR)
#pragma omp simd
        for (int64_t i = from; i < from + KILN_CRF_VECTOR; i++)
            y[i] = log(x[i]) + shift;
}

static void crf_mix(double *restrict y, const double *restrict x, const double *restrict table,
                    int64_t rows, int64_t n)
{
    for (int64_t from = 0; from < n; from += KILN_CRF_VECTOR) {
        double sums[KILN_CRF_VECTOR] = { 0 };

        for (int64_t i = 0; i < rows; i++)
#pragma omp simd
            for (int j = 0; j < KILN_CRF_VECTOR; j++)
                sums[j] += x[i] * table[i * n + from + j];
        memcpy(y + from, sums, sizeof(sums));
    }
}

static void crf_pairs(double *restrict y, const double *restrict a, const double *restrict table,
                      const double *restrict b, double scale, int64_t rows, int64_t n)
{
    for (int64_t i = 0; i < rows; i++) {
        const double factor = scale * a[i];

#pragma omp simd
        for (int64_t j = 0; j < n; j++)
            y[i * n + j] += factor * table[i * n + j] * b[j];
    }
}

static void crf_best(double *restrict y, double *restrict from, const double *restrict x,
                     const double *restrict table, int64_t rows, int64_t n)
{
    for (int64_t first = 0; first < n; first += KILN_CRF_VECTOR) {
        double best[KILN_CRF_VECTOR], index[KILN_CRF_VECTOR] = { 0 };

        for (int j = 0; j < KILN_CRF_VECTOR; j++)
            best[j] = x[0] + table[first + j];
        for (int64_t i = 1; i < rows; i++)
#pragma omp simd
            for (int j = 0; j < KILN_CRF_VECTOR; j++) {
                const double score = x[i] + table[i * n + first + j];
                const bool more = score > best[j];

                best[j] = more ? score : best[j];
                index[j] = more ? (double)i : index[j];
            }
        memcpy(y + first, best, sizeof(best));
        memcpy(from + first, index, sizeof(index));
    }
}

const KilnLossLoops KILN_LOOPS(loss_loops) = {
    .softmax = softmax,
    .log_softmax = log_softmax,
    .log_softmax_grad = log_softmax_grad,
    .weighted_sum = weighted_sum,
    .entropy_grad = entropy_grad,
    .blend_targets = blend_targets,
    .add_scaled = add_scaled,
    .ctc = ctc,
    .ctc_states = ctc_states,
    .crf_exp = crf_exp,
    .crf_log = crf_log,
    .crf_mix = crf_mix,
    .crf_pairs = crf_pairs,
    .crf_best = crf_best,
};
