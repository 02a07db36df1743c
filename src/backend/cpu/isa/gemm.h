/* The inner part of matrix products. gemm.c is compiled once per instruction set,
 * as the vector loops are. */
#ifndef KILN_BACKEND_CPU_ISA_GEMM_H
#define KILN_BACKEND_CPU_ISA_GEMM_H

#include "backend/cpu/gemm.h"

/* Floats of scratch that a thread needs. */
enum { KILN_GEMM_SCRATCH = 768 * 512 + 8 * 512 * 32 + 64 };

typedef struct KilnGemmLoops {
    int rows, columns; /* of the tile that stays in registers */
    /* By the calling thread alone, on scratch of its own, aligned to 64 bytes; `done` (NULL:
     * none) as for kiln_gemm_then. */
    void (*product)(const KilnGemm *gemm, const float *a, const float *b, float *c, float *scratch,
                    KilnGemmDone *done, void *context);
} KilnGemmLoops;

extern const KilnGemmLoops kiln_gemm_base, kiln_gemm_avx2, kiln_gemm_avx512;

#endif
