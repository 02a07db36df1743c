/* Levels of processor features: the highest that this processor has, and how much of it the
 * environment variable KILN_ISA allows.
 *
 * A new processor starts here: add its level, detect it in level.c, then follow cpu.h. */
#ifndef KILN_BACKEND_CPU_LEVEL_H
#define KILN_BACKEND_CPU_LEVEL_H

#include "kiln/base.h"

/* Each level includes those before it. */
typedef enum KilnCpuLevel {
    KILN_CPU_BASE,        /* SSE2 on x86-64, NEON on ARM64: what every one has */
    KILN_CPU_AVX2,        /* AVX2 and FMA */
    KILN_CPU_AVX512,      /* AVX-512 F, BW, DQ and VL */
    KILN_CPU_AVX512_BF16, /* AVX-512 BF16: products of bf16 (vdpbf16ps) */
    KILN_CPU_AMX,         /* AMX tiles with bf16 products */
    KILN_CPU_LEVELS,
#if defined(__x86_64__)
    KILN_CPU_TOP = KILN_CPU_AMX /* the highest of the architecture */
#else
    KILN_CPU_TOP = KILN_CPU_BASE
#endif
} KilnCpuLevel;

/* Static text: "avx2". */
const char *kiln_cpu_level_name(KilnCpuLevel level);
/* The highest level that processor and operating system offer. */
KilnCpuLevel kiln_cpu_level_highest(void);
/* The level to use: the one that KILN_ISA names, or the fastest if unset or empty, which is the
 * highest unless that is an AVX-512 BF16 slower than f32; *ret_capped says which. KILN_E_RANGE for
 * an unknown level or one above the highest. */
KILN_NODISCARD KilnStatus kiln_cpu_level_choose(KilnCpuLevel *ret_level, bool *ret_capped,
                                                KilnError *err);

/* ---- Vector loops: isa/NAME.c is compiled once per level of ISAS in the Makefile ------------ */

/* Declares a table of vector loops at each of these levels: kiln_NAME_avx2, ... */
#define KILN_DECLARE_LOOPS(Type, name)                                                             \
    extern const Type kiln_##name##_base, kiln_##name##_avx2, kiln_##name##_avx512

/* In isa/NAME.c: the table at the level being compiled, which the compiler flag KILN_ISA names. */
#define KILN_LOOPS(name) KILN_LOOPS_AT(name, KILN_ISA)
#define KILN_LOOPS_AT(name, isa) KILN_LOOPS_JOIN(name, isa)
#define KILN_LOOPS_JOIN(name, isa) kiln_##name##_##isa

#endif
