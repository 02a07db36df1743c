/* Matrix products of bf16 on AMX. */
#ifndef KILN_BACKEND_CPU_AMX_PRODUCT_H
#define KILN_BACKEND_CPU_AMX_PRODUCT_H

#include <stddef.h>

#include "backend/cpu/amx.h"

/* result [left.rows, right.rows] = left [rows, depth] · right [rows, depth]ᵀ */
typedef struct KilnAmxProduct {
    KilnAmxMatrix left, right; /* of equal depth */
    KilnAmxResult result;
    int threads;
} KilnAmxProduct;

size_t kiln_amx_product_workspace(const KilnAmxProduct *product);
/* `workspace` is aligned to 64 bytes. */
void kiln_amx_product(const KilnAmxProduct *product, void *workspace);

#endif
