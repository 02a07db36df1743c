/* The inner part of matrix products. gemm.c is compiled once per instruction set,
 * as the vector loops are. */
#ifndef KILN_BACKEND_CPU_ISA_GEMM_H
#define KILN_BACKEND_CPU_ISA_GEMM_H

#include "backend/cpu/gemm.h"

typedef struct KilnGemmLoops {
    int rows, columns; /* of the tile that stays in registers */
    /* By the calling thread alone; `done` (NULL: none) as for kiln_gemm_then. */
    void (*product)(const KilnGemm *gemm, const float *a, const float *b, float *c,
                    KilnGemmDone *done, void *context);
} KilnGemmLoops;

extern const KilnGemmLoops kiln_gemm_base, kiln_gemm_avx2, kiln_gemm_avx512;

#endif
