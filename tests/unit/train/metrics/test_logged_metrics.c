/* Logged metrics: names, means, best values, what loggers receive, and saving in checkpoints. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/metrics/metrics.h"
#include "train/checkpoint/component_state.h"

static KilnMetrics *metrics_new(void)
{
    KilnMetrics *metrics = NULL;

    assert_int_equal(kiln_metrics_new(&metrics, NULL), KILN_OK);
    return metrics;
}

static void add(KilnMetrics *metrics, KilnPhase phase, const char *name, unsigned flags,
                double value, double weight, int64_t epoch, int64_t step)
{
    int declared = kiln_metrics_declare(metrics, phase, name, kiln_log_flags(phase, flags));

    assert_true(declared >= 0);
    assert_int_equal(kiln_metrics_add(metrics, declared, value, weight, epoch, step, NULL),
                     KILN_OK);
}

static double value_of(const KilnMetrics *metrics, const char *name)
{
    const KilnMetric *metric = kiln_metrics_find(metrics, name);

    if (metric == NULL)
        fail_msg("no metric %s", name);
    return metric->value;
}

static void test_flags_and_names(void **unused)
{
    static const struct {
        KilnPhase phase;
        unsigned flags;
        const char *step_name, *epoch_name;
    } cases[] = {
        { KILN_PHASE_FIT, 0, "x", NULL },
        { KILN_PHASE_FIT, KILN_LOG_PROG_BAR, "x", NULL },
        { KILN_PHASE_FIT, KILN_LOG_EPOCH, NULL, "x" },
        { KILN_PHASE_FIT, KILN_LOG_STEP | KILN_LOG_EPOCH, "x_step", "x_epoch" },
        { KILN_PHASE_VALIDATE, 0, NULL, "x" },
        { KILN_PHASE_TEST, KILN_LOG_STEP, "x", NULL },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnMetrics *metrics = metrics_new();
        const KilnMetric *list;
        int want = (cases[i].step_name != NULL) + (cases[i].epoch_name != NULL);

        add(metrics, cases[i].phase, "x", cases[i].flags, 1.0, 2.0, 0, 1);
        add(metrics, cases[i].phase, "x", cases[i].flags, 4.0, 1.0, 0, 2);
        assert_int_equal(kiln_metrics_end_epoch(metrics, cases[i].phase, 0, 2, NULL), KILN_OK);
        assert_int_equal(kiln_metrics_list(metrics, &list), want);
        if (cases[i].step_name != NULL)
            assert_true(value_of(metrics, cases[i].step_name) == 4.0);
        if (cases[i].epoch_name != NULL)
            assert_true(value_of(metrics, cases[i].epoch_name) == 2.0);
        assert_true(kiln_metrics_declared(metrics, cases[i].phase, "x"));
        assert_false(kiln_metrics_declared(metrics, cases[i].phase, "y"));
        kiln_metrics_free(metrics);
    }
}

/* Of a name that is logged in both ways: within an epoch the step's value, at its end the mean. */
static void test_the_plain_name(void **unused)
{
    const unsigned both = KILN_LOG_STEP | KILN_LOG_EPOCH;
    KilnMetrics *metrics = metrics_new();

    (void)unused;
    add(metrics, KILN_PHASE_FIT, "x", both, 1.0, 2.0, 0, 1);
    assert_true(value_of(metrics, "x") == 1.0);
    assert_false(kiln_metrics_has_epoch_value(metrics, kiln_metrics_find(metrics, "x_step")));
    add(metrics, KILN_PHASE_FIT, "x", both, 4.0, 1.0, 0, 2);
    assert_int_equal(kiln_metrics_end_epoch(metrics, KILN_PHASE_FIT, 0, 2, NULL), KILN_OK);
    assert_true(value_of(metrics, "x") == 2.0);
    assert_true(kiln_metrics_has_epoch_value(metrics, kiln_metrics_find(metrics, "x_step")));
    assert_false(kiln_metrics_has_epoch_value(metrics, kiln_metrics_find(metrics, "x_epoch")));
    /* The first batch of a group makes no step. */
    add(metrics, KILN_PHASE_FIT, "x", both, 5.0, 1.0, 1, 2);
    assert_true(value_of(metrics, "x") == 5.0);
    assert_true(value_of(metrics, "x_epoch") == 2.0);
    kiln_metrics_free(metrics);
}

/* Saved when the name was logged in one way: it would pass for the later value for ever. */
static void test_saved_in_one_way(void **unused)
{
    KilnMetrics *before = metrics_new(), *after = metrics_new();
    KilnError err = { 0 };

    (void)unused;
    add(before, KILN_PHASE_FIT, "x", KILN_LOG_STEP, 1.0, 2.0, 0, 1);
    json_t *saved = kiln_metrics_save(before);
    assert_true(kiln_metrics_declare(after, KILN_PHASE_FIT, "x", KILN_LOG_STEP | KILN_LOG_EPOCH) >=
                0);
    assert_int_equal(kiln_metrics_load(after, saved, &err), KILN_E_FORMAT);
    assert_non_null(strstr(err.text, "this program logs x_step and x_epoch"));
    json_decref(saved);
    kiln_metrics_free(before);
    kiln_metrics_free(after);
}

static void test_a_name_in_two_phases(void **unused)
{
    KilnMetrics *metrics = metrics_new();

    (void)unused;
    add(metrics, KILN_PHASE_FIT, "loss", KILN_LOG_EPOCH, 8.0, 1.0, 0, 1);
    add(metrics, KILN_PHASE_VALIDATE, "loss", 0, 2.0, 1.0, 0, 1);
    assert_int_equal(kiln_metrics_end_epoch(metrics, KILN_PHASE_VALIDATE, 0, 1, NULL), KILN_OK);
    assert_true(value_of(metrics, "loss") == 2.0);
    assert_int_equal(kiln_metrics_end_epoch(metrics, KILN_PHASE_FIT, 0, 1, NULL), KILN_OK);
    assert_true(value_of(metrics, "loss") == 8.0);
    kiln_metrics_free(metrics);
}

/* The flags say which value is the best, whatever the name; without them none is. */
static void test_best(void **unused)
{
    static const double values[] = { NAN, 0.5, 0.25, 0.75, NAN };
    KilnMetrics *metrics = metrics_new();
    const KilnMetricBest *best;

    (void)unused;
    for (int i = 0; i < 5; i++) {
        add(metrics, KILN_PHASE_VALIDATE, "val/accuracy", KILN_LOG_LOWER_IS_BETTER, values[i], 1.0,
            i, 10 * i);
        add(metrics, KILN_PHASE_VALIDATE, "val/loss", KILN_LOG_HIGHER_IS_BETTER, values[i], 1.0, i,
            10 * i);
        add(metrics, KILN_PHASE_VALIDATE, "val/error", 0, values[i], 1.0, i, 10 * i);
        assert_int_equal(kiln_metrics_end_epoch(metrics, KILN_PHASE_VALIDATE, i, 10 * i, NULL),
                         KILN_OK);
    }
    best = kiln_metrics_best(metrics);
    assert_true(best[0].value == 0.25 && best[0].epoch == 2 && best[0].step == 20);
    assert_true(best[1].value == 0.75 && best[1].epoch == 3 && best[1].step == 30);
    assert_true(isnan(best[2].value));
    assert_int_equal(kiln_metrics_mode(metrics, "val/accuracy"), KILN_MODE_MIN);
    assert_int_equal(kiln_metrics_mode(metrics, "val/loss"), KILN_MODE_MAX);
    assert_int_equal(kiln_metrics_mode(metrics, "val/error"), KILN_MODE_AUTO);
    assert_true(isnan(value_of(metrics, "val/loss")));
    kiln_metrics_free(metrics);
}

static void test_taken_once(void **unused)
{
    KilnMetrics *metrics = metrics_new();
    const KilnMetric *taken;

    (void)unused;
    add(metrics, KILN_PHASE_FIT, "loss", KILN_LOG_STEP | KILN_LOG_EPOCH, 1.0, 1.0, 0, 1);
    add(metrics, KILN_PHASE_FIT, "loss", KILN_LOG_STEP | KILN_LOG_EPOCH, 3.0, 1.0, 0, 2);
    assert_int_equal(kiln_metrics_take(metrics, false, 2, &taken), 1);
    assert_string_equal(taken[0].name, "loss_step");
    assert_true(taken[0].value == 3.0);
    assert_int_equal(kiln_metrics_take(metrics, false, 2, &taken), 0);
    assert_int_equal(kiln_metrics_end_epoch(metrics, KILN_PHASE_FIT, 0, 2, NULL), KILN_OK);
    assert_int_equal(kiln_metrics_take(metrics, true, 2, &taken), 1);
    assert_string_equal(taken[0].name, "loss_epoch");
    /* A value of an earlier step is not passed off as this one's. */
    add(metrics, KILN_PHASE_FIT, "loss", KILN_LOG_STEP | KILN_LOG_EPOCH, 5.0, 1.0, 0, 3);
    assert_int_equal(kiln_metrics_take(metrics, false, 4, &taken), 0);
    kiln_metrics_free(metrics);
}

/* An epoch that is cut in two by a checkpoint has the same means, to the bit. */
static void test_saved_in_mid_epoch(void **unused)
{
    KilnMetrics *whole = metrics_new(), *first = metrics_new(), *second = metrics_new();

    (void)unused;
    for (int i = 0; i < 1000; i++) {
        double value = 1.0 / (3.0 + i), weight = i == 999 ? 5.0 : 64.0;

        add(whole, KILN_PHASE_FIT, "loss", KILN_LOG_EPOCH, value, weight, 0, i);
        add(i < 321 ? first : second, KILN_PHASE_FIT, "loss", KILN_LOG_EPOCH, value, weight, 0, i);
        if (i == 320) {
            char *text;
            json_t *saved = kiln_metrics_save(first);

            assert_non_null(saved);
            text = json_dumps(saved, JSON_REAL_PRECISION(17));
            json_decref(saved);
            saved = json_loads(text, 0, NULL);
            assert_int_equal(kiln_metrics_load(second, saved, NULL), KILN_OK);
            json_decref(saved);
            free(text);
        }
    }
    assert_int_equal(kiln_metrics_end_epoch(whole, KILN_PHASE_FIT, 0, 1000, NULL), KILN_OK);
    assert_int_equal(kiln_metrics_end_epoch(second, KILN_PHASE_FIT, 0, 1000, NULL), KILN_OK);
    assert_true(value_of(whole, "loss") == value_of(second, "loss"));
    kiln_metrics_free(whole);
    kiln_metrics_free(first);
    kiln_metrics_free(second);
}

static void test_damaged_state(void **unused)
{
    static const char *const texts[] = {
        "{\"values\": [{}]}",
        "{\"values\": [{\"name\": \"x\", \"value\": 1.0}]}",
        "{\"values\": [{\"name\": \"x\", \"value\": \"one\", \"best\": 1.0}]}",
        "{\"sums\": [{\"name\": \"x\", \"phase\": 9, \"flags\": 2, \"sum\": 1.0}]}",
        "{\"sums\": [{\"name\": \"x\", \"phase\": 0, \"flags\": 2, \"sum\": 1.0}]}",
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(texts); i++) {
        KilnMetrics *metrics = metrics_new();
        json_t *saved = json_loads(texts[i], 0, NULL);
        KilnError err = { 0 };

        assert_non_null(saved);
        assert_int_equal(kiln_metrics_load(metrics, saved, &err), KILN_E_FORMAT);
        json_decref(saved);
        kiln_metrics_free(metrics);
    }
}

static void test_state_is_exact(void **unused)
{
    static const double values[] = {
        0.1, -1e-310, 3.0, INFINITY, -INFINITY, NAN, 0x1.fffffffffffffp1023
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(values); i++) {
        KilnState state = { .object = json_object() };
        double got = 0.0;
        int64_t integer = 5;
        const char *text = "before";

        kiln_state_set_f64(&state, "x", values[i]);
        kiln_state_set_i64(&state, "n", INT64_MIN);
        kiln_state_set_str(&state, "s", NULL);
        assert_false(state.failed);
        char *dumped = json_dumps(state.object, JSON_REAL_PRECISION(17));
        json_decref(state.object);
        state.object = json_loads(dumped, 0, NULL);
        free(dumped);
        assert_true(kiln_state_get_f64(&state, "x", &got));
        assert_true(got == values[i] || (isnan(got) && isnan(values[i])));
        assert_false(kiln_state_get_i64(&state, "x", &integer));
        assert_int_equal(integer, 5);
        assert_true(kiln_state_get_i64(&state, "n", &integer));
        assert_true(integer == INT64_MIN);
        assert_false(kiln_state_get_str(&state, "n", &text));
        assert_true(kiln_state_get_str(&state, "s", &text));
        assert_null(text);
        assert_false(kiln_state_get_f64(&state, "absent", &got));
        json_decref(state.object);
    }
}

/* Epoch values by Lightning's reduce_fx; also through a checkpoint in the middle. */
static void test_reductions(void **unused)
{
    static const struct {
        unsigned flags;
        double want;
    } cases[] = {
        { 0, (3.0 * 4 + -1.0 * 4 + 2.0 * 2) / 10 },
        { KILN_LOG_MIN, -1.0 },
        { KILN_LOG_MAX, 3.0 },
        { KILN_LOG_SUM, 4.0 },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnMetrics *first = metrics_new(), *second = metrics_new();
        const unsigned flags = KILN_LOG_EPOCH | cases[i].flags | KILN_LOG_NO_LOGGER;
        const KilnMetric *taken;

        add(first, KILN_PHASE_FIT, "x", flags, 3.0, 4.0, 0, 1);
        add(first, KILN_PHASE_FIT, "x", flags, -1.0, 4.0, 0, 2);
        json_t *saved = kiln_metrics_save(first);
        assert_int_equal(kiln_metrics_load(second, saved, NULL), KILN_OK);
        json_decref(saved);
        add(second, KILN_PHASE_FIT, "x", flags, 2.0, 2.0, 0, 3);
        assert_int_equal(kiln_metrics_end_epoch(second, KILN_PHASE_FIT, 0, 3, NULL), KILN_OK);
        assert_true(fabs(value_of(second, "x") - cases[i].want) < 1e-15);
        assert_int_equal(kiln_metrics_take(second, true, 3, &taken), 0); /* not for loggers */
        kiln_metrics_free(first);
        kiln_metrics_free(second);
    }
}

/* Nothing measured is in a checkpoint, and what is beside it loads. */
static void test_measured_is_not_saved(void **unused)
{
    const unsigned both = KILN_LOG_STEP | KILN_LOG_EPOCH;
    KilnMetrics *metrics = metrics_new(), *alone = metrics_new(), *loaded = metrics_new();
    const KilnMetric *taken;

    (void)unused;
    add(metrics, KILN_PHASE_FIT, "rate", both | KILN_LOG_MEASURED, 7.0, 1.0, 0, 1);
    add(metrics, KILN_PHASE_FIT, "loss", both, 3.0, 1.0, 0, 1);
    add(alone, KILN_PHASE_FIT, "loss", both, 3.0, 1.0, 0, 1);
    json_t *saved = kiln_metrics_save(metrics), *want = kiln_metrics_save(alone);
    assert_true(json_equal(saved, want));
    assert_int_equal(kiln_metrics_load(loaded, saved, NULL), KILN_OK);
    assert_int_equal(kiln_metrics_end_epoch(loaded, KILN_PHASE_FIT, 0, 1, NULL), KILN_OK);
    assert_null(kiln_metrics_find(loaded, "rate"));
    assert_int_equal(kiln_metrics_end_epoch(metrics, KILN_PHASE_FIT, 0, 1, NULL), KILN_OK);
    assert_int_equal(kiln_metrics_take(metrics, true, 1, &taken), 2);
    assert_string_equal(taken[0].name, "rate_epoch");
    assert_true((taken[0].flags & KILN_LOG_MEASURED) != 0);
    assert_true((taken[1].flags & KILN_LOG_MEASURED) == 0);
    json_decref(saved);
    json_decref(want);
    kiln_metrics_free(metrics);
    kiln_metrics_free(alone);
    kiln_metrics_free(loaded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flags_and_names),
        cmocka_unit_test(test_the_plain_name),
        cmocka_unit_test(test_saved_in_one_way),
        cmocka_unit_test(test_a_name_in_two_phases),
        cmocka_unit_test(test_best),
        cmocka_unit_test(test_taken_once),
        cmocka_unit_test(test_reductions),
        cmocka_unit_test(test_measured_is_not_saved),
        cmocka_unit_test(test_saved_in_mid_epoch),
        cmocka_unit_test(test_damaged_state),
        cmocka_unit_test(test_state_is_exact),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
