/* Matrix products of bf16 on AMX. */
#ifndef KILN_BACKEND_CPU_AMX_AMX_PRODUCT_H
#define KILN_BACKEND_CPU_AMX_AMX_PRODUCT_H

#include <stddef.h>

#include "backend/cpu/amx/amx.h"
#include "backend/cpu/kernels/gemm.h"

/* Called with finished sums: sums[r * stride + c] is that of part->row + r and part->column + c.
 * The callee may change them. */
typedef void KilnAmxDone(void *context, float *sums, int64_t stride, const KilnGemmPart *part);

/* result [left.rows, right.rows] = left [rows, depth] · right [rows, depth]ᵀ */
typedef struct KilnAmxProduct {
    KilnAmxMatrix left, right; /* of equal depth */
    KilnAmxResult result;
    KilnAmxDone *done; /* NULL, or stores the sums; called from several threads */
    void *context;
    int threads;
} KilnAmxProduct;

size_t kiln_amx_product_workspace(const KilnAmxProduct *product);
/* `workspace` is aligned to 64 bytes. */
void kiln_amx_product(const KilnAmxProduct *product, void *workspace);

#endif
