/* The inner part of matrix products: one thread, in cache. Compiled once per level. kernels/gemm.h
 * splits products between threads. */
#ifndef KILN_BACKEND_CPU_ISA_GEMM_H
#define KILN_BACKEND_CPU_ISA_GEMM_H

#include "backend/cpu/kernels/gemm.h"
#include "backend/cpu/level.h"

enum {
    KILN_GEMM_PACKED = 768 * 512, /* most floats of a packed at a time */
    KILN_GEMM_DEPTH = 512,        /* most depth packed at a time */
    KILN_GEMM_PANELS = 4,         /* panels of b packed at a time */
    KILN_GEMM_COLUMNS = 32,       /* most columns of a panel */
    KILN_GEMM_VECTOR = 16, /* floats; the end of the packed part is written in whole vectors */
    /* Floats of scratch per thread. */
    KILN_GEMM_SCRATCH = KILN_GEMM_PACKED + KILN_GEMM_PANELS * KILN_GEMM_DEPTH * KILN_GEMM_COLUMNS +
                        KILN_GEMM_VECTOR,
    KILN_GEMM_NARROW = 4096, /* elements of a small result, whose depth may be split */
    /* Floats of scratch for sums of parts of the depth. */
    KILN_GEMM_SUMS = 16 * KILN_GEMM_NARROW
};

/* How to pack a: as needed; as a whole, which fits; or reuse what the last call left in this
 * scratch. */
typedef enum KilnGemmPacking {
    KILN_GEMM_PACK,
    KILN_GEMM_PACK_WHOLE,
    KILN_GEMM_AGAIN
} KilnGemmPacking;

/* Of one thread. How much of a is packed at a time does not change results. */
typedef struct KilnGemmScratch {
    float *floats;  /* KILN_GEMM_SCRATCH, aligned to 64 bytes */
    int64_t packed; /* floats of a that stay in the second-level cache, at most KILN_GEMM_PACKED */
    int64_t more;   /* columns of b after the product's own, which the thread is likely to be given
                       next: they are prefetched */
} KilnGemmScratch;

/* c [rows, columns] = a b, or added to c; element (i, l) of a is a[i * row + l * step]. b is in
 * panels [columns / KilnGemmLoops.columns][depth][KilnGemmLoops.columns], of which the last may
 * have unused columns. Elements of a are read (not used) for rows up to a multiple of a third of
 * KilnGemmLoops.rows. */
typedef struct KilnGemmPacked {
    const float *a, *panels;
    float *c;
    int64_t row, step, ldc;
    int64_t rows, columns, depth;
    bool add;
} KilnGemmPacked;

typedef struct KilnGemmLoops {
    int rows, columns; /* of the tile that stays in registers */
    /* Runs on the calling thread alone; `done` (may be NULL) as for kiln_gemm_then. */
    void (*product)(const KilnGemm *gemm, const float *a, const float *b, float *c,
                    KilnGemmScratch scratch, KilnGemmPacking packing, KilnGemmDone *done,
                    void *context);
    /* The same for factors in these orders, without packing. */
    void (*packed_product)(const KilnGemmPacked *gemm);
} KilnGemmLoops;

KILN_DECLARE_LOOPS(KilnGemmLoops, gemm_loops);

#endif
