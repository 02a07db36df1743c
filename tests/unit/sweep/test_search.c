/* Sweepers that learn, and the ranks that they learn from. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kiln/search/history.h"
#include "tests/support/components/built_component.h"

enum { MOST_AXES = 6, MOST_TRIALS = 400 };

/* A history that grows. */
typedef struct Sweep {
    KilnAxis axes[MOST_AXES];
    const KilnAxis *axis_list[MOST_AXES];
    KilnSpace space;
    KilnObjective objective;
    const KilnObjective *objectives[1];
    KilnAxisValue points[MOST_TRIALS][MOST_AXES];
    double values[MOST_TRIALS];
    KilnTrial trials[MOST_TRIALS];
    const KilnTrial *trial_list[MOST_TRIALS];
    KilnHistory history;
} Sweep;

static void sweep_init(Sweep *sweep, const KilnAxis *axes, size_t n)
{
    memset(sweep, 0, sizeof(*sweep));
    for (size_t i = 0; i < n; i++) {
        sweep->axes[i] = axes[i];
        sweep->axis_list[i] = &sweep->axes[i];
    }
    sweep->space = (KilnSpace) { .axes = sweep->axis_list, .count = n };
    sweep->objective = (KilnObjective) { .metric = "loss", .mode = KILN_MODE_MIN };
    sweep->objectives[0] = &sweep->objective;
    sweep->history = (KilnHistory) { .space = &sweep->space,
                                     .objectives = sweep->objectives,
                                     .n_objectives = 1,
                                     .trials = sweep->trial_list };
}

/* Ask for the point of the next trial. */
static KilnAdvice ask(KilnInstance *sweeper, Sweep *sweep, KilnAxisValue *ret)
{
    KilnSuggestion suggestion = { .point = ret, .trial = KILN_NO_TRIAL };
    KilnError err = { 0 };

    memset(ret, 0, MOST_AXES * sizeof(*ret));
    if (kiln_instance_component(sweeper)->ops.sweeper->ask(sweeper, &sweep->history, &suggestion,
                                                           &err) < 0)
        fail_msg("%s", err.text);
    return suggestion.advice;
}

static void add(Sweep *sweep, const KilnAxisValue *point, KilnJobStatus status, double value)
{
    const size_t n = sweep->history.count++;
    const bool has_value = status == KILN_JOB_OK || status == KILN_JOB_STOPPED;

    memcpy(sweep->points[n], point, sizeof(sweep->points[n]));
    sweep->values[n] = value;
    sweep->trials[n] = (KilnTrial) { .job = n,
                                     .point = sweep->points[n],
                                     .status = status,
                                     .values = has_value ? &sweep->values[n] : NULL,
                                     .parent = KILN_NO_TRIAL };
    sweep->trial_list[n] = &sweep->trials[n];
}

typedef double Loss(const KilnAxisValue *point);

/* Ask until the sweeper is done, one trial at a time; returns the least loss. */
static double run(KilnInstance *sweeper, Sweep *sweep, Loss *loss)
{
    KilnAxisValue point[MOST_AXES];
    double least = (double)INFINITY;

    while (ask(sweeper, sweep, point) == KILN_ADVICE_TRIAL) {
        add(sweep, point, KILN_JOB_OK, loss(point));
        least = fmin(least, sweep->values[sweep->history.count - 1]);
    }
    return least;
}

static void build(Built *ret, const char *sweeper, const char *trials, const char *option)
{
    char texts[2][32], *options[2] = { texts[0], texts[1] };
    KilnError err = { 0 };

    snprintf(texts[0], sizeof(texts[0]), "n_trials=%s", trials);
    snprintf(texts[1], sizeof(texts[1]), "%s", option);
    if (build_words(ret, KILN_KIND_SWEEPER, sweeper, options, 2, &err) < 0)
        fail_msg("%s: %s", sweeper, err.text);
}

static bool are_same(const KilnAxisValue *a, const KilnAxisValue *b, size_t n)
{
    return memcmp(a, b, n * sizeof(*a)) == 0;
}

static const char *const learners[] = { "tpe", "cmaes" };

static const KilnAxis numbers[] = {
    { .kind = KILN_AXIS_FLOAT, .low = -5, .high = 10, .leader = 0 },
    { .kind = KILN_AXIS_FLOAT, .low = 1e-5, .high = 1, .log = true, .leader = 1 },
    { .kind = KILN_AXIS_INT, .low = 1, .high = 4, .leader = 2 },
    { .kind = KILN_AXIS_INT, .low = 1, .high = 300, .log = true, .leader = 3 },
    { .kind = KILN_AXIS_RANGE, .count = 5, .leader = 4 },
};

/* Least, 0, at 1, 1e-3, 3, 30 and the second value of the range. */
static double bowl(const KilnAxisValue *point)
{
    const double a = (point[0].number - 1.0) / 15.0, b = (log10(point[1].number) + 3.0) / 5.0;
    const double c = point[2].number - 3.0, d = log10(point[3].number / 30.0);
    const double e = (double)point[4].index - 1.0;

    return a * a + b * b + 0.05 * c * c + 0.1 * d * d + 0.02 * e * e;
}

/* ---- Ranks -------------------------------------------------------------------------------- */

static void trials_are_ranked(void **unused)
{
    static const struct {
        KilnJobStatus status;
        double value;
        int64_t step; /* of the last report */
    } cases[] = {
        { KILN_JOB_FAILED, 0, 0 },        { KILN_JOB_STOPPED, 1, 10 }, { KILN_JOB_OK, 3, 30 },
        { KILN_JOB_OK, (double)NAN, 30 }, { KILN_JOB_RUNNING, 0, 0 },  { KILN_JOB_STOPPED, 2, 20 },
        { KILN_JOB_OK, 2, 30 },           { KILN_JOB_OK, 3, 30 },      { KILN_JOB_STOPPED, 0, 10 },
        { KILN_JOB_TIMEOUT, 0, 0 },       { KILN_JOB_KILLED, 0, 0 },
    };
    static const size_t least[] = { 6, 2, 7, 5, 8, 1, 0, 3, 9 };
    static const size_t most[] = { 2, 7, 6, 5, 1, 8, 0, 3, 9 };
    KilnTrialReport reports[KILN_COUNT(cases)];
    const KilnTrialReport *lists[KILN_COUNT(cases)];
    const KilnAxisValue point[MOST_AXES] = { { 0 } };
    KilnRankedTrial ranks[KILN_COUNT(cases)];
    static Sweep sweep;

    (void)unused;
    sweep_init(&sweep, numbers, 1);
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        add(&sweep, point, cases[i].status, cases[i].value);
        reports[i] = (KilnTrialReport) { .step = cases[i].step, .values = &sweep.values[i] };
        lists[i] = &reports[i];
        sweep.trials[i].reports = &lists[i];
        sweep.trials[i].n_reports = cases[i].step > 0 ? 1 : 0;
    }
    for (int mode = 0; mode < 2; mode++) {
        sweep.objective.mode = mode == 0 ? KILN_MODE_MIN : KILN_MODE_MAX;
        assert_int_equal(kiln_history_rank(&sweep.history, 0, ranks), KILN_COUNT(least));
        for (size_t i = 0; i < KILN_COUNT(least); i++)
            assert_int_equal(ranks[i].trial, (mode == 0 ? least : most)[i]);
    }
    assert_int_equal(ranks[0].status, KILN_JOB_OK);
    assert_true(ranks[0].loss == -3.0);
    assert_int_equal(ranks[3].status, KILN_JOB_STOPPED);
    assert_int_equal(ranks[3].step, 20);
    assert_int_equal(ranks[7].status, KILN_JOB_FAILED); /* without a value */
    assert_true(isinf(ranks[7].loss));
}

/* ---- Axes --------------------------------------------------------------------------------- */

static void shares_have_ends(void **unused)
{
    double low, high;

    (void)unused;
    kiln_axis_share_ends(&numbers[0], (KilnAxisValue) { .number = -2 }, &low, &high);
    assert_true(low == 0.2 && high == 0.2);
    kiln_axis_share_ends(&numbers[2], (KilnAxisValue) { .number = 2 }, &low, &high);
    assert_true(low == 0.25 && high == 0.5);
    kiln_axis_share_ends(&numbers[4], (KilnAxisValue) { .index = 4 }, &low, &high);
    assert_true(low == 0.8 && high == 1.0);
    for (int64_t n = 1; n <= 300; n++) {
        const KilnAxisValue value = { .number = (double)n };

        kiln_axis_share_ends(&numbers[3], value, &low, &high);
        assert_true(low >= 0.0 && low < high && high <= 1.0);
        assert_true(kiln_axis_value(&numbers[3], 0.5 * (low + high)).number == value.number);
    }
}

static void some_axes_do_not_vary(void **unused)
{
    const KilnAxis axes[] = {
        { .kind = KILN_AXIS_CHOICE, .count = 1, .leader = 0 },
        { .kind = KILN_AXIS_CHOICE, .count = 2, .leader = 1 },
        { .kind = KILN_AXIS_CHOICE, .count = 2, .leader = 1 },
        { .kind = KILN_AXIS_INT, .low = 3, .high = 3, .leader = 3 },
        { .kind = KILN_AXIS_FLOAT, .low = 3, .high = 4, .leader = 4 },
    };
    static Sweep sweep;

    (void)unused;
    sweep_init(&sweep, axes, KILN_COUNT(axes));
    for (size_t i = 0; i < KILN_COUNT(axes); i++)
        assert_int_equal(kiln_axis_varies(&sweep.space, i), i == 1 || i == 4);
}

static void check_values(const Sweep *sweep)
{
    for (size_t n = 0; n < sweep->history.count; n++) {
        for (size_t i = 0; i < sweep->space.count; i++) {
            const KilnAxis *axis = sweep->axis_list[i];
            const KilnAxisValue value = sweep->points[n][i];

            if (axis->kind == KILN_AXIS_CHOICE || axis->kind == KILN_AXIS_RANGE) {
                assert_true(value.index < axis->count);
                continue;
            }
            assert_true(value.number >= axis->low && value.number <= axis->high);
            assert_true(axis->kind == KILN_AXIS_FLOAT || value.number == floor(value.number));
        }
    }
}

/* ---- Searching ---------------------------------------------------------------------------- */

static double middle(double values[5])
{
    for (int i = 0; i < 5; i++) {
        int below = 0;

        for (int j = 0; j < 5; j++)
            below += values[j] < values[i] || (values[j] == values[i] && j < i);
        if (below == 2)
            return values[i];
    }
    return (double)NAN;
}

static double median_of(const char *sweeper, const char *trials)
{
    double losses[5];
    char seed[32];
    static Sweep sweep;
    Built built;

    for (int i = 0; i < 5; i++) {
        snprintf(seed, sizeof(seed), "seed=%d", i);
        build(&built, sweeper, trials, seed);
        sweep_init(&sweep, numbers, KILN_COUNT(numbers));
        losses[i] = run(built.instance, &sweep, bowl);
        check_values(&sweep);
        built_free(&built);
    }
    return middle(losses);
}

static void a_bowl_is_searched_better_than_at_random(void **unused)
{
    const double random = median_of("random", "150");

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(learners); i++) {
        const double least = median_of(learners[i], "150");

        if (least > 0.25 * random)
            fail_msg("%s: %g, random %g", learners[i], least, random);
    }
}

static double distance_from_2(const KilnAxisValue *point)
{
    return fabs(point[0].number - 2.0);
}

static void one_axis_is_enough(void **unused)
{
    static Sweep sweep;
    Built built;

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(learners); i++) {
        build(&built, learners[i], "80", "seed=3");
        sweep_init(&sweep, numbers, 1);
        assert_true(run(built.instance, &sweep, distance_from_2) < 0.1);
        assert_int_equal(sweep.history.count, 80);
        built_free(&built);
    }
}

static double nothing(const KilnAxisValue *point)
{
    (void)point;
    return 1.0;
}

static void no_axis_has_points(void **unused)
{
    static Sweep sweep;
    Built built;

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(learners); i++) {
        build(&built, learners[i], "30", "seed=3");
        sweep_init(&sweep, numbers, 0);
        run(built.instance, &sweep, nothing);
        assert_int_equal(sweep.history.count, 30);
        built_free(&built);
    }
}

/* An interrupted sweep: after each trial, another instance, which has not seen the history grow,
 * suggests the same point. Results that change later are noticed. */
static void points_follow_from_the_history(void **unused)
{
    KilnAxisValue point[MOST_AXES], again[MOST_AXES];
    static Sweep sweep;
    Built grown, fresh;

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(learners); i++) {
        build(&grown, learners[i], "60", "seed=5");
        sweep_init(&sweep, numbers, KILN_COUNT(numbers));
        while (ask(grown.instance, &sweep, point) == KILN_ADVICE_TRIAL) {
            build(&fresh, learners[i], "60", "seed=5");
            assert_int_equal(ask(fresh.instance, &sweep, again), KILN_ADVICE_TRIAL);
            assert_true(are_same(point, again, MOST_AXES));
            built_free(&fresh);
            add(&sweep, point, sweep.history.count % 7 == 3 ? KILN_JOB_STOPPED : KILN_JOB_OK,
                bowl(point));
            if (sweep.history.count == 40)
                sweep.values[2] = 1e-6;
        }
        assert_int_equal(sweep.history.count, 60);
        built_free(&grown);
    }
}

static void other_seeds_have_other_points(void **unused)
{
    KilnAxisValue points[2][MOST_AXES];
    static Sweep sweep;
    Built built;

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(learners); i++) {
        for (int j = 0; j < 2; j++) {
            build(&built, learners[i], "30", j == 0 ? "seed=1" : "seed=2");
            sweep_init(&sweep, numbers, KILN_COUNT(numbers));
            ask(built.instance, &sweep, points[j]);
            built_free(&built);
        }
        assert_false(are_same(points[0], points[1], MOST_AXES));
    }
}

static void nothing_is_learned_from_failures(void **unused)
{
    KilnAxisValue point[MOST_AXES];
    static Sweep sweep;
    Built built;

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(learners); i++) {
        build(&built, learners[i], "60", "seed=5");
        sweep_init(&sweep, numbers, KILN_COUNT(numbers));
        while (ask(built.instance, &sweep, point) == KILN_ADVICE_TRIAL)
            add(&sweep, point, sweep.history.count % 2 > 0 ? KILN_JOB_FAILED : KILN_JOB_OK,
                (double)NAN);
        assert_int_equal(sweep.history.count, 60);
        check_values(&sweep);
        built_free(&built);
    }
}

/* Only one in ten has a result. */
static void few_results_are_enough(void **unused)
{
    KilnAxisValue point[MOST_AXES];
    static Sweep sweep;
    Built built;

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(learners); i++) {
        build(&built, learners[i], "200", "seed=5");
        sweep_init(&sweep, numbers, KILN_COUNT(numbers));
        while (ask(built.instance, &sweep, point) == KILN_ADVICE_TRIAL)
            add(&sweep, point, sweep.history.count % 10 > 0 ? KILN_JOB_FAILED : KILN_JOB_OK,
                bowl(point));
        check_values(&sweep);
        built_free(&built);
    }
}

/* ---- Parallel trials ----------------------------------------------------------------------- */

/* Twenty trials have ended; the next ones run at the same time. */
static void running_trials_have_different_points(void **unused)
{
    static const KilnAxis few[] = { { .kind = KILN_AXIS_CHOICE, .count = 6, .leader = 0 },
                                    { .kind = KILN_AXIS_INT, .low = 1, .high = 8, .leader = 1 } };
    KilnAxisValue point[MOST_AXES];
    static Sweep sweep;
    Built built;

    (void)unused;
    build(&built, "tpe", "100", "seed=5");
    sweep_init(&sweep, few, KILN_COUNT(few));
    for (size_t n = 0; n < 28; n++) {
        assert_int_equal(ask(built.instance, &sweep, point), KILN_ADVICE_TRIAL);
        for (size_t i = 0; i < n; i++)
            assert_false(are_same(point, sweep.points[i], 2));
        add(&sweep, point, n < 20 ? KILN_JOB_OK : KILN_JOB_RUNNING,
            (double)point[0].index + point[1].number);
    }
    built_free(&built);
}

static void a_generation_ends_before_the_next_begins(void **unused)
{
    KilnAxisValue point[MOST_AXES];
    static Sweep sweep;
    Built built;

    (void)unused;
    build(&built, "cmaes", "100", "population=6");
    sweep_init(&sweep, numbers, KILN_COUNT(numbers));
    for (size_t n = 0; n < 6; n++) {
        assert_int_equal(ask(built.instance, &sweep, point), KILN_ADVICE_TRIAL);
        add(&sweep, point, KILN_JOB_RUNNING, bowl(point));
    }
    assert_int_equal(ask(built.instance, &sweep, point), KILN_ADVICE_WAIT);
    for (size_t n = 0; n < 6; n++) {
        assert_int_equal(ask(built.instance, &sweep, point), KILN_ADVICE_WAIT);
        sweep.trials[n].status = n == 1 ? KILN_JOB_KILLED : KILN_JOB_OK;
        sweep.trials[n].values = n == 1 ? NULL : &sweep.values[n];
    }
    assert_int_equal(ask(built.instance, &sweep, point), KILN_ADVICE_TRIAL);
    built_free(&built);
}

/* ---- Conditions ----------------------------------------------------------------------------- */

static const bool for_second[] = { false, true, false }, for_others[] = { true, false, true };

/* The second value of the first axis is the best one; it has the second axis. The other values have
 * the third one. The last axis follows the fourth. */
static const KilnAxis conditional[] = {
    { .kind = KILN_AXIS_CHOICE, .count = 3, .leader = 0 },
    { .kind = KILN_AXIS_FLOAT, .low = 0, .high = 1, .leader = 1, .active_for = for_second },
    { .kind = KILN_AXIS_FLOAT, .low = 0, .high = 1, .leader = 2, .active_for = for_others },
    { .kind = KILN_AXIS_CHOICE, .count = 4, .leader = 3 },
    { .kind = KILN_AXIS_CHOICE, .count = 4, .leader = 3 },
};

static double conditional_loss(const KilnAxisValue *point)
{
    const double second = point[1].number - 0.2, third = point[2].number - 0.7;

    return 0.1 * (double)point[3].index +
           (point[0].index == 1 ? second * second : 0.3 + third * third);
}

static void conditions_are_respected(void **unused)
{
    KilnAxisValue point[MOST_AXES], again[MOST_AXES];
    static Sweep sweep, other;
    Built built;

    (void)unused;
    build(&built, "tpe", "80", "seed=4");
    sweep_init(&sweep, conditional, KILN_COUNT(conditional));
    sweep_init(&other, conditional, KILN_COUNT(conditional));
    while (ask(built.instance, &sweep, point) == KILN_ADVICE_TRIAL) {
        /* Inactive values in the history are ignored. */
        assert_int_equal(ask(built.instance, &other, again), KILN_ADVICE_TRIAL);
        for (size_t i = 0; i < KILN_COUNT(conditional); i++)
            if (kiln_axis_is_active(&sweep.space, i, point))
                assert_true(are_same(&point[i], &again[i], 1));
        add(&sweep, point, KILN_JOB_OK, conditional_loss(point));
        again[point[0].index == 1 ? 2 : 1].number = (double)NAN;
        add(&other, again, KILN_JOB_OK, conditional_loss(point));
    }
    size_t best = 0;
    for (size_t i = 1; i < 80; i++)
        best = sweep.values[i] < sweep.values[best] ? i : best;
    assert_int_equal(sweep.points[best][0].index, 1);
    assert_int_equal(sweep.points[best][3].index, 0);
    assert_true(fabs(sweep.points[best][1].number - 0.2) < 0.05);
    built_free(&built);
}

/* CMA-ES has no choices, but a range may have dependents. */
static void an_inactive_axis_says_nothing(void **unused)
{
    const KilnAxis axes[] = {
        { .kind = KILN_AXIS_RANGE, .count = 3, .leader = 0 },
        { .kind = KILN_AXIS_FLOAT, .low = 0, .high = 1, .leader = 1, .active_for = for_second },
        { .kind = KILN_AXIS_FLOAT, .low = 0, .high = 1, .leader = 2 },
    };
    KilnAxisValue point[MOST_AXES], again[MOST_AXES];
    static Sweep sweep, other;
    Built built[2];

    (void)unused;
    sweep_init(&sweep, axes, KILN_COUNT(axes));
    sweep_init(&other, axes, KILN_COUNT(axes));
    for (int i = 0; i < 2; i++)
        build(&built[i], "cmaes", "60", "seed=4");
    while (ask(built[0].instance, &sweep, point) == KILN_ADVICE_TRIAL) {
        ask(built[1].instance, &other, again);
        assert_true(are_same(point, again, KILN_COUNT(axes)));
        add(&sweep, point, KILN_JOB_OK, point[2].number);
        if (point[0].index != 1)
            again[1].number = (double)NAN;
        add(&other, again, KILN_JOB_OK, point[2].number);
    }
    for (int i = 0; i < 2; i++)
        built_free(&built[i]);
}

/* Once a search has converged it restarts elsewhere. */
static void a_converged_search_restarts(void **unused)
{
    static Sweep sweep;
    Built built;
    double farthest = 0.0;

    (void)unused;
    build(&built, "cmaes", "400", "seed=2");
    sweep_init(&sweep, numbers, 1);
    assert_true(run(built.instance, &sweep, distance_from_2) < 1e-2);
    for (size_t i = 200; i < 400; i++)
        farthest = fmax(farthest, sweep.values[i]);
    assert_true(farthest > 1.0);
    built_free(&built);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trials_are_ranked),
        cmocka_unit_test(shares_have_ends),
        cmocka_unit_test(some_axes_do_not_vary),
        cmocka_unit_test(a_bowl_is_searched_better_than_at_random),
        cmocka_unit_test(one_axis_is_enough),
        cmocka_unit_test(no_axis_has_points),
        cmocka_unit_test(points_follow_from_the_history),
        cmocka_unit_test(other_seeds_have_other_points),
        cmocka_unit_test(nothing_is_learned_from_failures),
        cmocka_unit_test(few_results_are_enough),
        cmocka_unit_test(running_trials_have_different_points),
        cmocka_unit_test(a_generation_ends_before_the_next_begins),
        cmocka_unit_test(conditions_are_respected),
        cmocka_unit_test(an_inactive_axis_says_nothing),
        cmocka_unit_test(a_converged_search_restarts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
