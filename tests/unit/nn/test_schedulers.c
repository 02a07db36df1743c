/* Schedulers against PyTorch's recorded curves, and the options and runs that they reject. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kiln/module.h"
#include "tests/support/components/built_component.h"
#include "tests/support/cmocka.h"
#include "tests/support/recorded_file.h"

static void check_factors(const Record *record, KilnInstance *self, const double *metric,
                          size_t number)
{
    const KilnSchedulerOps *ops = kiln_instance_component(self)->ops.scheduler;

    for (int64_t step = 0; step < 40; step++) {
        KilnProgress at = {
            .step = step,
            .epoch = step / 4,
            .steps_per_epoch = 4,
            .total_steps = 40,
            .total_epochs = 10,
        };
        double got = ops->factor(self, &at), want = record_f64(record, (size_t)step + 1);

        if (fabs(got - want) > 1e-9)
            fail_msg("case %zu (%s), step %d: %.12g, want %s", number, kiln_instance_name(self),
                     (int)step, got, record->word[step + 1]);
        if (ops->observe != NULL && step % 4 == 3) {
            int64_t mode;

            (void)ops->monitor(self, &mode);
            ops->observe(self, metric[step / 4], mode == KILN_MODE_MAX);
        }
    }
}

static void test_scheduler_curves(void **unused)
{
    Record record;
    size_t cases = 0;

    (void)unused;
    record_open(&record, "schedulers.txt");
    while (record_line(&record)) {
        Built built;
        double metric[10] = { 0 };
        KilnError err = { 0 };

        assert_true(record_is(&record, "scheduler"));
        if (build_words(&built, KILN_KIND_SCHEDULER, record.word[1], record.word + 2,
                        record.words - 2, &err) < 0)
            fail_msg("%s", err.text);
        assert_true(record_line(&record));
        if (record_is(&record, "metric")) {
            for (size_t i = 0; i < KILN_COUNT(metric); i++)
                metric[i] = strcmp(record.word[i + 1], "nan") == 0 ? (double)NAN
                                                                   : record_f64(&record, i + 1);
            assert_true(record_line(&record));
        }
        assert_true(record_is(&record, "factors"));
        check_factors(&record, built.instance, metric, cases);
        assert_true(record_line(&record) && record_is(&record, "end"));
        built_free(&built);
        cases++;
    }
    assert_int_equal(cases, 28);
    record_close(&record);
}

/* Beyond the plan, without a plan, and with a warmup longer than the plan. */
static void test_scheduler_edges(void **unused)
{
    static const struct {
        const char *name, *option;
        KilnProgress at;
        double want;
    } cases[] = {
        { "cosine", "min_factor=0.2", { .step = 25, .total_steps = 20 }, 0.2 },
        { "cosine", "min_factor=0.2", { .step = 20, .total_steps = 20 }, 0.2 },
        { "cosine", "min_factor=0.2", { .step = 1000, .total_steps = -1 }, 1.0 },
        { "cosine", "warmup_steps=50", { .step = 24, .total_steps = 20 }, 0.5 },
        { "cosine", "warmup_steps=20", { .step = 20, .total_steps = 20 }, 0.0 },
        { "cosine",
          "warmup_epochs=0.5",
          { .step = 0, .steps_per_epoch = 8, .total_steps = 80 },
          0.25 },
        { "constant", "warmup_steps=0", { .step = 0 }, 1.0 },
        { "step", "gamma=0.5", { .epoch = 35 }, 0.125 },
        { "step", "warmup_steps=4", { .step = 1 }, 0.5 },
        { "cosine_restarts", "t_0=3", { .epoch = 300000000 }, 1.0 },
        { "linear", "min_factor=0.1", { .step = 99, .total_steps = 20 }, 0.1 },
        { "linear", "min_factor=0.1", { .step = 99, .total_steps = -1 }, 1.0 },
        { "inverse_sqrt", "warmup_steps=4", { .step = 1, .total_steps = -1 }, 0.5 },
        { "inverse_sqrt", "warmup_steps=4", { .step = 3, .total_steps = -1 }, 1.0 },
        { "inverse_sqrt", "warmup_steps=4", { .step = 15, .total_steps = -1 }, 0.5 },
        { "inverse_sqrt", "warmup_steps=0", { .step = 0, .total_steps = -1 }, 1.0 },
        { "inverse_sqrt", "warmup_steps=0", { .step = 3, .total_steps = -1 }, 0.5 },
        { "polynomial", "power=3", { .step = 99, .total_steps = 20 }, 0.0 },
        { "one_cycle", "div_factor=10", { .step = 0, .total_steps = 1 }, 1e-5 },
        { "one_cycle", "div_factor=10", { .step = 99, .total_steps = 20 }, 1e-5 },
        { "wsd", "decay_fraction=0", { .step = 19, .total_steps = 20 }, 1.0 },
        { "wsd", "decay_shape=sqrt", { .step = 95, .total_steps = 100 }, 0.29289321881345254 },
        { "constant", "warmup_shape=cosine", { .step = 0 }, 1.0 },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        char option[64];
        char *const options[] = { option };
        Built built;
        KilnError err = { 0 };

        snprintf(option, sizeof(option), "%s", cases[i].option);
        if (build_words(&built, KILN_KIND_SCHEDULER, cases[i].name, options, 1, &err) < 0)
            fail_msg("%s", err.text);
        double got = kiln_instance_component(built.instance)
                         ->ops.scheduler->factor(built.instance, &cases[i].at);
        if (fabs(got - cases[i].want) > 1e-12)
            fail_msg("case %zu: %g, want %g", i, got, cases[i].want);
        built_free(&built);
    }
}

/* What a schedule says of a run that it does not fit. */
static void test_refused_runs(void **unused)
{
    static const struct {
        const char *name, *option;
        KilnProgress at;
        const char *want; /* NULL: fine */
    } cases[] = {
        { "cosine", "warmup_steps=20", { .total_steps = 21 }, NULL },
        { "cosine", "warmup_steps=20", { .total_steps = -1 }, NULL },
        { "cosine",
          "warmup_steps=20",
          { .total_steps = 20 },
          "warmup_steps: the warmup takes 20 steps and the whole run 20" },
        { "step",
          "warmup_epochs=5",
          { .total_steps = 30, .steps_per_epoch = 10 },
          "warmup_epochs: the warmup takes 50 steps and the whole run 30" },
        { "one_cycle", "pct_start=0.2", { .total_steps = -1 }, "needs a run with an end" },
        { "one_cycle", "pct_start=0.2", { .total_steps = 10 }, NULL },
        { "wsd", "decay_fraction=1", { .total_steps = 10 }, NULL },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        char option[64];
        char *const options[] = { option };
        Built built;
        KilnError err = { 0 };

        snprintf(option, sizeof(option), "%s", cases[i].option);
        if (build_words(&built, KILN_KIND_SCHEDULER, cases[i].name, options, 1, &err) < 0)
            fail_msg("%s", err.text);
        const KilnSchedulerOps *ops = kiln_instance_component(built.instance)->ops.scheduler;
        KilnStatus status = ops->check(built.instance, &cases[i].at, &err);
        if ((status < 0) != (cases[i].want != NULL))
            fail_msg("case %zu: status %d: %s", i, (int)status, err.text);
        if (status < 0 && strstr(err.text, cases[i].want) == NULL)
            fail_msg("case %zu: '%s' is not in: %s", i, cases[i].want, err.text);
        built_free(&built);
    }
}

static void test_refused_options(void **unused)
{
    static const struct {
        const char *name, *first, *second, *part;
    } cases[] = {
        { "cosine", "warmup_steps=5", "warmup_epochs=1",
          "warmup_epochs: 1, and warmup_steps is 5: one of them must be 0" },
        { "step", "step_size=0", NULL, "step_size" },
        { "multistep", "milestones=[3,2]", NULL,
          "milestones: expected increasing numbers, got 2 after 3" },
        { "plateau", "factor=1.0", NULL, "factor: expected a number below 1" },
        { "one_cycle", "three_phase=true", "pct_start=0.6", "pct_start: 0.6" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        char first[64], second[64];
        char *const options[] = { first, second };
        Built built;
        KilnError err = { 0 };

        snprintf(first, sizeof(first), "%s", cases[i].first);
        snprintf(second, sizeof(second), "%s", cases[i].second != NULL ? cases[i].second : "");
        if (build_words(&built, KILN_KIND_SCHEDULER, cases[i].name, options,
                        cases[i].second != NULL ? 2 : 1, &err) >= 0)
            fail_msg("case %zu is not refused", i);
        if (strstr(err.text, cases[i].part) == NULL)
            fail_msg("case %zu: '%s' is not in: %s", i, cases[i].part, err.text);
        built_free(&built);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scheduler_curves),
        cmocka_unit_test(test_scheduler_edges),
        cmocka_unit_test(test_refused_runs),
        cmocka_unit_test(test_refused_options),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
