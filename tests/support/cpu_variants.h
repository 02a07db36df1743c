/* Runs samples of operations on every variant of the CPU backend, against the reference. */
#ifndef KILN_TESTS_SUPPORT_CPU_VARIANTS_H
#define KILN_TESTS_SUPPORT_CPU_VARIANTS_H

#include "backend/cpu/cpu.h"
#include "tests/support/case_runner.h"

KilnBackend *ref_new(void);

KilnBackend *cpu_new(int threads, KilnConvolution conv);

/* One way to run the CPU backend: loops, threads, layouts, algorithms. */
typedef struct CpuVariant {
    const char *name;
    int threads;
    KilnConvolution conv;
    KilnCpuLevel level;     /* what the loops need */
    const KilnLoops *loops; /* NULL: those of the backend */
    KilnMdFormat blocked;
} CpuVariant;
extern const CpuVariant cpu_variants[];
extern const size_t cpu_variants_count;

KilnBackend *cpu_variant_new(const CpuVariant *variant);

/* Compares the case on each variant with the reference; two runs of a variant must agree. */
void check_case(const Case *c);

#endif
