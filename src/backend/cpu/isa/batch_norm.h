/* Vector loops of batch normalization. A panel is rows × columns of activations,
 * `stride` elements from row to row; whatever the layout, column c of all rows is
 * one channel. batch_norm.c is compiled once per instruction set. */
#ifndef KILN_BACKEND_CPU_ISA_BATCH_NORM_H
#define KILN_BACKEND_CPU_ISA_BATCH_NORM_H

#include <stdbool.h>
#include <stdint.h>

enum { KILN_PANEL = 64 }; /* columns at most */

/* Which activations are bf16, the others being f32; those that are not there don't count. */
enum {
    KILN_NORM_X = 1,
    KILN_NORM_MORE = 2,
    KILN_NORM_Y = 4,
    KILN_NORM_DY = 8,
    KILN_NORM_MORE_DY = 16,
    KILN_NORM_DX = 32,
    KILN_NORM_MASKED = 64,
    KILN_NORM_ALL = 127
};

typedef struct KilnPanel {
    int64_t rows, stride;
    int columns;
    unsigned bf16; /* KILN_NORM_... bits */
    bool relu;     /* max(., 0) comes after */
} KilnPanel;

/* Per column; values beyond the columns are not read. */
typedef struct KilnNormColumns {
    float mean[KILN_PANEL], scale[KILN_PANEL], bias[KILN_PANEL];
    float mean_dy[KILN_PANEL], slope[KILN_PANEL]; /* of the gradient */
} KilnNormColumns;

/* The gradients that a panel reads: dy plus, when not NULL, more_dy. Under a relu
 * those of elements whose result was 0 count as 0: y says so, or, when it is NULL,
 * x by way of mean, scale and bias. */
typedef struct KilnNormGrad {
    const void *dy, *more_dy, *x, *y;
    void *masked; /* where dy is kept as it counts, or NULL */
} KilnNormGrad;

typedef struct KilnBatchNormLoops {
    /* sum += x - mean, square += (x - mean)^2, per column */
    void (*sums)(const KilnPanel *panel, const void *x, const KilnNormColumns *columns, double *sum,
                 double *square);
    /* y = (x - mean) * scale + bias (+ more, when not NULL) */
    void (*apply)(const KilnPanel *panel, void *y, const void *x, const void *more,
                  const KilnNormColumns *columns);
    /* sum += dy, dot += dy * (x - mean), per column */
    void (*grad_sums)(const KilnPanel *panel, const KilnNormGrad *grad,
                      const KilnNormColumns *columns, double *sum, double *dot);
    /* dx = dy * scale - mean_dy - (x - mean) * slope; dx may be where dy is */
    void (*grad_apply)(const KilnPanel *panel, void *dx, const KilnNormGrad *grad,
                       const KilnNormColumns *columns);
} KilnBatchNormLoops;

extern const KilnBatchNormLoops kiln_batch_norm_loops_base, kiln_batch_norm_loops_avx2,
    kiln_batch_norm_loops_avx512;

#endif
