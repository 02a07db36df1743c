/* Matrix products of floats, split between the threads: for products, attention and recurrent
 * layers. */
#ifndef KILN_BACKEND_CPU_KERNELS_GEMM_H
#define KILN_BACKEND_CPU_KERNELS_GEMM_H

#include "graph/backend.h"

/* Row-major c [m, n] = alpha op(a) op(b) + beta c, where op(a) is [m, k] and op(b) [k, n]; op
 * transposes if the flag is set. lda, ldb, ldc are the floats from one stored row to the next. With
 * beta 0, c is not read (it may be NaN). c overlaps neither a nor b. Sizes are below 2^31. */
typedef struct KilnGemm {
    int64_t m, n, k, lda, ldb, ldc;
    bool transpose_a, transpose_b;
    /* op(b) is in panels of kiln_gemm_panel columns: [panels][k][columns], the last one padded.
     * Then ldb and transpose_b do not matter. */
    bool packed_b;
    float alpha, beta;
} KilnGemm;

/* A finished part of c, still in the cache of the calling thread. */
typedef struct KilnGemmPart {
    int64_t row, rows, column, columns;
} KilnGemmPart;
typedef void KilnGemmDone(void *context, const KilnGemmPart *part);

/* Uses the threads of the call's backend; not within a parallel loop. */
void kiln_gemm(const KilnCall *call, const KilnGemm *gemm, const float *a, const float *b,
               float *c);
/* The same, calling `done` for every part of c, from several threads. Parts are whole blocks of c
 * that cover it once. */
void kiln_gemm_then(const KilnCall *call, const KilnGemm *gemm, const float *a, const float *b,
                    float *c, KilnGemmDone *done, void *context);
/* The same, never by OpenBLAS: to compare the two. */
void kiln_gemm_by_loops(const KilnCall *call, const KilnGemm *gemm, const float *a, const float *b,
                        float *c, KilnGemmDone *done, void *context);
/* Columns of a panel if packing b beforehand saves time; 0: the product reads b as it is. */
int64_t kiln_gemm_panel(const KilnCall *call, const KilnGemm *gemm);
/* Whether a product is summed in parts of its depth. */
bool kiln_gemm_is_deep(const KilnGemm *gemm);
/* Runs on the calling thread alone, within a parallel loop; not for deep products. */
void kiln_gemm_alone(const KilnCall *call, const KilnGemm *gemm, const float *a, const float *b,
                     float *c);

#endif
