/* Matrix products of bf16 by tiles. */
#ifndef KILN_BACKEND_CPU_BF16_PRODUCT_H
#define KILN_BACKEND_CPU_BF16_PRODUCT_H

#include <stddef.h>

#include "backend/cpu/bf16/tiles.h"
#include "backend/cpu/isa/vector_loops.h"
#include "backend/cpu/kernels/gemm.h"

/* Called with finished sums: sums[r * stride + c] is that of part->row + r and part->column + c.
 * The callee may change them. */
typedef void KilnBf16Done(void *context, float *sums, int64_t stride, const KilnGemmPart *part);

/* result [left.rows, right.rows] = left [rows, depth] · right [rows, depth]ᵀ */
typedef struct KilnBf16Product {
    KilnTileMatrix left, right; /* of equal depth */
    KilnTileResult result;
    KilnBf16Done *done; /* NULL, or stores the sums; called from several threads */
    void *context;
    const KilnTileOps *tiles;
    const KilnLoops *loops;
    int threads;
} KilnBf16Product;

size_t kiln_bf16_product_workspace(const KilnBf16Product *product);
/* `workspace` is aligned to 64 bytes. */
void kiln_bf16_product(const KilnBf16Product *product, void *workspace);

#endif
