/* Batches of matrix products (KilnBmm) as the products that kernels run. */
#ifndef KILN_BACKEND_CPU_KERNELS_BMM_H
#define KILN_BACKEND_CPU_KERNELS_BMM_H

#include "backend/cpu/kernels/gemm.h"

/* One product of the batch, with beta 0. */
KilnGemm kiln_bmm_gemm(const KilnBmm *batch);
/* Many products with one matrix on the right become one product of all rows; a sum of many aᵀ b
 * becomes one product over all their rows. Other batches stay as they are. */
void kiln_bmm_merge(KilnBmm *batch);
/* Of products that share a matrix of the result (KilnBmm.add_up): whether number i adds to it; the
 * first sets it. */
bool kiln_bmm_adds(const KilnBmm *batch, int64_t i);

#endif
