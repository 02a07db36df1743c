/* Matrix products of floats, whoever needs them: products, attention, recurrent
 * layers. */
#ifndef KILN_BACKEND_CPU_GEMM_H
#define KILN_BACKEND_CPU_GEMM_H

#include <stdbool.h>
#include <stdint.h>

/* Row-major c [m, n] = alpha op(a) op(b) + beta c, where op(a) is [m, k] and
 * op(b) [k, n]; op transposes when the flag is set. lda, ldb, ldc are the floats
 * from one stored row to the next. With beta 0 what c held does not count, were
 * it NaN. c overlaps neither a nor b. Sizes are below 2^31. */
typedef struct KilnGemm {
    int64_t m, n, k, lda, ldb, ldc;
    bool transpose_a, transpose_b;
    float alpha, beta;
} KilnGemm;

/* By `threads` threads; not within a parallel loop. */
void kiln_gemm(int threads, const KilnGemm *gemm, const float *a, const float *b, float *c);
/* By the calling thread alone: for tiles within a parallel loop. */
void kiln_gemm_alone(const KilnGemm *gemm, const float *a, const float *b, float *c);

#endif
