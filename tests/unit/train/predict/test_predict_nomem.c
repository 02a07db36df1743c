/* Allocations of opening a predictor and of its calls: if one fails, that call fails with a message
 * without a leak, and the next one gives the same bytes. Counts kiln's own calls of
 * malloc, calloc and realloc (the linker redirects them). */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/failing_malloc.h"
#include "tests/support/run_fixture.h"

/* ---- Counting ------------------------------------------------------------------------------ */

static _Atomic long fail_in; /* this many allocations from now, one fails; 0: none */

bool allocation_fails(void)
{
    return atomic_load(&fail_in) > 0 && atomic_fetch_sub(&fail_in, 1) == 1;
}

/* ---- Tests --------------------------------------------------------------------------------- */

enum { SAMPLES = 11, MOST = 100000 };

static KilnStatus open_last(const Composed *with, KilnPredictor **ret, KilnError *err)
{
    char path[128];
    const KilnPredictorSpec spec = { .registry = with->registry, .ckpt_path = path };

    snprintf(path, sizeof(path), "%s/run", work);
    return kiln_predictor_open(&spec, ret, err);
}

/* Predict SAMPLES numbers, more than a batch; `number` is that of the first. */
static KilnStatus predict(KilnPredictor *predictor, int number, float ret[SAMPLES], KilnError *err)
{
    KilnRawValue values[SAMPLES];
    KilnRawSample samples[SAMPLES];
    KilnPredictions *predictions = NULL;

    for (int i = 0; i < SAMPLES; i++) {
        values[i] = (KilnRawValue) { .type = KILN_RAW_NUMBER, .number = number + i };
        samples[i] = (KilnRawSample) { .values = &values[i], .n_values = 1 };
    }
    const KilnStatus status = kiln_predict(predictor, samples, SAMPLES, &predictions, err);
    for (int i = 0; i < SAMPLES && status >= 0; i++)
        ret[i] = predictions->list[i].outputs[0].data[0];
    kiln_predictions_free(predictions);
    return status;
}

/* Whether the call failed as it should; false: it did not fail. */
static bool failed(KilnStatus status, const KilnError *err)
{
    if (status < 0 && err->text[0] == '\0')
        fail_msg("status %d without a message", status);
    return status < 0;
}

static void calls_return_it(void **unused)
{
    static const char *const none[] = { NULL };
    float want[SAMPLES], got[SAMPLES];
    KilnPredictor *predictor = NULL;
    KilnError err = { 0 };
    Composed with;
    long i = 1;

    (void)unused;
    fit_well("run", "trainer.max_epochs=1", "finished");
    compose(&with, none);
    assert_int_equal(open_last(&with, &predictor, &err), KILN_OK);
    assert_int_equal(predict(predictor, 3, want, &err), KILN_OK);
    kiln_predictor_free(predictor);
    /* A new one makes its plans during these calls. */
    assert_int_equal(open_last(&with, &predictor, &err), KILN_OK);
    for (bool more = true; more && i < MOST; i++) {
        err = (KilnError) { 0 };
        fail_in = i;
        const KilnStatus status = predict(predictor, 3, got, &err);
        more = fail_in <= 0;
        fail_in = 0;
        if (failed(status, &err))
            assert_int_equal(status, KILN_E_NOMEM);
        else
            assert_memory_equal(got, want, sizeof(want));
    }
    assert_true(i > 10 && i < MOST);
    kiln_predictor_free(predictor);
    composed_free(&with);
}

static void opening_returns_it(void **unused)
{
    static const char *const none[] = { NULL };
    float want[SAMPLES], got[SAMPLES];
    KilnPredictor *predictor = NULL;
    KilnError err = { 0 };
    Composed with;
    long i = 1;

    (void)unused;
    fit_well("run", "trainer.max_epochs=1", "finished");
    compose(&with, none);
    assert_int_equal(open_last(&with, &predictor, &err), KILN_OK);
    assert_int_equal(predict(predictor, 0, want, &err), KILN_OK);
    kiln_predictor_free(predictor);
    for (bool more = true; more && i < MOST; i += 5) {
        predictor = NULL;
        err = (KilnError) { 0 };
        fail_in = i;
        const KilnStatus status = open_last(&with, &predictor, &err);
        more = fail_in <= 0;
        fail_in = 0;
        if (!failed(status, &err)) {
            assert_int_equal(predict(predictor, 0, got, &err), KILN_OK);
            assert_memory_equal(got, want, sizeof(want));
        }
        kiln_predictor_free(predictor);
    }
    assert_true(i > 100 && i < MOST);
    composed_free(&with);
}

#define RUN_TEST(name) cmocka_unit_test_setup_teardown(name, make_work, remove_work)

int main(void)
{
    const struct CMUnitTest tests[] = { RUN_TEST(calls_return_it), RUN_TEST(opening_returns_it) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
