/* Levels of processor features: the highest that this processor has, and how much of it the
 * environment variable KILN_ISA allows.
 *
 * A new processor starts here: add its level, detect it in level.c, then follow cpu.h. */
#ifndef KILN_BACKEND_CPU_LEVEL_H
#define KILN_BACKEND_CPU_LEVEL_H

#include "kiln/base.h"

/* Each has all that those before it have. */
typedef enum KilnCpuLevel {
    KILN_CPU_BASE,   /* what every x86-64 has: SSE2 */
    KILN_CPU_AVX2,   /* AVX2 and FMA */
    KILN_CPU_AVX512, /* AVX-512 F, BW, DQ and VL */
    KILN_CPU_AMX,    /* AVX-512 BF16, AMX tiles and their products of bf16 */
    KILN_CPU_LEVELS
} KilnCpuLevel;

/* Static text: "avx2". */
const char *kiln_cpu_level_name(KilnCpuLevel level);
/* The highest level that processor and operating system offer. */
KilnCpuLevel kiln_cpu_level_highest(void);
/* The level to use, which KILN_ISA may name (not set or empty: the highest), and whether
 * it does. A value that is no level, or one above the highest, is KILN_E_RANGE. */
KILN_NODISCARD KilnStatus kiln_cpu_level_choose(KilnCpuLevel *ret_level, bool *ret_capped,
                                                KilnError *err);

#endif
