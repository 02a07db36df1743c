/* The inner part of matrix products. gemm.c is compiled once per instruction set,
 * as the vector loops are. */
#ifndef KILN_BACKEND_CPU_ISA_GEMM_H
#define KILN_BACKEND_CPU_ISA_GEMM_H

#include "backend/cpu/kernels/gemm.h"

enum {
    KILN_GEMM_PACKED = 768 * 512, /* floats of a that are packed at a time */
    KILN_GEMM_DEPTH = 512,        /* of what is packed, at most */
    KILN_GEMM_PANELS = 4,         /* of b that are packed at a time */
    KILN_GEMM_COLUMNS = 32,       /* of a panel, at most */
    KILN_GEMM_VECTOR = 16,        /* floats; the end of what is packed is written in whole ones */
    /* Floats of scratch that a thread needs. */
    KILN_GEMM_SCRATCH = KILN_GEMM_PACKED + KILN_GEMM_PANELS * KILN_GEMM_DEPTH * KILN_GEMM_COLUMNS +
                        KILN_GEMM_VECTOR,
    KILN_GEMM_READ_ONCE = 64 /* columns of b up to which packing a costs more than it brings */
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

extern const KilnGemmLoops kiln_gemm_loops_base, kiln_gemm_loops_avx2, kiln_gemm_loops_avx512;

#endif
