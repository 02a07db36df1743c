/* Every operation's samples with leaves that are not aligned, and with NaN and
 * infinities in them. */
#include "tests/unit/ops/all.h"

#include <stdio.h>

enum { MOST_ODD = 4000 };

static bool small(const Case *c)
{
    for (int i = 0; c->leaves[i] != '\0'; i++)
        if (kiln_shape_count(&c->shape[i]) > MOST_ODD)
            return false;
    return true;
}

/* The case on the CPU backend, as it is set up to be odd, against the reference. */
static void check_odd(KilnBackend *ref, KilnBackend *cpu, const Case *c, const char *how)
{
    Result want, got;

    run_case(ref, c, &want);
    run_case(cpu, c, &got);
    compare(c, how, &want, &got);
    result_free(&want);
    result_free(&got);
}

static void check_extremes(KilnBackend *ref, KilnBackend *cpu, const Case *c)
{
    static const double values[] = { NAN, INFINITY, -INFINITY };

    odd.unaligned = true;
    check_odd(ref, cpu, c, "leaves not aligned");
    odd.unaligned = false;
    for (size_t v = 0; v < KILN_COUNT(values) && !c->finite; v++)
        for (odd.leaf = 0; c->leaves[odd.leaf] != '\0'; odd.leaf++) {
            char how[64];

            if (leaf_dtype(c->leaves[odd.leaf], KILN_F32) != KILN_F32)
                continue;
            odd.value = values[v];
            snprintf(how, sizeof(how), "%g in leaf %d", values[v], odd.leaf);
            check_odd(ref, cpu, c, how);
        }
    odd.value = 0.0;
}

/* Leaves at odd addresses, and NaN and infinities in each of them: the result has
 * them where the reference has them. */
static void test_extremes(void **unused)
{
    KilnBackend *ref = ref_new(), *cpu = cpu_new(2, KILN_CONVOLUTION_DIRECT);

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(rows); i++)
        for (size_t k = 0; k < rows[i].count && first_with_its_cases(i); k++)
            if (small(&rows[i].cases[k]))
                check_extremes(ref, cpu, &rows[i].cases[k]);
    kiln_backend_free(cpu);
    kiln_backend_free(ref);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_extremes) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
