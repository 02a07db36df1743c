/* Families of kernels: which processor features each can use, and what it falls back to. Dispatch
 * and `kiln doctor` read this one table. */
#ifndef KILN_BACKEND_CPU_FAMILIES_H
#define KILN_BACKEND_CPU_FAMILIES_H

#include "backend/cpu/level.h"

typedef enum KilnCpuFamily {
    KILN_CPU_LOOPS,             /* isa/: elementwise, normalization, optimizers, ... */
    KILN_CPU_PRODUCTS,          /* of f32: kernels/gemm.c */
    KILN_CPU_PRODUCTS_BF16,     /* kernels/products.c */
    KILN_CPU_ATTENTION_BF16,    /* kernels/attention.c */
    KILN_CPU_RECURRENT_BF16,    /* kernels/recurrent.c */
    KILN_CPU_CONVOLUTIONS,      /* onednn/convolution.c, winograd/ */
    KILN_CPU_CONVOLUTIONS_BF16, /* onednn/convolution.c, bf16/ */
    KILN_CPU_FAMILIES
} KilnCpuFamily;

/* kernels[level] describes the kernels that need that level, NULL if there are none. Each family
 * has some at KILN_CPU_BASE. */
typedef struct KilnCpuFamilyInfo {
    const char *name; /* "bf16 products" */
    const char *kernels[KILN_CPU_LEVELS];
} KilnCpuFamilyInfo;

extern const KilnCpuFamilyInfo kiln_cpu_families[KILN_CPU_FAMILIES];

/* The level of the family's kernels on a processor of `level`: the highest up to it that has some.
 */
KilnCpuLevel kiln_cpu_kernels(KilnCpuFamily family, KilnCpuLevel level);

#endif
