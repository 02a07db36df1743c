/* The processor's backend in double precision against the reference in double precision, over every
 * operation's samples. */
#include <stdlib.h>

#include "graph/backend.h"
#include "tests/support/case_runner.h"
#include "tests/support/ops/samples.h"

static const double most = 1e-12; /* relative to the largest value */

static void check_bytes(const Case *c, const char *what, const Bytes *want, const Bytes *got)
{
    if (want->data != NULL && !(difference(want, got) <= most))
        fail_msg("%s: %s: differs by %g", c->name, what, difference(want, got));
}

static void check_results(const Case *c, const Result *want, const Result *got)
{
    check_bytes(c, "result", &want->output, &got->output);
    for (int i = 0; c->leaves[i] != '\0'; i++) {
        check_bytes(c, "leaf", &want->leaf[i], &got->leaf[i]);
        check_bytes(c, "gradient", &want->grad[i], &got->grad[i]);
    }
}

static void check_case(KilnBackend *ref, KilnBackend *alone, KilnBackend *threads, const Case *c)
{
    Result want, got, again;

    run_case(ref, c, &want);
    run_case(alone, c, &got);
    check_results(c, &want, &got);
    result_free(&got);
    run_case(threads, c, &got);
    check_results(c, &want, &got);
    run_case(threads, c, &again);
    assert_true(same_result(&got, &again));
    result_free(&again);
    result_free(&got);
    result_free(&want);
}

static KilnBackend *f64_new(int threads)
{
    KilnBackend *backend = NULL;
    KilnError err = { 0 };

    if (kiln_backend_cpu_f64_new(threads, &backend, &err) < 0)
        fail_msg("%s", err.text);
    return backend;
}

static void test_operations(void **unused)
{
    KilnBackend *ref = NULL, *alone = f64_new(1), *threads = f64_new(3);
    KilnError err = { 0 };

    (void)unused;
    assert_int_equal(kiln_backend_ref_f64_new(&ref, &err), KILN_OK);
    for (size_t i = 0; i < op_samples_count; i++)
        for (size_t k = 0; k < samples_to_run(i); k++)
            check_case(ref, alone, threads, &op_samples[i].samples->cases[k]);
    kiln_backend_free(ref);
    kiln_backend_free(alone);
    kiln_backend_free(threads);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_operations) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
