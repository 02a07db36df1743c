/* Stochastic weight averaging against torch.optim.swa_utils (tests/record/callbacks.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "nn/params.h"
#include "train/trainer.h"

/* The component with what it keeps to itself, beside the one that the library has. */
#define kiln_callback_stochastic_weight_averaging test_stochastic_weight_averaging
#include "callbacks/stochastic_weight_averaging.c"

#include "tests/data/swa.h"
#include "train/optim/averaged_weights.h"
#include "tests/support/param_memory.h"

static void assert_near(double got, double want, double tolerance, const char *what, int64_t i)
{
    if (isnan(got) && isnan(want))
        return;
    if (!(fabs(got - want) <= tolerance * fmax(1.0, fabs(want))))
        fail_msg("%s, %lld: %.17g instead of %.17g", what, (long long)i, got, want);
}

static void test_swalr(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < KILN_COUNT(swalr_cases); k++) {
        const Opts opts = { .swa_lrs = 0.02,
                            .annealing_epochs = swalr_cases[k].epochs,
                            .annealing_strategy = swalr_cases[k].strategy };

        for (int64_t epoch = 0; epoch < 8; epoch++) /* swa_utils takes the first step without it */
            assert_near(rate_of(&opts, 0.1, epoch), swalr_cases[k].rates[epoch], 1e-12, "swalr",
                        epoch);
    }
}

static void make_params(KilnParams **ret, KilnDType dtype)
{
    KilnError err = { 0 };
    KilnParam *param;

    assert_int_equal(kiln_params_new(1, ret, &err), KILN_OK);
    kiln_params_set_dtype(*ret, dtype);
    KilnScope root = kiln_params_root(*ret);
    const KilnInit zero = { .kind = KILN_INIT_CONSTANT };
    assert_int_equal(kiln_param_new(&root, "weight", KILN_SHAPE(2, 3), zero, &param, &err),
                     KILN_OK);
    assert_int_equal(kiln_params_seal(*ret, store_backend(), &err), KILN_OK);
}

static void test_average(void **unused)
{
    KilnTrainer trainer = { .backend = store_backend() };
    KilnAveragedWeights *averaged;
    KilnError err = { 0 };

    (void)unused;
    make_params(&trainer.params, KILN_F32);
    assert_int_equal(kiln_trainer_averaged_new(&trainer, &averaged, &err), KILN_OK);
    KilnParam *param = kiln_params_at(trainer.params, 0);
    const float *average = location_data(kiln_averaged_location(averaged, param));
    for (int row = 0; row < 4; row++) {
        memcpy(param_data(param), swa_weights + 6 * row, 6 * sizeof(float));
        kiln_averaged_average(averaged, 1.0 / (row + 1));
        for (int i = 0; i < 6; i++)
            assert_near((double)average[i], (double)swa_averages[6 * row + i], 1e-6, "average",
                        6 * row + i);
    }
    /* While it is not used, nobody sees it. */
    kiln_averaged_use(averaged, false);
    assert_null(location_data(kiln_averaged_location(averaged, param)));
    kiln_averaged_swap_in(averaged);
    assert_memory_equal(param_data(param), swa_weights + 18, 6 * sizeof(float));
    kiln_averaged_swap_out(averaged);
    kiln_averaged_use(averaged, true);
    kiln_averaged_swap_in(averaged);
    assert_near((double)((float *)param_data(param))[0], (double)swa_averages[18], 1e-6,
                "swapped in", 0);
    kiln_averaged_swap_out(averaged);
    assert_memory_equal(param_data(param), swa_weights + 18, 6 * sizeof(float));
    kiln_averaged_free(averaged);
    kiln_params_free(trainer.params);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_swalr),
        cmocka_unit_test(test_average),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
