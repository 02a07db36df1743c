#include "tests/support/cpu_variants.h"

KilnBackend *ref_new(void)
{
    KilnBackend *backend = NULL;
    KilnError err = { 0 };

    if (kiln_backend_ref_new(&backend, &err) != KILN_OK)
        fail_msg("%s", err.text);
    return backend;
}

KilnBackend *cpu_new(int threads, KilnConvolution conv)
{
    KilnBackend *backend = NULL;
    KilnError err = { 0 };

    if (kiln_backend_cpu_new(threads, &backend, &err) != KILN_OK)
        fail_msg("%s", err.text);
    kiln_backend_set_convolution(backend, conv);
    return backend;
}

const CpuVariant cpu_variants[] = {
    { "base loops, 1 thread", 1, KILN_CONVOLUTION_DIRECT, KILN_CPU_BASE, &kiln_loops_base,
      KILN_MD_PLAIN },
#if defined(__x86_64__)
    { "AVX2 loops, 2 threads", 2, KILN_CONVOLUTION_DIRECT, KILN_CPU_AVX2, &kiln_loops_avx2,
      KILN_MD_C8 },
#endif
    { "best loops, 3 threads, Winograd allowed", 3, KILN_CONVOLUTION_AUTO, KILN_CPU_BASE, NULL,
      KILN_MD_ANY },
};
const size_t cpu_variants_count = KILN_COUNT(cpu_variants);

KilnBackend *cpu_variant_new(const CpuVariant *variant)
{
    KilnBackend *backend = cpu_new(variant->threads, variant->conv);
    KilnCpuBackend *cpu = (KilnCpuBackend *)backend;

    if (variant->loops != NULL && variant->level <= cpu->level) {
        cpu->loops = variant->loops;
        cpu->blocked = variant->blocked;
    }
    return backend;
}

void check_case(const Case *c)
{
    KilnBackend *ref = ref_new();
    Result want;

    run_case(ref, c, &want);
    for (size_t w = 0; w < cpu_variants_count; w++) {
        KilnBackend *cpu = cpu_variant_new(&cpu_variants[w]);
        Result got, again;

        run_case(cpu, c, &got);
        run_case(cpu, c, &again);
        compare(c, cpu_variants[w].name, &want, &got);
        if (!same_result(&got, &again))
            fail_msg("%s, %s: two runs differ", c->name, cpu_variants[w].name);
        result_free(&got);
        result_free(&again);
        kiln_backend_free(cpu);
    }
    result_free(&want);
    kiln_backend_free(ref);
}
