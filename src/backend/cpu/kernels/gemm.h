/* Matrix products of floats, whoever needs them: products, attention, recurrent
 * layers. */
#ifndef KILN_BACKEND_CPU_KERNELS_GEMM_H
#define KILN_BACKEND_CPU_KERNELS_GEMM_H

#include "graph/backend.h"

/* Row-major c [m, n] = alpha op(a) op(b) + beta c, where op(a) is [m, k] and
 * op(b) [k, n]; op transposes when the flag is set. lda, ldb, ldc are the floats
 * from one stored row to the next. With beta 0 what c held does not count, were
 * it NaN. c overlaps neither a nor b. Sizes are below 2^31. */
typedef struct KilnGemm {
    int64_t m, n, k, lda, ldb, ldc;
    bool transpose_a, transpose_b;
    float alpha, beta;
} KilnGemm;

/* A part of c is complete, and still in the cache of the thread that calls. */
typedef struct KilnGemmPart {
    int64_t row, rows, column, columns;
} KilnGemmPart;
typedef void KilnGemmDone(void *context, const KilnGemmPart *part);

/* By the threads of the call's backend; not within a parallel loop. */
void kiln_gemm(const KilnCall *call, const KilnGemm *gemm, const float *a, const float *b,
               float *c);
/* The same, and `done` for every part of c, from several threads. Parts are whole
 * blocks of c that cover it once. */
void kiln_gemm_then(const KilnCall *call, const KilnGemm *gemm, const float *a, const float *b,
                    float *c, KilnGemmDone *done, void *context);
/* By the calling thread alone: for tiles within a parallel loop. */
void kiln_gemm_alone(const KilnCall *call, const KilnGemm *gemm, const float *a, const float *b,
                     float *c);

#endif
