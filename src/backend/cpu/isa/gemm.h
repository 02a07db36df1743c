/* The inner part of matrix products: one thread, in cache. Compiled once per level. kernels/gemm.h
 * splits products between threads. */
#ifndef KILN_BACKEND_CPU_ISA_GEMM_H
#define KILN_BACKEND_CPU_ISA_GEMM_H

#include "backend/cpu/kernels/gemm.h"
#include "backend/cpu/level.h"

enum {
    KILN_GEMM_PACKED = 768 * 512, /* floats of a packed at a time */
    KILN_GEMM_DEPTH = 512,        /* most depth packed at a time */
    KILN_GEMM_PANELS = 4,         /* panels of b packed at a time */
    KILN_GEMM_COLUMNS = 32,       /* most columns of a panel */
    KILN_GEMM_VECTOR = 16, /* floats; the end of the packed part is written in whole vectors */
    /* Floats of scratch per thread. */
    KILN_GEMM_SCRATCH = KILN_GEMM_PACKED + KILN_GEMM_PANELS * KILN_GEMM_DEPTH * KILN_GEMM_COLUMNS +
                        KILN_GEMM_VECTOR,
    KILN_GEMM_READ_ONCE = 64 /* columns of b up to which packing a does not pay */
};

/* How to pack a: as needed; as a whole, which fits; or reuse what the last call left in this
 * scratch. */
typedef enum KilnGemmPacking {
    KILN_GEMM_PACK,
    KILN_GEMM_PACK_WHOLE,
    KILN_GEMM_AGAIN
} KilnGemmPacking;

typedef struct KilnGemmLoops {
    int rows, columns; /* of the tile that stays in registers */
    /* Runs on the calling thread alone, with its own scratch, aligned to 64 bytes; `done` (may be
     * NULL) as for kiln_gemm_then. */
    void (*product)(const KilnGemm *gemm, const float *a, const float *b, float *c, float *scratch,
                    KilnGemmPacking packing, KilnGemmDone *done, void *context);
} KilnGemmLoops;

KILN_DECLARE_LOOPS(KilnGemmLoops, gemm_loops);

#endif
