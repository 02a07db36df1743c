/* Vector loops of batch normalization. A panel is rows × columns of activations, `stride` elements
 * from row to row; in any layout, column c of all rows is one channel. Compiled once per level. */
#ifndef KILN_BACKEND_CPU_ISA_BATCH_NORM_H
#define KILN_BACKEND_CPU_ISA_BATCH_NORM_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/cpu/level.h"

enum { KILN_PANEL = 64 }; /* most columns */

/* Which activations are bf16; the others are f32. Absent ones are ignored. */
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
    bool relu;     /* apply max(., 0) afterwards */
} KilnPanel;

/* Per column; values past the last column are not read. */
typedef struct KilnNormColumns {
    float mean[KILN_PANEL], scale[KILN_PANEL], bias[KILN_PANEL];
    float mean_dy[KILN_PANEL], slope[KILN_PANEL]; /* for the gradient */
} KilnNormColumns;

/* The gradients that a panel reads: dy plus, if not NULL, more_dy. Under a relu, elements whose
 * result was 0 get 0; the result is y or, if NULL, computed from x with mean, scale and bias. */
typedef struct KilnNormGrad {
    const void *dy, *more_dy, *x, *y;
    void *masked; /* destination of the masked dy, or NULL */
} KilnNormGrad;

typedef struct KilnBatchNormLoops {
    /* sum += x - mean, square += (x - mean)^2, per column */
    void (*sums)(const KilnPanel *panel, const void *x, const KilnNormColumns *columns, double *sum,
                 double *square);
    /* y = (x - mean) * scale + bias (+ more, if not NULL) */
    void (*apply)(const KilnPanel *panel, void *y, const void *x, const void *more,
                  const KilnNormColumns *columns);
    /* sum += dy, dot += dy * (x - mean), per column */
    void (*grad_sums)(const KilnPanel *panel, const KilnNormGrad *grad,
                      const KilnNormColumns *columns, double *sum, double *dot);
    /* dx = dy * scale - mean_dy - (x - mean) * slope; dx may alias dy */
    void (*grad_apply)(const KilnPanel *panel, void *dx, const KilnNormGrad *grad,
                       const KilnNormColumns *columns);
} KilnBatchNormLoops;

KILN_DECLARE_LOOPS(KilnBatchNormLoops, batch_norm_loops);

#endif
