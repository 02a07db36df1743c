/* Pruners on histories that are made up: which trials stop, and which go on. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kiln/search/history.h"
#include "tests/support/components/built_component.h"

enum { MOST_TRIALS = 64, MOST_REPORTS = 64 };

/* A history without axes. */
typedef struct Sweep {
    KilnSpace space;
    KilnObjective objective;
    const KilnObjective *objectives[1];
    double values[MOST_TRIALS][MOST_REPORTS];
    KilnTrialReport reports[MOST_TRIALS][MOST_REPORTS];
    const KilnTrialReport *report_list[MOST_TRIALS][MOST_REPORTS];
    KilnTrial trials[MOST_TRIALS];
    const KilnTrial *trial_list[MOST_TRIALS];
    KilnHistory history;
} Sweep;

static void sweep_init(Sweep *sweep, KilnMode mode)
{
    memset(sweep, 0, sizeof(*sweep));
    sweep->objective = (KilnObjective) { .metric = "val/x", .mode = mode };
    sweep->objectives[0] = &sweep->objective;
    sweep->history = (KilnHistory) { .space = &sweep->space,
                                     .objectives = sweep->objectives,
                                     .n_objectives = 1,
                                     .trials = sweep->trial_list };
}

static size_t add_trial(Sweep *sweep)
{
    const size_t n = sweep->history.count++;

    sweep->trials[n] = (KilnTrial) {
        .job = n,
        .status = KILN_JOB_RUNNING,
        .reports = (const KilnTrialReport *const *)sweep->report_list[n],
        .parent = KILN_NO_TRIAL,
    };
    sweep->trial_list[n] = &sweep->trials[n];
    return n;
}

static void report(Sweep *sweep, size_t trial, int64_t epoch, double value)
{
    const size_t i = sweep->trials[trial].n_reports++;

    sweep->values[trial][i] = value;
    sweep->reports[trial][i] = (KilnTrialReport) { .epoch = epoch,
                                                   .step = 10 * epoch,
                                                   .values = &sweep->values[trial][i] };
    sweep->report_list[trial][i] = &sweep->reports[trial][i];
}

/* A trial that has reported these values, after epochs 1, 2, ... */
static size_t add_curve(Sweep *sweep, const double *values, size_t n)
{
    const size_t trial = add_trial(sweep);

    for (size_t i = 0; i < n; i++)
        report(sweep, trial, (int64_t)i + 1, values[i]);
    return trial;
}

static void build(Built *ret, const char *name, char *const *options, size_t n)
{
    KilnError err = { 0 };

    if (build_words(ret, KILN_KIND_PRUNER, name, options, n, &err) < 0)
        fail_msg("%s", err.text);
}

static bool prune(KilnInstance *pruner, Sweep *sweep, size_t trial, char reason[KILN_SWEEP_REASON])
{
    reason[0] = '\0';
    return kiln_instance_component(pruner)->ops.pruner->prune(pruner, &sweep->history, trial,
                                                              reason);
}

static size_t resume(KilnInstance *pruner, const Sweep *sweep)
{
    return kiln_instance_component(pruner)->ops.pruner->resume(pruner, &sweep->history);
}

/* ---- percentile ------------------------------------------------------------------------- */

/* numpy.percentile([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], p) is 0.35 (50), 0.225 (25), 0.475 (75). */
static void test_percentile(void **unused)
{
    static const struct {
        const char *percentile;
        double value;
        bool stops;
    } cases[] = {
        { "50", 0.34, false }, { "50", 0.36, true },  { "25", 0.22, false }, { "25", 0.23, true },
        { "75", 0.47, false }, { "75", 0.48, true },  { "0", 0.1, false },   { "0", 0.11, true },
        { "100", 0.6, false }, { "100", 0.61, true }, { "50", NAN, true },
    };
    static Sweep sweep;
    char reason[KILN_SWEEP_REASON], option[64];

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        Built built;

        snprintf(option, sizeof(option), "percentile=%s", cases[i].percentile);
        build(&built, "percentile", (char *[]) { option }, 1);
        sweep_init(&sweep, KILN_MODE_MIN);
        for (int other = 6; other >= 1; other--)
            add_curve(&sweep, (double[]) { other / 10.0 }, 1);
        const size_t trial = add_curve(&sweep, &cases[i].value, 1);
        if (prune(built.instance, &sweep, trial, reason) != cases[i].stops)
            fail_msg("percentile %s, value %g", cases[i].percentile, cases[i].value);
        built_free(&built);
    }
}

static void test_percentile_waits(void **unused)
{
    static Sweep sweep;
    char reason[KILN_SWEEP_REASON];
    Built built;

    (void)unused;
    build(&built, "percentile",
          (char *[]) { "startup_trials=3", "warmup_epochs=2", "interval_epochs=2" }, 3);
    sweep_init(&sweep, KILN_MODE_MAX);
    for (int other = 0; other < 3; other++)
        add_curve(&sweep, (double[]) { 0.5, 0.6, 0.7, 0.8, 0.9 }, 5);
    const size_t trial = add_trial(&sweep);
    for (int64_t epoch = 1; epoch <= 5; epoch++) {
        report(&sweep, trial, epoch, 0.1);
        assert_int_equal(prune(built.instance, &sweep, trial, reason), epoch == 3 || epoch == 5);
    }
    assert_string_equal(reason, "after epoch 5: val/x 0.1, while the best 50 % of 3 others have "
                                "0.9 or better");
    /* Two others have got so far. */
    sweep.trials[0].n_reports = 2;
    sweep.trials[trial].n_reports = 3;
    assert_false(prune(built.instance, &sweep, trial, reason));
    /* What counts is the best value so far, not the last. */
    sweep.trials[0].n_reports = 5;
    sweep.values[trial][0] = 0.75;
    assert_false(prune(built.instance, &sweep, trial, reason));
    built_free(&built);
}

/* ---- patient -------------------------------------------------------------------------------- */

static void test_patient(void **unused)
{
    static Sweep sweep;
    char reason[KILN_SWEEP_REASON];
    Built built;

    (void)unused;
    build(&built, "patient", (char *[]) { "patience=1", "min_delta=0.05" }, 2);
    sweep_init(&sweep, KILN_MODE_MIN);
    const size_t trial = add_trial(&sweep);
    /* 0.47 is not better than 0.5 by 0.05. */
    static const double values[] = { 0.6, 0.5, 0.55, 0.47, 0.3, 0.4, 0.35 };
    static const bool stops[] = { false, false, false, true, false, false, true };
    for (size_t i = 0; i < KILN_COUNT(values); i++) {
        report(&sweep, trial, (int64_t)i + 1, values[i]);
        if (prune(built.instance, &sweep, trial, reason) != stops[i])
            fail_msg("epoch %zu", i + 1);
    }
    assert_int_equal(resume(built.instance, &sweep), KILN_NO_TRIAL);
    built_free(&built);
}

/* ---- asha ------------------------------------------------------------------------------------ */

/* Train a trial up to an epoch; true: it was stopped before. Its loss is `loss` at each epoch. */
static bool train(KilnInstance *pruner, Sweep *sweep, size_t trial, int64_t epochs, double loss)
{
    char reason[KILN_SWEEP_REASON];
    KilnTrial *of = &sweep->trials[trial];
    int64_t epoch = of->n_reports > 0 ? of->reports[of->n_reports - 1]->epoch : 0;

    of->status = KILN_JOB_RUNNING;
    while (epoch < epochs) {
        report(sweep, trial, ++epoch, loss);
        if (epoch < epochs && prune(pruner, sweep, trial, reason)) {
            of->status = KILN_JOB_STOPPED;
            return true;
        }
    }
    of->status = KILN_JOB_OK;
    return false;
}

static int64_t epochs_of(const Sweep *sweep, size_t trial)
{
    return (int64_t)sweep->trials[trial].n_reports;
}

/* 27 trials of 27 epochs, losses in any order: 27, 9, 3 and 1 of them reach 1, 3, 9 and 27, and the
 * best at each rung are always among them. */
static void test_asha(void **unused)
{
    static Sweep sweep;
    Built built;
    int64_t reached[4] = { 0 };

    (void)unused;
    build(&built, "asha", (char *[]) { NULL }, 0);
    sweep_init(&sweep, KILN_MODE_MIN);
    for (size_t i = 0; i < 27; i++) {
        size_t next;

        while ((next = resume(built.instance, &sweep)) != KILN_NO_TRIAL)
            train(built.instance, &sweep, next, 27, sweep.values[next][0]);
        train(built.instance, &sweep, add_trial(&sweep), 27, (double)(i * 10 % 27));
    }
    sweep.history.complete = true;
    for (size_t next; (next = resume(built.instance, &sweep)) != KILN_NO_TRIAL;)
        train(built.instance, &sweep, next, 27, sweep.values[next][0]);
    for (size_t i = 0; i < 27; i++)
        for (int rung = 0; rung < 4; rung++)
            reached[rung] += epochs_of(&sweep, i) >= (int64_t[]) { 1, 3, 9, 27 }[rung];
    assert_int_equal(reached[0], 27);
    assert_in_range(reached[1], 9, 14); /* some went on before better ones came */
    assert_in_range(reached[2], 3, 6);
    assert_in_range(reached[3], 1, 2);
    for (size_t i = 0; i < 27; i++)
        if (sweep.values[i][0] < 1.0)
            assert_int_equal(epochs_of(&sweep, i), 27);
        else if (sweep.values[i][0] < 9.0)
            assert_true(epochs_of(&sweep, i) >= 3);
    built_free(&built);
}

/* Reports after every second epoch: a rung is reached by the first report behind it. */
static void test_asha_gaps(void **unused)
{
    static Sweep sweep;
    char reason[KILN_SWEEP_REASON];
    Built built;

    (void)unused;
    build(&built, "asha", (char *[]) { "min_epochs=3", "reduction_factor=2" }, 2);
    sweep_init(&sweep, KILN_MODE_MIN);
    for (int i = 0; i < 2; i++) {
        const size_t trial = add_trial(&sweep);

        report(&sweep, trial, 2, 0.5 - 0.1 * i);
        assert_false(prune(built.instance, &sweep, trial, reason));
        report(&sweep, trial, 4, 0.5 - 0.1 * i);
        assert_int_equal(prune(built.instance, &sweep, trial, reason), i == 0);
    }
    assert_string_equal(reason, "");
    built_free(&built);
}

/* A trial that fails, or has no value, never goes on; when no trial follows, the best one does. */
static void test_asha_failures(void **unused)
{
    static Sweep sweep;
    Built built;

    (void)unused;
    build(&built, "asha", (char *[]) { NULL }, 0);
    sweep_init(&sweep, KILN_MODE_MAX);
    assert_true(train(built.instance, &sweep, add_trial(&sweep), 9, NAN));
    assert_true(train(built.instance, &sweep, add_trial(&sweep), 9, 0.2));
    assert_int_equal(resume(built.instance, &sweep), KILN_NO_TRIAL);
    sweep.history.complete = true;
    assert_int_equal(resume(built.instance, &sweep), 1);
    assert_false(train(built.instance, &sweep, 1, 9, 0.2));
    assert_int_equal(resume(built.instance, &sweep), KILN_NO_TRIAL);
    built_free(&built);
}

/* Three brackets that begin with 1, 3 and 9 epochs have shares of 9, 5 (4.5 rounded up) and 3. */
static void test_hyperband(void **unused)
{
    static Sweep sweep;
    Built built;
    size_t first[3] = { 0 };

    (void)unused;
    build(&built, "asha", (char *[]) { "brackets=3" }, 1);
    sweep_init(&sweep, KILN_MODE_MIN);
    for (size_t i = 0; i < 51; i++) {
        const size_t trial = add_trial(&sweep);

        /* Each is worse than those before, so it stops at the first rung of its bracket. */
        train(built.instance, &sweep, trial, 60, (double)i);
        first[0] += epochs_of(&sweep, trial) == 1;
        first[1] += epochs_of(&sweep, trial) == 3;
        first[2] += epochs_of(&sweep, trial) == 9;
    }
    assert_in_range(first[0], 25, 29);
    assert_in_range(first[1], 13, 17);
    assert_in_range(first[2], 7, 11);
    assert_int_equal(first[0] + first[1] + first[2], 51);
    built_free(&built);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_percentile), cmocka_unit_test(test_percentile_waits),
        cmocka_unit_test(test_patient),    cmocka_unit_test(test_asha),
        cmocka_unit_test(test_asha_gaps),  cmocka_unit_test(test_asha_failures),
        cmocka_unit_test(test_hyperband),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
