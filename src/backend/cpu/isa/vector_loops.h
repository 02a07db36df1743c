/* Vector loops over whole arrays, and KilnLoops: the table of all loops of one level. isa/NAME.c is
 * compiled once per level, and each build exports its tables; set_level (backend/cpu/cpu.c) picks.
 */
#ifndef KILN_BACKEND_CPU_ISA_VECTOR_LOOPS_H
#define KILN_BACKEND_CPU_ISA_VECTOR_LOOPS_H

#include "backend/cpu/isa/map.h"
#include "backend/cpu/isa/losses.h"
#include "backend/cpu/isa/optimizers.h"
#include "backend/cpu/level.h"

/* Dropout's mask is a function of key, stream and element. */
typedef struct KilnDropoutLoop {
    uint32_t key[2];
    uint64_t stream;
    uint32_t threshold; /* dropped if 24 random bits are below */
    float scale;        /* of the kept elements */
} KilnDropoutLoop;

enum { KILN_SHORT_ROW = 32 };

/* Outputs come first. An output may be the same array as an input, but must not otherwise overlap
 * one. */
typedef struct KilnLoops {
    const KilnMapLoops *map;
    void (*add)(float *y, const float *a, const float *b, int64_t n);
    void (*scale)(float *y, const float *x, float factor, int64_t n);
    void (*fill)(float *y, float value, int64_t n);
    /* To bf16, rounded like kiln_bf16_of, and back. */
    void (*to_bf16)(uint16_t *y, const float *x, int64_t n);
    void (*from_bf16)(float *y, const uint16_t *x, int64_t n);
    /* y[r] = x · row r, for rows of n elements of bf16 that are `stride` apart. */
    void (*dot_rows_bf16)(float *y, const float *x, const uint16_t *rows, int64_t stride,
                          int64_t count, int64_t n);
    /* Rows [begin, end) of y [rows, channels] of bf16, from an image in blocks of channels: x
     * [channels / block][rows][block], padded; block is 8 or 16. */
    void (*blocks_to_bf16)(uint16_t *y, const float *x, int64_t begin, int64_t end, int64_t rows,
                           int64_t channels, int64_t block);
    /* The same from bf16 x to f32 blocks; channels is a multiple of block. */
    void (*blocks_from_bf16)(float *y, const uint16_t *x, int64_t begin, int64_t end, int64_t rows,
                             int64_t channels, int64_t block);
    /* Elements [begin, end) of a tensor, given from element `begin` on, a multiple of 4. */
    void (*dropout)(float *y, uint8_t *mask, const float *x, const KilnDropoutLoop *dropout,
                    int64_t begin, int64_t end);
    void (*dropout_grad)(float *dx, const float *dy, const uint8_t *mask, float scale, int64_t n);
    /* Random numbers [begin, end), by key and stream alone; begin is a multiple of 64. */
    void (*uniform)(float *y, const KilnDropoutLoop *words, int64_t begin, int64_t end);
    void (*normal)(float *y, const KilnDropoutLoop *words, int64_t begin, int64_t end);
    double (*sum)(const float *x, int64_t n);
    /* out[c] = sum of x[r * stride + c] over rows r, for each column. */
    void (*sum_rows)(float *out, const float *x, int64_t rows, int64_t columns, int64_t stride);
    /* For each row i of n elements from x[i * n]: the sum, the largest of sign * x, or the log of
     * the sum of exponentials; n is at most KILN_SHORT_ROW. */
    void (*sum_short)(float *y, const float *x, int64_t rows, int64_t n);
    void (*largest_short)(float *y, const float *x, float sign, int64_t rows, int64_t n);
    void (*logsumexp_short)(float *y, const float *x, int64_t rows, int64_t n);
    /* Largest of sign * x; NaN if any is. */
    float (*largest)(const float *x, float sign, int64_t n);
    void (*largest_rows)(float *out, const float *x, float sign, int64_t rows, int64_t columns);
    /* Sum of exp(x - shift); in the second, each column has its own shift. */
    double (*sum_exp)(const float *x, float shift, int64_t n);
    void (*sum_exp_rows)(float *out, const float *x, const float *shift, int64_t rows,
                         int64_t columns);
    void (*softmax_grad)(float *dx, const float *dy, const float *y, int64_t n);
    /* variable = keep * variable + take * value */
    void (*blend)(float *variable, const float *value, float keep, float take, int64_t n);
    /* The other tables of the same level. */
    const struct KilnAttentionLoops *attention;
    const struct KilnBatchNormLoops *batch_norm;
    const struct KilnDepthwiseLoops *depthwise;
    const struct KilnGemmLoops *gemm;
    const struct KilnLossLoops *losses;
    const struct KilnOptimizerLoops *optimizers;
    const struct KilnPoolingLoops *pooling;
    const struct KilnRecurrentLoops *recurrent;
    const struct KilnRowNormLoops *row_norm;
    const struct KilnWinogradLoops *winograd;
} KilnLoops;

KILN_DECLARE_LOOPS(KilnLoops, loops);

#endif
