/* The learning rate finder against Lightning's: rates, smoothing, where it stops, what it suggests
 * (tests/record/callbacks.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The component with what it keeps to itself, beside the one that the library has. */
#define kiln_callback_lr_finder test_lr_finder
#include "../../callbacks/lr_finder.c"

#include "../data/lr_finder.h"

static void assert_near(double got, double want, double tolerance, const char *what, int64_t i)
{
    if (isnan(got) && isnan(want))
        return;
    if (!(fabs(got - want) <= tolerance * fmax(1.0, fabs(want))))
        fail_msg("%s, %lld: %.17g instead of %.17g", what, (long long)i, got, want);
}

static void test_finder(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < KILN_COUNT(finder_cases); k++) {
        double threshold = finder_cases[k].threshold;
        const Opts opts = {
            .min_lr = finder_cases[k].low,
            .max_lr = finder_cases[k].high,
            .num_training_steps = finder_cases[k].steps,
            .mode = finder_cases[k].mode,
            .early_stop_threshold = threshold > 0.0 ? &threshold : NULL,
        };
        State state = { .opts = &opts };
        KilnError err = { 0 };
        int64_t i = 0;

        assert_int_equal(make_room(&state, opts.num_training_steps, &err), KILN_OK);
        while (i < opts.num_training_steps && take(&state, i, finder_cases[k].raw[i]))
            i++;
        assert_int_equal(state.n, finder_cases[k].n);
        for (i = 0; i < state.n; i++) {
            assert_near(state.lr[i], finder_cases[k].rates[i], 1e-12, finder_cases[k].name, i);
            assert_near(state.loss[i], finder_cases[k].smoothed[i], 1e-12, finder_cases[k].name, i);
        }
        assert_int_equal(find(&state, &err), KILN_OK);
        if (state.found != finder_cases[k].found)
            fail_msg("%s: step %lld instead of %d", finder_cases[k].name, (long long)state.found,
                     finder_cases[k].found);
        free(state.lr);
        free(state.loss);
    }
}

static void test_shortest_number(void **unused)
{
    static const struct {
        double number;
        const char *text;
    } cases[] = { { 0.1, "0.1" },
                  { 1e-8, "1e-08" },
                  { 0.03162277660168379, "0.03162277660168379" } };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        char text[32];

        write_number(text, sizeof(text), cases[i].number);
        assert_string_equal(text, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finder),
        cmocka_unit_test(test_shortest_number),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
