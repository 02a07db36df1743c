/* Reference kernels that update variables in place: running averages, counters
 * and optimizers. */
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

static void increment_run(KilnCall *call)
{
    int64_t *variable = call->inputs[0].data;

    (*variable)++;
}

static void sgd_update_run(KilnCall *call)
{
    const KilnSgd *sgd = call->attrs;
    KilnArg *param = &call->inputs[0], *buffer = &call->inputs[2];
    double lr = kiln_ref_get(&call->inputs[3], 0);
    bool first = kiln_ref_get(&call->inputs[3], 1) != 0.0;

    for (int64_t i = 0; i < kiln_ref_count(param); i++) {
        double p = kiln_ref_get(param, i);
        double g = kiln_ref_get(&call->inputs[1], i) + sgd->weight_decay * p;

        if (!buffer->absent) {
            double b = first ? g : sgd->momentum * kiln_ref_get(buffer, i) + g;

            kiln_ref_set(buffer, i, b);
            g = sgd->nesterov ? g + sgd->momentum * b : b;
        }
        kiln_ref_set(param, i, p - lr * g);
    }
}

static void adam_update_run(KilnCall *call)
{
    const KilnAdam *adam = call->attrs;
    KilnArg *param = &call->inputs[0], *average = &call->inputs[2], *square = &call->inputs[3];
    double lr = kiln_ref_get(&call->inputs[4], 0);
    double correction1 = kiln_ref_get(&call->inputs[4], 1);
    double correction2 = kiln_ref_get(&call->inputs[4], 2);

    for (int64_t i = 0; i < kiln_ref_count(param); i++) {
        double p = kiln_ref_get(param, i), g = kiln_ref_get(&call->inputs[1], i);

        if (adam->decoupled)
            p -= lr * adam->weight_decay * p;
        else
            g += adam->weight_decay * p;

        double m = adam->beta1 * kiln_ref_get(average, i) + (1.0 - adam->beta1) * g;
        double v = adam->beta2 * kiln_ref_get(square, i) + (1.0 - adam->beta2) * g * g;

        kiln_ref_set(average, i, m);
        kiln_ref_set(square, i, v);
        kiln_ref_set(param, i,
                     p - lr / correction1 * m / (sqrt(v) / sqrt(correction2) + adam->eps));
    }
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_ema_update, .run = ema_update_run },
    { .op = &kiln_op_increment, .run = increment_run },
    { .op = &kiln_op_sgd_update, .run = sgd_update_run },
    { .op = &kiln_op_adam_update, .run = adam_update_run },
};

const KilnRefTable kiln_ref_updates = { kernels, KILN_COUNT(kernels) };
