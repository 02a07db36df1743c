/* Vector loops of layer and rms norm, one row at a time. Compiled once per level. */
#ifndef KILN_BACKEND_CPU_ISA_ROW_NORM_H
#define KILN_BACKEND_CPU_ISA_ROW_NORM_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/cpu/level.h"

/* Which rows are bf16; the others are f32. */
enum { KILN_ROW_X = 1, KILN_ROW_Y = 2, KILN_ROW_DY = 4, KILN_ROW_DX = 8, KILN_ROW_ALL = 15 };

typedef struct KilnRowNorm {
    int64_t columns;
    unsigned bf16; /* KILN_ROW_... bits */
    bool center;   /* subtract the mean first (layer norm) */
    float eps;
    const float *weight, *bias; /* or NULL */
} KilnRowNorm;

typedef struct KilnRowNormLoops {
    /* y = (x - mean) * rstd * weight + bias; sets mean (0 without `center`) and rstd */
    void (*forward)(const KilnRowNorm *norm, void *y, const void *x, float *mean, float *rstd);
    /* dx of a row, which may alias dy; adds to dweight and dbias */
    void (*backward)(const KilnRowNorm *norm, void *dx, const void *dy, const void *x, float mean,
                     float rstd, float *dweight, float *dbias);
} KilnRowNormLoops;

KILN_DECLARE_LOOPS(KilnRowNormLoops, row_norm_loops);

#endif
