/* When the training loop validates, logs and ends, with Lightning 2.6's numbers for 7 training
 * and 3 validation batches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <stdio.h>

#include "train/loop/loop_schedule.h"

enum { BATCHES = 7, VAL_BATCHES = 3 };

#define COUNT(n)                                                                                   \
    {                                                                                              \
        KILN_QUANTITY_COUNT, n                                                                     \
    }
#define SHARE(x)                                                                                   \
    {                                                                                              \
        KILN_QUANTITY_FRACTION, x                                                                  \
    }
#define TIME(s)                                                                                    \
    {                                                                                              \
        KILN_QUANTITY_DURATION, s                                                                  \
    }

static int64_t one = 1, two = 2, five = 5;

/* What the loop does with a pace, without training anything: "b1 s1 v" are batch 1 of the run,
 * optimizer step 1 and a validation. `stop_at`: someone asks to stop after so many steps. */
static void trace(const KilnLoopSchedule *schedule, int64_t stop_at, char *text, size_t size)
{
    KilnPosition at = { .last_val_batch = -1 };
    size_t used = 0;

    text[0] = '\0';
    while (!kiln_loop_is_last_epoch(schedule, &at) && used + 32 < size) {
        if (at.epoch_done) {
            at.epoch++;
            at.batch = 0;
            at.epoch_done = false;
        }
        while (at.batch < schedule->batches && !kiln_loop_should_stop(schedule, &at)) {
            bool steps = kiln_loop_is_step(schedule, &at, at.batch);

            at.batch++;
            at.batches++;
            at.in_group = steps ? 0 : at.in_group + 1;
            at.step += steps ? 1 : 0;
            if (stop_at > 0 && at.step >= stop_at)
                at.should_stop = true;
            if (kiln_loop_should_validate(schedule, &at, 0.0)) {
                used += (size_t)snprintf(text + used, size - used, "%sv%lld", used > 0 ? " " : "",
                                         (long long)at.batches);
                at.last_val_batch = at.batches;
            }
        }
        at.epoch_done = at.batch == schedule->batches;
        if (!at.epoch_done)
            break;
    }
    snprintf(text + used, size - used, "%send b%lld s%lld", used > 0 ? " " : "",
             (long long)at.batches, (long long)at.step);
}

static KilnTrainerOptions defaults(void)
{
    return (KilnTrainerOptions) {
        .max_epochs = 2,
        .max_steps = -1,
        .val_check_interval = SHARE(1.0),
        .check_val_every_n_epoch = &one,
        .log_every_n_steps = 50,
        .accumulate_grad_batches = 1,
    };
}

static void test_runs(void **unused)
{
    static const struct {
        KilnQuantity interval;
        int64_t *every_n, *min_epochs, *min_steps;
        int64_t max_epochs, max_steps, accumulate, stop_at;
        const char *want;
    } cases[] = {
        { SHARE(1.0), &one, NULL, NULL, 2, -1, 1, 0, "v7 v14 end b14 s14" },
        { SHARE(0.3), &one, NULL, NULL, 1, -1, 1, 0, "v2 v4 v6 end b7 s7" },
        { SHARE(0.5), &one, NULL, NULL, 2, -1, 1, 0, "v3 v6 v10 v13 end b14 s14" },
        { SHARE(0.01), &one, NULL, NULL, 1, -1, 1, 0, "v1 v2 v3 v4 v5 v6 v7 end b7 s7" },
        { COUNT(3), &one, NULL, NULL, 2, -1, 1, 0, "v3 v6 v10 v13 end b14 s14" },
        { COUNT(3), NULL, NULL, NULL, 2, -1, 1, 0, "v3 v6 v9 v12 end b14 s14" },
        { COUNT(9), NULL, NULL, NULL, 2, -1, 1, 0, "v9 end b14 s14" },
        { SHARE(1.0), &two, NULL, NULL, 4, -1, 1, 0, "v14 v28 end b28 s28" },
        { COUNT(3), &two, NULL, NULL, 2, -1, 1, 0, "v10 v13 end b14 s14" },
        /* batches are counted, not steps */
        { COUNT(3), &one, NULL, NULL, 1, -1, 2, 0, "v3 v6 end b7 s4" },
        { SHARE(1.0), &one, NULL, NULL, 2, -1, 20, 0, "v7 v14 end b14 s2" },
        { SHARE(1.0), &one, NULL, NULL, 9, 3, 2, 0, "v6 end b6 s3" },
        /* a run that max_steps ends is validated, unlike Lightning's */
        { SHARE(1.0), &one, NULL, NULL, -1, 10, 1, 0, "v7 v10 end b10 s10" },
        { SHARE(1.0), &one, NULL, NULL, 1, 0, 1, 0, "end b0 s0" },
        { SHARE(1.0), &one, NULL, NULL, 0, -1, 1, 0, "end b0 s0" },
        /* asked to stop at step 2 */
        { SHARE(1.0), &one, NULL, NULL, 9, -1, 1, 2, "v2 end b2 s2" },
        { SHARE(1.0), &one, &two, NULL, 9, -1, 1, 2, "v7 v14 end b14 s14" },
        { SHARE(1.0), &one, NULL, &five, 9, -1, 1, 2, "v7 end b7 s7" },
        { SHARE(1.0), &one, &one, &five, 9, -1, 1, 9, "v7 v9 end b9 s9" },
        /* with the last batch of an epoch, after which validation is not due */
        { SHARE(1.0), &two, NULL, NULL, 9, -1, 1, 7, "v7 end b7 s7" },
        { COUNT(5), &one, NULL, NULL, 9, -1, 1, 14, "v5 v12 v14 end b14 s14" },
        { COUNT(9), NULL, NULL, NULL, 9, -1, 1, 7, "v7 end b7 s7" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnTrainerOptions options = defaults();
        KilnLoopSchedule schedule;
        KilnError err = { 0 };
        char text[512];

        options.val_check_interval = cases[i].interval;
        options.check_val_every_n_epoch = cases[i].every_n;
        options.min_epochs = cases[i].min_epochs;
        options.min_steps = cases[i].min_steps;
        options.max_epochs = cases[i].max_epochs;
        options.max_steps = cases[i].max_steps;
        options.accumulate_grad_batches = cases[i].accumulate;
        if (kiln_loop_schedule_make(&options, BATCHES, VAL_BATCHES, 1, &schedule, &err) < 0)
            fail_msg("%zu: %s", i, err.text);
        trace(&schedule, cases[i].stop_at, text, sizeof(text));
        if (strcmp(text, cases[i].want) != 0)
            fail_msg("%zu: %s instead of %s", i, text, cases[i].want);
    }
}

static void test_totals(void **unused)
{
    static const struct {
        int64_t max_epochs, max_steps, accumulate, per_epoch, steps, epochs;
    } cases[] = {
        { 3, -1, 1, 7, 21, 3 },  { 3, -1, 2, 4, 12, 3 },   { 3, 5, 2, 4, 5, 3 },
        { -1, 10, 1, 7, 10, 2 }, { -1, -1, 1, 7, -1, -1 }, { 2, -1, 20, 1, 2, 2 },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnTrainerOptions options = defaults();
        KilnLoopSchedule schedule;

        options.max_epochs = cases[i].max_epochs;
        options.max_steps = cases[i].max_steps;
        options.accumulate_grad_batches = cases[i].accumulate;
        assert_int_equal(
            kiln_loop_schedule_make(&options, BATCHES, VAL_BATCHES, 1, &schedule, NULL), KILN_OK);
        assert_int_equal(kiln_loop_epoch_steps(&schedule, 0), cases[i].per_epoch);
        assert_int_equal(kiln_loop_total_steps(&schedule), cases[i].steps);
        assert_int_equal(kiln_loop_total_epochs(&schedule), cases[i].epochs);
    }
}

static void test_refused(void **unused)
{
    static const struct {
        KilnQuantity interval;
        int64_t *every_n;
        const char *text;
    } cases[] = {
        { COUNT(8), &one, "check_val_every_n_epoch=null" },
        { SHARE(0.5), NULL, "write a number of batches" },
        { COUNT(0), &one, "limit_val_batches=0" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnTrainerOptions options = defaults();
        KilnLoopSchedule schedule;
        KilnError err = { 0 };

        options.val_check_interval = cases[i].interval;
        options.check_val_every_n_epoch = cases[i].every_n;
        assert_int_equal(
            kiln_loop_schedule_make(&options, BATCHES, VAL_BATCHES, 1, &schedule, &err),
            KILN_E_RANGE);
        assert_non_null(strstr(err.text, cases[i].text));
    }
}

static void test_limits(void **unused)
{
    static const struct {
        KilnQuantity limit;
        int64_t total, want; /* -1: refused */
    } cases[] = {
        { SHARE(1.0), 7, 7 }, { COUNT(1), 7, 1 },   { COUNT(9), 7, 7 }, { SHARE(0.4), 7, 2 },
        { SHARE(0.4), 3, 1 }, { SHARE(0.0), 7, 0 }, { COUNT(0), 7, 0 }, { SHARE(0.1), 7, -1 },
        { SHARE(0.1), 0, 0 }, { COUNT(2), 0, 0 },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        int64_t n = -7;
        KilnError err = { 0 };
        KilnStatus status = kiln_loop_limit_batches("limit_train_batches", cases[i].limit,
                                                    cases[i].total, &n, &err);

        assert_int_equal(status, cases[i].want < 0 ? KILN_E_RANGE : KILN_OK);
        if (status >= 0)
            assert_int_equal(n, cases[i].want);
        else
            assert_non_null(strstr(err.text, "trainer.limit_train_batches=0.1 of 7 batches is less "
                                             "than one: write at least 0.1429"));
    }
}

/* After a time interval; not twice at one position, nor before an epoch. */
static void test_time(void **unused)
{
    KilnTrainerOptions options = defaults();
    KilnPosition at = { .batch = 2, .batches = 2, .last_val_batch = -1 };
    KilnLoopSchedule schedule;

    (void)unused;
    options.val_check_interval = (KilnQuantity)TIME(90);
    assert_int_equal(kiln_loop_schedule_make(&options, BATCHES, VAL_BATCHES, 1, &schedule, NULL),
                     KILN_OK);
    assert_false(kiln_loop_should_validate(&schedule, &at, 89.0));
    assert_true(kiln_loop_should_validate(&schedule, &at, 90.0));
    at.last_val_batch = 2;
    assert_false(kiln_loop_should_validate(&schedule, &at, 900.0));
    at = (KilnPosition) { .epoch = 1, .batches = BATCHES, .last_val_batch = 2 };
    assert_false(kiln_loop_should_validate(&schedule, &at, 90.0));
    at.batch = 1;
    assert_true(kiln_loop_should_validate(&schedule, &at, 90.0));
}

static void test_rows(void **unused)
{
    KilnTrainerOptions options = defaults();
    KilnPosition at = { .step = 2 };
    KilnLoopSchedule schedule;

    (void)unused;
    options.log_every_n_steps = 2;
    assert_int_equal(kiln_loop_schedule_make(&options, BATCHES, 0, 1, &schedule, NULL), KILN_OK);
    assert_true(kiln_loop_should_log(&schedule, &at));
    at.in_group = 1; /* the row of step 2 was written when it was made */
    assert_false(kiln_loop_should_log(&schedule, &at));
    at = (KilnPosition) { .step = 3 };
    assert_false(kiln_loop_should_log(&schedule, &at));
    options.log_every_n_steps = 0;
    at.step = 4;
    assert_int_equal(kiln_loop_schedule_make(&options, BATCHES, 0, 1, &schedule, NULL), KILN_OK);
    assert_false(kiln_loop_should_log(&schedule, &at));
}

/* Epochs of 10 batches; groups of 4, from epoch 2 on of 2, from epoch 3 on of 1. */
static void test_accumulation_by_epochs(void **unused)
{
    static const KilnAccumulation changes[] = { { 0, 4 }, { 2, 2 }, { 3, 1 } };
    static const struct {
        int64_t max_epochs, max_steps, steps, epochs;
    } cases[] = {
        { 0, -1, 0, 0 },    { 1, -1, 3, 1 },   { 2, -1, 6, 2 },   { 3, -1, 11, 3 },
        { 5, -1, 31, 5 },   { 5, 12, 12, 5 },  { 5, 100, 31, 5 }, { -1, 6, 6, 2 },
        { -1, 7, 7, 3 },    { -1, 11, 11, 3 }, { -1, 12, 12, 4 }, { -1, 31, 31, 5 },
        { -1, -1, -1, -1 },
    };
    KilnLoopSchedule schedule = { .batches = 10,
                                  .world = 1,
                                  .accumulate = 1,
                                  .changes = changes,
                                  .n_changes = KILN_COUNT(changes) };

    (void)unused;
    for (int64_t epoch = 0; epoch < 5; epoch++)
        assert_int_equal(kiln_loop_accumulate(&schedule, epoch), epoch < 2 ? 4 : epoch < 3 ? 2 : 1);
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        schedule.max_epochs = cases[i].max_epochs;
        schedule.max_steps = cases[i].max_steps;
        if (kiln_loop_total_steps(&schedule) != cases[i].steps ||
            kiln_loop_total_epochs(&schedule) != cases[i].epochs)
            fail_msg("case %zu: %d steps, %d epochs", i, (int)kiln_loop_total_steps(&schedule),
                     (int)kiln_loop_total_epochs(&schedule));
    }
}

/* Ranks train rounds of batches: groups and validations end with a round. */
static void test_rounds(void **unused)
{
    static const int64_t every = 1;
    static const struct {
        int world;
        int64_t accumulate;
        KilnQuantity interval;
        const char *text;
    } cases[] = {
        { 1, 1, SHARE(1.0), "s1 s2 s3 s4 s5 s6 s7 v7" },
        { 2, 1, SHARE(1.0), "s2 s4 s6 s7 v7" },
        { 3, 1, SHARE(1.0), "s3 s6 s7 v7" },
        { 2, 2, SHARE(1.0), "s4 s7 v7" },
        { 9, 1, SHARE(1.0), "s7 v7" },
        { 2, 1, COUNT(3), "s2 s4 v4 s6 v6 s7" },
        { 3, 1, COUNT(2), "s3 v3 s6 v6 s7" },
        { 4, 1, COUNT(7), "s4 s7 v7" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnTrainerOptions options = defaults();
        KilnLoopSchedule schedule;
        KilnPosition at = { .last_val_batch = -1, .last_end_batch = -1 };
        char text[256] = "";

        options.val_check_interval = cases[i].interval;
        options.check_val_every_n_epoch = (int64_t *)&every;
        options.accumulate_grad_batches = cases[i].accumulate;
        assert_int_equal(kiln_loop_schedule_make(&options, 7, 1, cases[i].world, &schedule, NULL),
                         KILN_OK);
        while (at.batch < schedule.batches) {
            const int64_t end = kiln_loop_round_end(&schedule, at.batch), n = end - at.batch;
            const bool steps = kiln_loop_is_step(&schedule, &at, at.batch);

            at.batch = end;
            at.batches += n;
            at.in_group = steps ? 0 : at.in_group + n;
            if (steps)
                snprintf(text + strlen(text), sizeof(text) - strlen(text), "%ss%lld",
                         text[0] != '\0' ? " " : "", (long long)end);
            if (kiln_loop_should_validate(&schedule, &at, 0.0))
                snprintf(text + strlen(text), sizeof(text) - strlen(text), " v%lld",
                         (long long)end);
        }
        assert_string_equal(text, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accumulation_by_epochs),
        cmocka_unit_test(test_rounds),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_totals),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_time),
        cmocka_unit_test(test_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
