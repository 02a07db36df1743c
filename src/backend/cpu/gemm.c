/* Matrix products by OpenBLAS; the only file that knows it. */
#include "backend/cpu/gemm.h"

#include <cblas.h>

#include "backend/cpu/parallel.h"

static void run(const KilnGemm *gemm, const float *a, const float *b, float *c)
{
    cblas_sgemm(CblasRowMajor, gemm->transpose_a ? CblasTrans : CblasNoTrans,
                gemm->transpose_b ? CblasTrans : CblasNoTrans, (int)gemm->m, (int)gemm->n,
                (int)gemm->k, gemm->alpha, a, (int)gemm->lda, b, (int)gemm->ldb, gemm->beta, c,
                (int)gemm->ldc);
}

void kiln_gemm(int threads, const KilnGemm *gemm, const float *a, const float *b, float *c)
{
    int before = kiln_threads_set(threads);

    if (openblas_get_num_threads() != threads)
        openblas_set_num_threads(threads);
    run(gemm, a, b, c);
    kiln_threads_set(before);
}

/* OpenBLAS uses one thread by itself within a parallel region, but the loop may
 * have had one part only and run outside of any. */
void kiln_gemm_alone(const KilnGemm *gemm, const float *a, const float *b, float *c)
{
    if (kiln_in_parallel())
        run(gemm, a, b, c);
    else
        kiln_gemm(1, gemm, a, b, c);
}
