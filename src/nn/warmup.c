/* Shared by the schedulers: the warmup, and step counts. */
#include <math.h>

#include "kiln/module.h"

const KilnChoice kiln_warmup_shapes[] = { { "linear", KILN_WARMUP_LINEAR },
                                          { "cosine", KILN_WARMUP_COSINE },
                                          { NULL, 0 } };

const KilnChoice kiln_intervals[] = { { "epoch", KILN_INTERVAL_EPOCH },
                                      { "step", KILN_INTERVAL_STEP },
                                      { NULL, 0 } };

int64_t kiln_interval_count(int64_t interval, const KilnProgress *at)
{
    return interval == KILN_INTERVAL_STEP ? at->step : at->epoch;
}

KilnStatus kiln_warmup_check(KilnWarmup warmup, const char **ret_option, KilnError *err)
{
    if (warmup.steps == 0 || warmup.epochs <= 0.0)
        return KILN_OK;
    *ret_option = "warmup_epochs";
    return kiln_error_set(err, KILN_E_RANGE, "%g, and warmup_steps is %lld: one of them must be 0",
                          warmup.epochs, (long long)warmup.steps);
}

double kiln_warmup_steps(KilnWarmup warmup, const KilnProgress *at)
{
    if (warmup.epochs > 0.0)
        return floor(warmup.epochs * (double)at->steps_per_epoch + 0.5);
    return (double)warmup.steps;
}

KilnStatus kiln_warmup_fits(KilnWarmup warmup, const KilnProgress *at, KilnError *err)
{
    double steps = kiln_warmup_steps(warmup, at);

    if (at->total_steps < 1 || steps < (double)at->total_steps || steps < 1.0)
        return KILN_OK;
    return kiln_error_set(
        err, KILN_E_RANGE,
        "%s: the warmup takes %.0f steps and the whole run %lld, so that it never "
        "ends; shorten the warmup or train longer",
        warmup.epochs > 0.0 ? "warmup_epochs" : "warmup_steps", steps, (long long)at->total_steps);
}

double kiln_warmup_factor(KilnWarmup warmup, const KilnProgress *at)
{
    const double pi = 3.14159265358979323846;
    double steps = kiln_warmup_steps(warmup, at);

    if ((double)at->step >= steps)
        return 1.0;
    double rise = ((double)at->step + 1.0) / steps;
    return warmup.shape == KILN_WARMUP_COSINE ? 0.5 * (1.0 - cos(pi * rise)) : rise;
}

double kiln_warmup_rest(KilnWarmup warmup, const KilnProgress *at)
{
    double begin = kiln_warmup_steps(warmup, at), step = (double)at->step;

    if (step < begin || at->total_steps < 1)
        return 0.0;
    if (step >= (double)at->total_steps)
        return 1.0;
    return (step - begin) / ((double)at->total_steps - begin);
}
