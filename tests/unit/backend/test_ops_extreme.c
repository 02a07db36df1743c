/* Every operation's samples with unaligned leaves, and with NaN and infinities in them. */
#include <math.h>
#include <stdio.h>

#include "tests/support/cmocka.h"
#include "tests/support/cpu_variants.h"
#include "tests/support/ops/samples.h"

enum { MOST_ODD = 4000 };

static bool small(const Case *c)
{
    for (int i = 0; c->leaves[i] != '\0'; i++)
        if (kiln_shape_count(&c->shape[i]) > MOST_ODD)
            return false;
    return true;
}

/* A value that is not finite in the reference and looks finite here: someone would
 * believe it. More of them than in the reference are fine: a library may multiply
 * the zeros of a padding, too. */
static bool hidden(const Bytes *want, const Bytes *got)
{
    if (want->data == NULL || want->dtype != KILN_F32)
        return false;
    for (size_t i = 0; i < want->size / sizeof(float); i++)
        if (!isfinite(((const float *)want->data)[i]) && isfinite(((const float *)got->data)[i]))
            return true;
    return false;
}

static void check_not_hidden(KilnBackend *ref, KilnBackend *cpu, const Case *c, const char *how)
{
    Result want, got;

    run_case(ref, c, &want);
    run_case(cpu, c, &got);
    if (hidden(&want.output, &got.output))
        fail_msg("%s, %s: the output hides it", c->name, how);
    for (int i = 0; c->leaves[i] != '\0'; i++) {
        if (hidden(&want.leaf[i], &got.leaf[i]))
            fail_msg("%s, %s: leaf %d hides it after the run", c->name, how, i);
        if (hidden(&want.grad[i], &got.grad[i]))
            fail_msg("%s, %s: the gradient of input %d hides it", c->name, how, i);
    }
    result_free(&want);
    result_free(&got);
}

static void check_unaligned(KilnBackend *ref, KilnBackend *cpu, const Case *c)
{
    Result want, got;

    extremes.unaligned = true;
    run_case(ref, c, &want);
    run_case(cpu, c, &got);
    extremes.unaligned = false;
    compare(c, "leaves not aligned", &want, &got);
    result_free(&want);
    result_free(&got);
}

static void check_extremes(KilnBackend *ref, KilnBackend *cpu, const Case *c)
{
    static const double values[] = { NAN, INFINITY, -INFINITY };

    check_unaligned(ref, cpu, c);
    for (size_t v = 0; v < KILN_COUNT(values) && !c->skips; v++)
        for (extremes.leaf = 0; c->leaves[extremes.leaf] != '\0'; extremes.leaf++) {
            char how[64];

            if (leaf_dtype(c->leaves[extremes.leaf], KILN_F32) != KILN_F32)
                continue;
            extremes.value = values[v];
            snprintf(how, sizeof(how), "%g in leaf %d", values[v], extremes.leaf);
            check_not_hidden(ref, cpu, c, how);
        }
    extremes.value = 0.0;
}

/* Leaves at odd addresses, and NaN and infinities in each of them. */
static void test_extremes(void **unused)
{
    KilnBackend *ref = ref_new(), *cpu = cpu_new(2, KILN_CONVOLUTION_DIRECT);

    (void)unused;
    for (size_t i = 0; i < op_samples_count; i++)
        for (size_t k = 0; k < samples_to_run(i); k++)
            if (small(&op_samples[i].samples->cases[k]))
                check_extremes(ref, cpu, &op_samples[i].samples->cases[k]);
    kiln_backend_free(cpu);
    kiln_backend_free(ref);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_extremes) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
