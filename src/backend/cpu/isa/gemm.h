/* The inner part of matrix products. gemm.c is compiled once per instruction set,
 * as the vector loops are. */
#ifndef KILN_BACKEND_CPU_ISA_GEMM_H
#define KILN_BACKEND_CPU_ISA_GEMM_H

#include "backend/cpu/gemm.h"

/* Floats of scratch that a thread needs. */
enum { KILN_GEMM_SCRATCH = 768 * 512 + 8 * 512 * 32 + 64 };

enum {
    KILN_GEMM_PACKED = 768 * 512, /* floats of a that are packed at a time */
    KILN_GEMM_READ_ONCE = 64      /* columns of b up to which packing a costs more than it brings */
};

/* What becomes of a: packed as is best; packed as a whole, which fits; as the last call on
 * this scratch left it so. */
typedef enum KilnGemmPacking {
    KILN_GEMM_PACK,
    KILN_GEMM_PACK_WHOLE,
    KILN_GEMM_AGAIN
} KilnGemmPacking;

typedef struct KilnGemmLoops {
    int rows, columns; /* of the tile that stays in registers */
    /* By the calling thread alone, on scratch of its own, aligned to 64 bytes; `done` (NULL:
     * none) as for kiln_gemm_then. */
    void (*product)(const KilnGemm *gemm, const float *a, const float *b, float *c, float *scratch,
                    KilnGemmPacking packing, KilnGemmDone *done, void *context);
} KilnGemmLoops;

extern const KilnGemmLoops kiln_gemm_base, kiln_gemm_avx2, kiln_gemm_avx512;

#endif
