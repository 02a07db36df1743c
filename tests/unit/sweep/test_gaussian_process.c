/* Gaussian processes, what they are fitted with, and the sweeper that uses them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "kiln.h"
#include "kiln/search/gaussian_process.h"
#include "kiln/search/minimize.h"
#include "kiln/search/normalize.h"
#include "registry/instance.h"

extern const KilnComponent kiln_sweeper_gp;

static void check_near(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance * fmax(fabs(want), 1.0)))
        fail_msg("%.17g, want %.17g", got, want);
}

/* ---- The process --------------------------------------------------------------------------- */

/* References were recorded with scikit-learn 1.9:
 *
 *   x = [[0.1, 0.2], [0.4, 0.9], [0.8, 0.3], [0.6, 0.6]]; y = [1.0, -0.5, 0.25, -1.25]
 *   gp = GaussianProcessRegressor(ConstantKernel(1.5) * Matern([0.5, 2.0], nu=2.5), alpha=0.01,
 *                                 optimizer=None).fit(x, y)
 *   mean, deviation = gp.predict([[0.1, 0.2], [0.5, 0.5], [1.0, 0.0]], return_std=True)
 *   gp.log_marginal_likelihood_value_
 */
static const double points[] = { 0.1, 0.2, 0.4, 0.9, 0.8, 0.3, 0.6, 0.6 };
static const double values[] = { 1.0, -0.5, 0.25, -1.25 };
static const KilnGpSamples samples = { .count = 4, .points = points, .values = values };
static const bool ordered[] = { false, false };

static const double *reference_logs(void)
{
    static double logs[KILN_GP_LOGS(2)];

    logs[0] = -2.0 * log(0.5);
    logs[1] = -2.0 * log(2.0);
    logs[2] = log(1.5);
    logs[3] = log(0.01);
    return logs;
}

static void predictions_are_those_of_scikit_learn(void **unused)
{
    static const double at[3][2] = { { 0.1, 0.2 }, { 0.5, 0.5 }, { 1.0, 0.0 } };
    static const double means[] = { 0.9885833217308151, -1.0245823587647864, 1.2607315013760214 };
    static const double variances[] = { 0.00985571928231943, 0.040038737269444846,
                                        0.24952363636249797 };
    KilnGaussianProcess *gp = kiln_gp_new(2, ordered);

    (void)unused;
    assert_non_null(gp);
    check_near(kiln_gp_likelihood(gp, &samples, reference_logs(), NULL), -8.988088033030797, 1e-12);
    assert_int_equal(kiln_gp_condition(gp, &samples, reference_logs(), NULL), KILN_OK);
    for (size_t i = 0; i < KILN_COUNT(at); i++) {
        const KilnGpPrediction got = kiln_gp_predict(gp, at[i], NULL, NULL);

        check_near(got.mean, means[i], 1e-12);
        check_near(got.variance, variances[i], 1e-12);
    }
    kiln_gp_free(gp);
}

static void gradients_are_finite_differences(void **unused)
{
    static const bool second_unordered[] = { false, true };
    const double step = 1e-5, at[] = { 0.45, 0.6 };
    double logs[KILN_GP_LOGS(2)], gradient[KILN_GP_LOGS(2)], mean[2], variance[2];
    KilnGaussianProcess *gp = kiln_gp_new(2, second_unordered);

    (void)unused;
    memcpy(logs, reference_logs(), sizeof(logs));
    assert_true(isfinite(kiln_gp_posterior(gp, &samples, logs, gradient)));
    for (size_t i = 0; i < KILN_COUNT(logs); i++) {
        const double before = logs[i];

        logs[i] = before + step;
        const double above = kiln_gp_posterior(gp, &samples, logs, NULL);
        logs[i] = before - step;
        const double below = kiln_gp_posterior(gp, &samples, logs, NULL);
        logs[i] = before;
        check_near(gradient[i], (above - below) / (2.0 * step), 1e-7);
    }
    assert_int_equal(kiln_gp_condition(gp, &samples, logs, NULL), KILN_OK);
    kiln_gp_predict(gp, at, mean, variance);
    const KilnGpPrediction above = kiln_gp_predict(gp, (double[]) { at[0] + step, at[1] }, NULL,
                                                   NULL);
    const KilnGpPrediction below = kiln_gp_predict(gp, (double[]) { at[0] - step, at[1] }, NULL,
                                                   NULL);
    check_near(mean[0], (above.mean - below.mean) / (2.0 * step), 1e-7);
    check_near(variance[0], (above.variance - below.variance) / (2.0 * step), 1e-7);
    assert_true(mean[1] == 0.0 && variance[1] == 0.0);
    kiln_gp_free(gp);
}

/* Where two unordered values differ, it does not matter by how much. */
static void unordered_coordinates_have_no_distance(void **unused)
{
    static const bool unordered[] = { false, true };
    KilnGaussianProcess *gp = kiln_gp_new(2, unordered);

    (void)unused;
    assert_int_equal(kiln_gp_condition(gp, &samples, reference_logs(), NULL), KILN_OK);
    const double a = kiln_gp_predict(gp, (double[]) { 0.5, 0.1 }, NULL, NULL).mean;
    assert_true(kiln_gp_predict(gp, (double[]) { 0.5, 0.7 }, NULL, NULL).mean == a);
    assert_true(kiln_gp_predict(gp, (double[]) { 0.5, 0.9 }, NULL, NULL).mean < a);
    kiln_gp_free(gp);
}

static void an_assumed_point_leaves_the_mean(void **unused)
{
    const double more[] = { 0.1, 0.2, 0.4, 0.9, 0.8, 0.3, 0.6, 0.6, 0.9, 0.1 };
    const double at[] = { 0.95, 0.05 };
    const KilnGpSamples assuming = { .count = 4, .assumed = 1, .points = more, .values = values };
    KilnGaussianProcess *gp = kiln_gp_new(2, ordered);

    (void)unused;
    assert_int_equal(kiln_gp_condition(gp, &samples, reference_logs(), NULL), KILN_OK);
    const KilnGpPrediction before = kiln_gp_predict(gp, at, NULL, NULL);
    const double there = kiln_gp_predict(gp, more + 8, NULL, NULL).mean;
    assert_int_equal(kiln_gp_condition(gp, &assuming, reference_logs(), NULL), KILN_OK);
    const KilnGpPrediction got = kiln_gp_predict(gp, at, NULL, NULL);
    assert_true(got.mean == before.mean);
    assert_true(got.variance < 0.5 * before.variance);
    check_near(kiln_gp_predict(gp, more + 8, NULL, NULL).mean, there, 1e-12);
    check_near(kiln_gp_predict(gp, more + 8, NULL, NULL).variance, 0.0, 1e-9);
    kiln_gp_free(gp);
}

/* Equal points, next to no noise. */
static void a_singular_covariance_is_no_error(void **unused)
{
    static const double equal[] = { 0.5, 0.5, 0.5, 0.5, 0.5, 0.5 }, one[] = { 1.0, 1.0, 1.0 };
    static const double logs[] = { 0.0, 0.0, 0.0, -60.0 };
    const KilnGpSamples same = { .count = 3, .points = equal, .values = one };
    KilnGaussianProcess *gp = kiln_gp_new(2, ordered);

    (void)unused;
    assert_int_equal(kiln_gp_condition(gp, &same, logs, NULL), KILN_OK);
    check_near(kiln_gp_predict(gp, equal, NULL, NULL).mean, 1.0, 1e-6);
    kiln_gp_free(gp);
}

/* Only the first coordinate matters, and without noise. */
static void the_fit_finds_what_matters(void **unused)
{
    double x[60], y[30], logs[KILN_GP_LOGS(2)];
    const KilnGpSamples sines = { .count = 30, .points = x, .values = y };
    KilnGaussianProcess *gp = kiln_gp_new(2, ordered);
    KilnRng rng;

    (void)unused;
    kiln_rng_init(&rng, 1, KILN_RNG_USER, 0, 0);
    for (size_t i = 0; i < 30; i++) {
        x[2 * i] = (double)kiln_rng_uniform(&rng);
        x[2 * i + 1] = (double)kiln_rng_uniform(&rng);
        y[i] = sin(8.0 * x[2 * i]);
    }
    assert_int_equal(kiln_gp_fit(gp, &sines, &rng, logs, NULL), KILN_OK);
    assert_true(logs[0] > logs[1] + 3.0);
    assert_true(logs[3] < log(1e-3));
    assert_int_equal(kiln_gp_condition(gp, &sines, logs, NULL), KILN_OK);
    check_near(kiln_gp_predict(gp, (double[]) { 0.5, 0.5 }, NULL, NULL).mean, sin(4.0), 0.01);
    kiln_gp_free(gp);
}

/* ---- Its tools --------------------------------------------------------------------------------
 */

/* References by mpmath with 60 digits: log(npdf(z) + z * ncdf(z)), ncdf(z) / (that). */
static void improvements_do_not_round_to_nothing(void **unused)
{
    static const double cases[][3] = {
        { 2.0, 0.69738354578822831, 0.48655931878528387 },
        { 0.0, -0.91893853320467274, 1.2533141373155003 },
        { -0.5, -1.6205162643873199, 1.5598731483480797 },
        { -1.5, -3.5299359208057099, 2.2795806941564462 },
        { -5.0, -16.74430116266099, 5.3618162412880885 },
        { -29.0, -428.1570826442731, 29.068721528704251 },
        { -31.0, -488.29002339783721, 31.064316178100961 },
        { -1000.0, -500014.73445209116, 1000.001999994 },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        double slope;

        check_near(kiln_log_improvement(cases[i][0], &slope), cases[i][1], 1e-9);
        check_near(slope, cases[i][2], 1e-8);
    }
}

static void check_normalized(const double *list, size_t n, double *ret)
{
    double sum = 0.0, squares = 0.0;

    memcpy(ret, list, n * sizeof(*ret));
    assert_int_equal(kiln_normalize(ret, n, NULL), KILN_OK);
    for (size_t i = 0; i < n; i++) {
        sum += ret[i];
        squares += ret[i] * ret[i];
        for (size_t k = 0; k < n; k++)
            assert_true((list[i] < list[k]) == (ret[i] < ret[k]));
    }
    check_near(sum, 0.0, 1e-9);
    check_near(squares, (double)n, 1e-9);
}

static void a_huge_loss_does_not_hide_the_others(void **unused)
{
    static const double diverged[] = { 0.1, 0.2, 0.15, 0.3, 0.12, 0.17, 0.25, 1e30 };
    static const double tail[] = { 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0 };
    static const double level[] = { 7.0, 7.0, 7.0 };
    double got[8];

    (void)unused;
    check_normalized(diverged, 8, got);
    assert_true(got[3] - got[0] > 0.8);
    check_normalized(tail, 7, got);
    assert_true(got[6] - got[5] < 20.0 * (got[1] - got[0])); /* 32 times as far before */
    memcpy(got, level, sizeof(level));
    assert_int_equal(kiln_normalize(got, 3, NULL), KILN_OK);
    assert_true(got[0] == 0.0 && got[2] == 0.0);
    assert_int_equal(kiln_normalize(got, 0, NULL), KILN_OK);
}

static double rosenbrock(void *ctx, const double *x, double *ret_gradient)
{
    const double bend = x[1] - x[0] * x[0];

    ++*(size_t *)ctx;
    ret_gradient[0] = -400.0 * x[0] * bend - 2.0 * (1.0 - x[0]);
    ret_gradient[1] = 200.0 * bend;
    return 100.0 * bend * bend + (1.0 - x[0]) * (1.0 - x[0]);
}

static void minima_lie_within_the_bounds(void **unused)
{
    double low[] = { -2.0, -2.0 }, high[] = { 2.0, 2.0 }, x[] = { -1.2, 1.0 }, value;
    size_t calls = 0;
    const KilnSmoothFunction function = {
        .n = 2, .low = low, .high = high, .value = rosenbrock, .ctx = &calls
    };

    (void)unused;
    assert_int_equal(kiln_minimize(&function, 200, x, &value, NULL), KILN_OK);
    check_near(x[0], 1.0, 1e-3);
    check_near(x[1], 1.0, 1e-3);
    assert_true(calls < 100);
    /* The best x for the largest y that is allowed. */
    high[1] = 0.25;
    x[0] = x[1] = 0.0;
    assert_int_equal(kiln_minimize(&function, 200, x, &value, NULL), KILN_OK);
    assert_true(x[1] == 0.25);
    check_near(x[0], 0.5025, 0.005);
    /* A variable that is fixed, and few calls. */
    low[0] = high[0] = x[0] = 0.0;
    calls = 0;
    assert_int_equal(kiln_minimize(&function, 3, x, &value, NULL), KILN_OK);
    assert_true(x[0] == 0.0 && calls <= 3);
}

/* ---- The sweeper ----------------------------------------------------------------------------- */

enum { MOST = 420 };

typedef struct Sweep {
    int64_t opts[3]; /* n_trials, startup_trials, seed, as in gp.c */
    KilnInstance sweeper;
    KilnAxis items[3];
    const KilnAxis *axes[3];
    KilnSpace space;
    KilnObjective objective;
    const KilnObjective *objectives[1];
    KilnTrial items_of_trials[MOST];
    const KilnTrial *trials[MOST];
    KilnAxisValue points[MOST][3];
    double values[MOST];
    KilnHistory history;
} Sweep;

static Sweep *new_sweep(size_t n_axes)
{
    static const bool for_first[] = { true, false, false };
    Sweep *sweep = test_calloc(1, sizeof(*sweep));

    *sweep = (Sweep) {
        .opts = { MOST, 10, 1 },
        .items = { { .key = "kind", .kind = KILN_AXIS_CHOICE, .count = 3 },
                   { .key = "rate",
                     .kind = KILN_AXIS_FLOAT,
                     .low = 1e-4,
                     .high = 1.0,
                     .log = true,
                     .leader = 1 },
                   { .key = "depth",
                     .kind = KILN_AXIS_INT,
                     .low = 1,
                     .high = 100,
                     .leader = 2,
                     .active_for = for_first } },
        .objective = { .metric = "val/loss", .mode = KILN_MODE_MIN },
    };
    for (size_t i = 0; i < 3; i++)
        sweep->axes[i] = &sweep->items[i];
    for (size_t i = 0; i < MOST; i++)
        sweep->trials[i] = &sweep->items_of_trials[i];
    sweep->sweeper = (KilnInstance) { .component = &kiln_sweeper_gp, .opts = sweep->opts };
    sweep->space = (KilnSpace) { .axes = sweep->axes, .count = n_axes };
    sweep->objectives[0] = &sweep->objective;
    sweep->history = (KilnHistory) { .space = &sweep->space,
                                     .objectives = sweep->objectives,
                                     .n_objectives = 1,
                                     .trials = sweep->trials };
    return sweep;
}

static KilnAdvice ask(Sweep *sweep, KilnAxisValue *point)
{
    KilnSuggestion suggestion = { .point = point, .trial = KILN_NO_TRIAL };
    KilnError err = { 0 };

    memset(point, 0, 3 * sizeof(*point));
    if (kiln_sweeper_gp.ops.sweeper->ask(&sweep->sweeper, &sweep->history, &suggestion, &err) < 0)
        fail_msg("%s", err.text);
    return suggestion.advice;
}

/* Add what is suggested; it ends at once unless it runs. */
static KilnAxisValue *add(Sweep *sweep, KilnJobStatus status, double (*loss)(const KilnAxisValue *))
{
    const size_t n = sweep->history.count;
    KilnAxisValue *point = sweep->points[n];

    assert_int_equal(ask(sweep, point), KILN_ADVICE_TRIAL);
    sweep->values[n] = loss(point);
    sweep->items_of_trials[n] = (KilnTrial) {
        .job = n,
        .point = point,
        .status = status,
        .values = status == KILN_JOB_OK ? &sweep->values[n] : NULL,
        .parent = KILN_NO_TRIAL,
    };
    sweep->history.count++;
    return point;
}

/* The best is kind 0, rate 0.01, depth 70. */
static double loss_of(const KilnAxisValue *point)
{
    const double rate = log10(point[1].number) + 2.0, depth = (point[2].number - 70.0) / 30.0;

    return rate * rate + (point[0].index == 0 ? depth * depth : 0.3 + 0.1 * (double)point[0].index);
}

static double rate_alone(const KilnAxisValue *point)
{
    return fabs(log10(point[1].number) + 2.0);
}

static void it_finds_the_best_point(void **unused)
{
    Sweep *sweep = new_sweep(3);
    double best = (double)INFINITY;

    (void)unused;
    for (size_t i = 0; i < 45; i++)
        best = fmin(best, loss_of(add(sweep, KILN_JOB_OK, loss_of)));
    assert_true(best < 0.01);
    test_free(sweep);
}

/* The first ten: each tenth of the rates has one. */
static void the_first_points_cover_the_space(void **unused)
{
    Sweep *sweep = new_sweep(2);
    unsigned tenths = 0;

    (void)unused;
    for (size_t i = 0; i < 10; i++)
        tenths |= 1u << (int)(10.0 * kiln_axis_share(sweep->axes[1],
                                                     add(sweep, KILN_JOB_OK, rate_alone)[1]));
    assert_int_equal(tenths, 1023);
    test_free(sweep);
}

static void the_history_alone_decides(void **unused)
{
    Sweep *a = new_sweep(3), *b = new_sweep(3);
    KilnAxisValue first[3], again[3];

    (void)unused;
    b->opts[2] = 2;
    for (size_t i = 0; i < 14; i++) {
        add(a, KILN_JOB_OK, loss_of);
        add(b, KILN_JOB_OK, loss_of);
    }
    assert_true(a->points[3][1].number != b->points[3][1].number);
    ask(a, first);
    ask(b, again); /* another history in between */
    ask(a, again);
    assert_memory_equal(first, again, sizeof(first));
    a->opts[0] = 14;
    assert_int_equal(ask(a, again), KILN_ADVICE_DONE);
    test_free(a);
    test_free(b);
}

static void running_trials_give_different_points(void **unused)
{
    Sweep *sweep = new_sweep(2);

    (void)unused;
    for (size_t i = 0; i < 12; i++)
        add(sweep, KILN_JOB_OK, rate_alone);
    for (size_t i = 0; i < 6; i++)
        add(sweep, KILN_JOB_RUNNING, rate_alone);
    for (size_t i = 12; i < 18; i++)
        for (size_t k = 12; k < i; k++)
            assert_true(sweep->points[i][0].index != sweep->points[k][0].index ||
                        fabs(log(sweep->points[i][1].number / sweep->points[k][1].number)) > 1e-3);
    test_free(sweep);
}

/* All failed, none has ended, all have the same value, or the value of a maximum. */
static double level(const KilnAxisValue *point)
{
    (void)point;
    return 1.0;
}

static void odd_histories_are_no_error(void **unused)
{
    static const KilnJobStatus statuses[] = { KILN_JOB_FAILED, KILN_JOB_RUNNING, KILN_JOB_OK };

    (void)unused;
    for (size_t s = 0; s < KILN_COUNT(statuses); s++) {
        Sweep *sweep = new_sweep(3);

        for (size_t i = 0; i < 15; i++) {
            const KilnAxisValue *point = add(sweep, statuses[s], level);

            assert_true(point[1].number >= 1e-4 && point[1].number <= 1.0);
        }
        test_free(sweep);
    }
}

/* Few values: points repeat. */
static void a_single_axis_of_choices(void **unused)
{
    Sweep *sweep = new_sweep(1);
    size_t counts[3] = { 0 };

    (void)unused;
    for (size_t i = 0; i < 20; i++)
        counts[add(sweep, KILN_JOB_OK, level)[0].index]++;
    assert_true(counts[0] > 0 && counts[1] > 0 && counts[2] > 0);
    test_free(sweep);
}

/* More than the process takes: it still knows the best ones. */
static void a_long_history(void **unused)
{
    Sweep *sweep = new_sweep(2);

    (void)unused;
    sweep->opts[1] = MOST - 1;
    for (size_t i = 0; i < MOST - 1; i++)
        add(sweep, i % 7 == 0 ? KILN_JOB_FAILED : KILN_JOB_OK, rate_alone);
    assert_true(rate_alone(add(sweep, KILN_JOB_OK, rate_alone)) < 0.1);
    test_free(sweep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(predictions_are_those_of_scikit_learn),
        cmocka_unit_test(gradients_are_finite_differences),
        cmocka_unit_test(unordered_coordinates_have_no_distance),
        cmocka_unit_test(an_assumed_point_leaves_the_mean),
        cmocka_unit_test(a_singular_covariance_is_no_error),
        cmocka_unit_test(the_fit_finds_what_matters),
        cmocka_unit_test(improvements_do_not_round_to_nothing),
        cmocka_unit_test(a_huge_loss_does_not_hide_the_others),
        cmocka_unit_test(minima_lie_within_the_bounds),
        cmocka_unit_test(it_finds_the_best_point),
        cmocka_unit_test(the_first_points_cover_the_space),
        cmocka_unit_test(the_history_alone_decides),
        cmocka_unit_test(running_trials_give_different_points),
        cmocka_unit_test(odd_histories_are_no_error),
        cmocka_unit_test(a_single_axis_of_choices),
        cmocka_unit_test(a_long_history),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
