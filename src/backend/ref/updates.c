/* Reference of in-place updates except optimizers: running averages, counters, limits; and of
 * the gradient norm and the clipping factor. */
#include "backend/ref/ref.h"

#include <math.h>

static void ema_update_run(KilnCall *call)
{
    const KilnScaleAttrs *attrs = call->attrs;
    KilnArg *variable = &call->inputs[0];

    for (int64_t i = 0; i < kiln_ref_count(variable); i++) {
        double value = kiln_ref_get(&call->inputs[1], i) * attrs->correction;

        kiln_ref_set(variable, i,
                     (1.0 - attrs->factor) * kiln_ref_get(variable, i) + attrs->factor * value);
    }
}

static void lerp_update_run(KilnCall *call)
{
    KilnArg *variable = &call->inputs[0];
    double weight = kiln_ref_get(&call->inputs[2], 0);

    for (int64_t i = 0; i < kiln_ref_count(variable); i++) {
        double old = kiln_ref_get(variable, i), value = kiln_ref_get(&call->inputs[1], i);

        kiln_ref_set(variable, i, weight == 1.0 ? value : old + weight * (value - old));
    }
}

/* A list of sparse rows needs no attention here: the other rows are 0. */

static void clamp_update_run(KilnCall *call)
{
    const KilnLimitAttrs *attrs = call->attrs;
    KilnArg *variable = &call->inputs[0];

    for (int64_t i = 0; i < kiln_ref_count(variable); i++) {
        double x = kiln_ref_get(variable, i);

        if (x > attrs->limit)
            kiln_ref_set(variable, i, attrs->limit);
        else if (x < -attrs->limit)
            kiln_ref_set(variable, i, -attrs->limit);
    }
}

static void increment_run(KilnCall *call)
{
    int64_t *variable = call->inputs[0].data;

    (*variable)++;
}

static void l2_norm_run(KilnCall *call)
{
    double sum = 0.0;

    for (int64_t i = 0; i < kiln_ref_count(&call->inputs[0]); i++) {
        double x = kiln_ref_get(&call->inputs[0], i);

        sum += x * x;
    }
    kiln_ref_set(&call->outputs[0], 0, sqrt(sum));
}

static void clip_factor_run(KilnCall *call)
{
    const KilnLimitAttrs *attrs = call->attrs;
    double factor = attrs->limit / (kiln_ref_get(&call->inputs[0], 0) + 1e-6);

    kiln_ref_set(&call->outputs[0], 0, factor > 1.0 ? 1.0 : factor);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_ema_update, .run = ema_update_run },
    { .op = &kiln_op_lerp_update, .run = lerp_update_run },
    { .op = &kiln_op_clamp_update, .run = clamp_update_run },
    { .op = &kiln_op_increment, .run = increment_run },
    { .op = &kiln_op_l2_norm, .run = l2_norm_run },
    { .op = &kiln_op_clip_factor, .run = clip_factor_run },
};

const KilnRefTable kiln_ref_updates = { kernels, KILN_COUNT(kernels) };
