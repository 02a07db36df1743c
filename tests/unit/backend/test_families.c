/* The table of kernel families, and the kernels that each level gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backend/cpu/families.h"

static void every_level_has_kernels(void **state)
{
    (void)state;
    for (int f = 0; f < KILN_CPU_FAMILIES; f++) {
        const KilnCpuFamilyInfo *family = &kiln_cpu_families[f];

        assert_non_null(family->name);
        assert_non_null(family->kernels[KILN_CPU_BASE]);
        for (int level = 0; level < KILN_CPU_LEVELS; level++) {
            const KilnCpuLevel used = kiln_cpu_kernels((KilnCpuFamily)f, (KilnCpuLevel)level);

            assert_true((int)used <= level);
            assert_non_null(family->kernels[used]);
            for (int between = (int)used + 1; between <= level; between++)
                assert_null(family->kernels[between]);
        }
    }
}

static void bf16_needs_its_instructions(void **state)
{
    (void)state;
    assert_int_equal(kiln_cpu_kernels(KILN_CPU_PRODUCTS_BF16, KILN_CPU_AMX), KILN_CPU_AMX);
    assert_int_equal(kiln_cpu_kernels(KILN_CPU_PRODUCTS_BF16, KILN_CPU_AVX512_BF16),
                     KILN_CPU_AVX512_BF16);
    assert_int_equal(kiln_cpu_kernels(KILN_CPU_PRODUCTS_BF16, KILN_CPU_AVX512), KILN_CPU_BASE);
    assert_int_equal(kiln_cpu_kernels(KILN_CPU_LOOPS, KILN_CPU_AMX), KILN_CPU_AVX512);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_level_has_kernels),
        cmocka_unit_test(bf16_needs_its_instructions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
