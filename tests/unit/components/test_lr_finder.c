/* The learning rate finder: Lightning's rates (tests/record/callbacks.py), smoothing, when it
 * stops, what it suggests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The component with what it keeps to itself, beside the one that the library has. */
#define kiln_callback_lr_finder test_lr_finder
#include "callbacks/lr_finder.c"

#include "tests/data/lr_finder.h"

static void assert_near(double got, double want, double tolerance, const char *what, int64_t i)
{
    if (isnan(got) && isnan(want))
        return;
    if (!(fabs(got - want) <= tolerance * fmax(1.0, fabs(want))))
        fail_msg("%s, %lld: %.17g instead of %.17g", what, (long long)i, got, want);
}

/* Feed a curve of losses; how many steps it took. */
static int64_t feed(State *state, const double *losses)
{
    int64_t i = 0;
    KilnError err = { 0 };

    assert_int_equal(make_room(state, state->opts->num_training_steps, &err), KILN_OK);
    while (i < state->opts->num_training_steps && take(state, i, losses[i]))
        i++;
    suggest(state);
    return i;
}

static void forget(State *state)
{
    free(state->lr);
    free(state->loss);
    free(state->change);
}

static void test_rates(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < KILN_COUNT(finder_cases); k++) {
        const Opts opts = {
            .min_lr = finder_cases[k].low,
            .max_lr = finder_cases[k].high,
            .num_training_steps = finder_cases[k].steps,
            .mode = finder_cases[k].mode,
        };
        State state = { .opts = &opts };

        (void)feed(&state, finder_cases[k].raw);
        assert_int_equal(state.n, opts.num_training_steps);
        for (int64_t i = 0; i < state.n; i++)
            assert_near(state.lr[i], finder_cases[k].rates[i], 1e-12, finder_cases[k].name, i);
        forget(&state);
    }
}

/* The curve begins at the loss, not at a part of it. */
static void test_smoothing(void **unused)
{
    const Opts opts = { .min_lr = 1e-7, .max_lr = 10.0, .num_training_steps = 20 };
    double losses[20];
    State state = { .opts = &opts };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(losses); i++)
        losses[i] = 2.3;
    assert_int_equal(feed(&state, losses), 20);
    for (int64_t i = 0; i < 20; i++)
        assert_near(state.loss[i], 2.3, 1e-12, "constant", i);
    forget(&state);
    state = (State) { .opts = &opts };
    for (size_t i = 0; i < KILN_COUNT(losses); i++)
        losses[i] = 1.0 + (double)i;
    (void)feed(&state, losses);
    assert_near(state.loss[0], 1.0, 1e-12, "rising", 0);
    assert_near(state.loss[1], (0.9 * 1.0 + 2.0) / 1.9, 1e-12, "rising", 1);
    forget(&state);
}

/* Falls from `falls` on and rises from `rises` on, both decimal logarithms of the rate. */
static void curve(double *losses, int64_t n, double low, double high, double falls, double rises)
{
    for (int64_t i = 0; i < n; i++) {
        const double x = log10(low) + (double)(i + 1) / (double)n * log10(high / low);

        losses[i] = 2.3 - 2.0 * fmin(fmax(x - falls, 0.0) / (rises - falls), 1.0) +
                    3.0 * fmax(x - rises, 0.0) + 0.01 * sin(7.0 * (double)i);
    }
}

static void test_suggestion(void **unused)
{
    static const struct {
        double falls, rises, from, to; /* the suggestion is in between; 0: there is none */
        double raised;                 /* by which all losses are multiplied */
    } cases[] = {
        { -3.0, -1.0, 0.005, 0.02, 1.0 }, { -3.0, -1.0, 0.005, 0.02, 1e6 },
        { -1.0, 0.0, 0.05, 0.2, 1.0 },    { -5.0, -3.0, 5e-5, 2e-4, 1.0 },
        { -2.0, 5.0, 0.9, 1.0, 1.0 },     { -9.0, -8.0, 0.0, 0.0, 1.0 },
    };
    const Opts opts = { .min_lr = 1e-7, .max_lr = 10.0, .num_training_steps = 100 };
    double losses[100];

    (void)unused;
    for (size_t k = 0; k < KILN_COUNT(cases); k++) {
        State state = { .opts = &opts };

        curve(losses, 100, opts.min_lr, opts.max_lr, cases[k].falls, cases[k].rises);
        for (size_t i = 0; i < KILN_COUNT(losses); i++)
            losses[i] *= cases[k].raised;
        (void)feed(&state, losses);
        const double got = state.found >= 0 ? state.lr[state.found] : 0.0;
        if (got < cases[k].from || got > cases[k].to)
            fail_msg("case %zu: %g instead of %g to %g", k, got, cases[k].from, cases[k].to);
        forget(&state);
    }
}

/* Losses of small batches, in which the least is at the first steps by chance. */
static void test_a_lucky_start(void **unused)
{
    const Opts opts = { .min_lr = 1e-7, .max_lr = 10.0, .num_training_steps = 100 };
    double losses[100];
    State state = { .opts = &opts };

    (void)unused;
    curve(losses, 100, opts.min_lr, opts.max_lr, -4.0, -2.0);
    for (int i = 0; i < 100; i++)
        losses[i] = 2.3 + 0.3 * (losses[i] - 2.3) + 0.1 * sin(13.0 * (double)i);
    losses[0] = losses[1] = 1.5;
    (void)feed(&state, losses);
    assert_true(state.found >= 0);
    assert_true(state.lr[state.found] > 2e-4 && state.lr[state.found] < 4e-3);
    forget(&state);
}

/* It stops where the loss grows or breaks down, and needs some steps. */
static void test_ends(void **unused)
{
    double threshold = 4.0, losses[100];
    const Opts opts = {
        .min_lr = 1e-7,
        .max_lr = 10.0,
        .num_training_steps = 100,
        .early_stop_threshold = &threshold,
    };
    const Opts few = { .min_lr = 1e-7, .max_lr = 10.0, .num_training_steps = FEWEST_STEPS - 1 };
    State state = { .opts = &opts };

    (void)unused;
    curve(losses, 100, opts.min_lr, opts.max_lr, -3.0, -1.0);
    for (size_t i = 80; i < KILN_COUNT(losses); i++)
        losses[i] = i < 90 ? 1e3 : (double)NAN;
    assert_int_equal(feed(&state, losses), 80);
    assert_true(state.found >= 0 && state.lr[state.found] < 0.02);
    forget(&state);
    state = (State) { .opts = &few };
    (void)feed(&state, losses);
    assert_int_equal(state.found, -1);
    forget(&state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rates),      cmocka_unit_test(test_smoothing),
        cmocka_unit_test(test_suggestion), cmocka_unit_test(test_a_lucky_start),
        cmocka_unit_test(test_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
