/* Fronts and crowding, and the sweeper that uses them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "kiln.h"
#include "kiln/search/pareto.h"
#include "registry/instance.h"

extern const KilnComponent kiln_sweeper_nsga2, kiln_sweeper_random;

/* ---- Fronts ---------------------------------------------------------------------------------- */

static void better_in_one_and_worse_in_none(void **unused)
{
    static const double a[] = { 1.0, 2.0 }, b[] = { 1.0, 3.0 }, c[] = { 0.0, 4.0 };

    (void)unused;
    assert_true(kiln_dominates(a, b, 2));
    assert_false(kiln_dominates(b, a, 2));
    assert_false(kiln_dominates(a, c, 2) || kiln_dominates(c, a, 2));
    assert_false(kiln_dominates(a, a, 2));
    assert_true(kiln_dominates(c, b, 1));
}

/* The second front has two equal items. */
static const double losses[] = { 0.0, 4.0, 1.0, 2.0, 4.0, 0.0, 2.0,
                                 3.0, 2.0, 3.0, 5.0, 5.0, 2.0, 1.0 };

static void items_are_ranked_by_fronts(void **unused)
{
    static const size_t want[] = { 1, 1, 1, 2, 2, 3, 1 };
    size_t got[7];

    (void)unused;
    assert_int_equal(kiln_pareto_ranks(losses, 7, 2, got, NULL), KILN_OK);
    assert_memory_equal(got, want, sizeof(want));
    assert_int_equal(kiln_pareto_ranks(losses, 0, 2, got, NULL), KILN_OK);
}

static void the_ends_of_a_front_are_least_crowded(void **unused)
{
    static const size_t ranks[] = { 1, 1, 1, 2, 2, 3, 1 };
    double got[7];

    (void)unused;
    assert_int_equal(kiln_crowding(losses, ranks, 7, 2, got, NULL), KILN_OK);
    assert_true(isinf(got[0]) && isinf(got[2]) && isinf(got[3]) && isinf(got[4]) && isinf(got[5]));
    assert_true(got[1] == (2.0 - 0.0) / 4.0 + (4.0 - 1.0) / 4.0);
    assert_true(got[6] == (4.0 - 1.0) / 4.0 + (2.0 - 0.0) / 4.0);
}

/* ---- The sweeper ----------------------------------------------------------------------------- */

enum { DIMS = 8, MOST = 400 };

typedef struct Sweep {
    KilnInstance sweeper;
    KilnAxis items[DIMS];
    const KilnAxis *axes[DIMS];
    KilnSpace space;
    KilnObjective objectives[2];
    const KilnObjective *listed[2];
    KilnTrial items_of_trials[MOST];
    const KilnTrial *trials[MOST];
    KilnAxisValue points[MOST][DIMS];
    double values[MOST][2];
    KilnHistory history;
} Sweep;

static Sweep *new_sweep(const KilnComponent *component, int64_t *opts)
{
    Sweep *sweep = test_calloc(1, sizeof(*sweep));

    *sweep = (Sweep) { .objectives = { { "f1", KILN_MODE_MIN }, { "f2", KILN_MODE_MAX } } };
    for (size_t i = 0; i < DIMS; i++) {
        sweep->items[i] = (KilnAxis) {
            .key = "x", .kind = KILN_AXIS_FLOAT, .low = 0.0, .high = 1.0, .leader = i
        };
        sweep->axes[i] = &sweep->items[i];
    }
    for (size_t i = 0; i < MOST; i++)
        sweep->trials[i] = &sweep->items_of_trials[i];
    sweep->listed[0] = &sweep->objectives[0];
    sweep->listed[1] = &sweep->objectives[1];
    sweep->sweeper = (KilnInstance) { .component = component, .opts = opts };
    sweep->space = (KilnSpace) { .axes = sweep->axes, .count = DIMS };
    sweep->history = (KilnHistory) { .space = &sweep->space,
                                     .objectives = sweep->listed,
                                     .n_objectives = 2,
                                     .trials = sweep->trials };
    return sweep;
}

/* ZDT1 of Zitzler, Deb and Thiele (2000), the second function negated: more is better. */
static void evaluate(const KilnAxisValue *point, double *ret)
{
    double g = 0.0;

    for (size_t i = 1; i < DIMS; i++)
        g += point[i].number;
    g = 1.0 + 9.0 * g / (DIMS - 1);
    ret[0] = point[0].number;
    ret[1] = -g * (1.0 - sqrt(point[0].number / g));
}

static KilnAdvice ask(Sweep *sweep, KilnAxisValue *point)
{
    KilnSuggestion suggestion = { .point = point, .trial = KILN_NO_TRIAL };

    memset(point, 0, DIMS * sizeof(*point));
    assert_int_equal(sweep->sweeper.component->ops.sweeper->ask(&sweep->sweeper, &sweep->history,
                                                                &suggestion, NULL),
                     KILN_OK);
    return suggestion.advice;
}

static void add(Sweep *sweep, KilnJobStatus status)
{
    const size_t n = sweep->history.count;

    assert_int_equal(ask(sweep, sweep->points[n]), KILN_ADVICE_TRIAL);
    evaluate(sweep->points[n], sweep->values[n]);
    sweep->items_of_trials[n] = (KilnTrial) {
        .job = n,
        .point = sweep->points[n],
        .status = status,
        .values = status == KILN_JOB_OK ? sweep->values[n] : NULL,
        .parent = KILN_NO_TRIAL,
    };
    sweep->history.count++;
}

/* The least of the second loss, over the true front, of trials with the first below each of ten
 * bounds: 0 on the front. */
static double distance_to_front(const Sweep *sweep)
{
    double sum = 0.0;

    for (size_t bound = 1; bound <= 10; bound++) {
        const double most = (double)bound / 10.0;
        double least = (double)INFINITY;

        for (size_t i = 0; i < sweep->history.count; i++)
            if (sweep->values[i][0] <= most)
                least = fmin(least, -sweep->values[i][1]);
        sum += least - (1.0 - sqrt(most));
    }
    return sum / 10.0;
}

static void it_approaches_the_front(void **unused)
{
    int64_t opts[] = { MOST, 20, 1 }, random_opts[] = { MOST, 1 };
    Sweep *sweep = new_sweep(&kiln_sweeper_nsga2, opts);
    Sweep *random = new_sweep(&kiln_sweeper_random, random_opts);

    (void)unused;
    for (size_t i = 0; i < MOST; i++) {
        add(sweep, KILN_JOB_OK);
        add(random, KILN_JOB_OK);
    }
    assert_true(distance_to_front(sweep) < 0.5);
    assert_true(distance_to_front(random) > 1.0);
    test_free(sweep);
    test_free(random);
}

static void the_history_alone_decides(void **unused)
{
    int64_t opts[] = { 30, 5, 1 };
    Sweep *sweep = new_sweep(&kiln_sweeper_nsga2, opts);
    KilnAxisValue first[DIMS], again[DIMS];

    (void)unused;
    for (size_t i = 0; i < 12; i++)
        add(sweep, KILN_JOB_OK);
    ask(sweep, first);
    ask(sweep, again);
    assert_memory_equal(first, again, sizeof(first));
    /* Trials of the same generation have no influence: 10 and 11 could be running. */
    sweep->items_of_trials[10].values = sweep->items_of_trials[11].values = NULL;
    ask(sweep, again);
    assert_memory_equal(first, again, sizeof(first));
    sweep->items_of_trials[4].values = NULL;
    for (size_t i = 12; i < 30; i++)
        add(sweep, i % 4 == 0 ? KILN_JOB_FAILED : KILN_JOB_OK);
    assert_int_equal(ask(sweep, again), KILN_ADVICE_DONE);
    test_free(sweep);
}

/* Choices, whole numbers and a condition; nothing but failures, too. */
static void mixed_axes(void **unused)
{
    static const bool for_first[] = { true, false, false };

    (void)unused;
    for (int fails = 0; fails < 2; fails++) {
        int64_t opts[] = { MOST, 4, 1 };
        Sweep *sweep = new_sweep(&kiln_sweeper_nsga2, opts);

        sweep->items[6] =
            (KilnAxis) { .key = "kind", .kind = KILN_AXIS_CHOICE, .count = 3, .leader = 6 };
        sweep->items[7] = (KilnAxis) { .key = "depth",
                                       .kind = KILN_AXIS_INT,
                                       .low = 1,
                                       .high = 9,
                                       .leader = 7,
                                       .active_for = for_first,
                                       .parent = 6 };
        for (size_t i = 0; i < 60; i++) {
            add(sweep, fails ? KILN_JOB_FAILED : KILN_JOB_OK);
            assert_true(sweep->points[i][6].index < 3);
            assert_true(sweep->points[i][7].number >= 1 && sweep->points[i][7].number <= 9);
            for (size_t k = 0; k < 6; k++)
                assert_true(sweep->points[i][k].number >= 0.0 && sweep->points[i][k].number <= 1.0);
        }
        test_free(sweep);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(better_in_one_and_worse_in_none),
        cmocka_unit_test(items_are_ranked_by_fronts),
        cmocka_unit_test(the_ends_of_a_front_are_least_crowded),
        cmocka_unit_test(it_approaches_the_front),
        cmocka_unit_test(the_history_alone_decides),
        cmocka_unit_test(mixed_axes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
