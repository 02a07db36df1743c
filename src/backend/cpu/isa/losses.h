/* Vector loops of probabilities and losses, row by row. Compiled once per level. */
#ifndef KILN_BACKEND_CPU_ISA_LOSSES_H
#define KILN_BACKEND_CPU_ISA_LOSSES_H

#include <stdint.h>

#include "backend/cpu/level.h"

/* Outputs come first. An output may be the same array as an input, but must not otherwise overlap
 * one. */
enum { KILN_CTC_VECTOR = 8, KILN_CRF_VECTOR = 8 };

typedef struct KilnLossLoops {
    /* For each of `rows` rows of n. log_sums (may be NULL) get log(sum(exp(x))). */
    void (*softmax)(float *y, double *log_sums, const float *x, int64_t rows, int64_t n);
    void (*log_softmax)(float *y, const float *x, int64_t rows, int64_t n);
    void (*log_softmax_grad)(float *dx, const float *dy, const float *y, int64_t n);
    /* sum(x), or sum(x * weight) if weight is not NULL. */
    double (*weighted_sum)(const float *x, const float *weight, int64_t n);
    /* dx = a * p - b * weight (NULL: 1) */
    void (*entropy_grad)(float *dx, const float *p, const float *weight, float a, float b,
                         int64_t n);
    /* y = weight (NULL: 1) * (a + b * target) */
    void (*blend_targets)(float *y, const float *target, const float *weight, float a, float b,
                          int64_t n);
    /* y += a * x */
    void (*add_scaled)(float *y, const float *x, float a, int64_t n);
    /* y[i] = log(exp(x[i]) + exp(x[i - 1]) + exp(x[i - 2] + skip[i])); x[-1] and x[-2] exist. n
     * is a multiple of KILN_CTC_VECTOR here and below. */
    void (*ctc)(double *y, const double *x, const double *skip, int64_t n);
    /* y[i] = exp(alpha[i] + beta[-i] + loss) */
    void (*ctc_states)(double *y, const double *alpha, const double *beta, double loss, int64_t n);
    /* Conditional random fields; tables are [rows, n], and n is a multiple of KILN_CRF_VECTOR.
     * y = exp(x - shift), at least 1e-304; y = log(x) + shift */
    void (*crf_exp)(double *y, const double *x, double shift, int64_t n);
    void (*crf_log)(double *y, const double *x, double shift, int64_t n);
    /* y[j] = sum over i of x[i] * table[i][j] */
    void (*crf_mix)(double *y, const double *x, const double *table, int64_t rows, int64_t n);
    /* y[i][j] += scale * a[i] * table[i][j] * b[j] */
    void (*crf_pairs)(double *y, const double *a, const double *table, const double *b,
                      double scale, int64_t rows, int64_t n);
    /* y[j]: the largest x[i] + table[i][j]; from[j]: the first such i */
    void (*crf_best)(double *y, double *from, const double *x, const double *table, int64_t rows,
                     int64_t n);
} KilnLossLoops;

KILN_DECLARE_LOOPS(KilnLossLoops, loss_loops);

#endif
