/* Updates in place: running averages, counters, and optimizers in one pass over
 * the flat parameters. */
#include "backend/cpu/cpu.h"

#include <math.h>

static float *variable_at(const KilnCall *call, int i, int64_t begin)
{
    return call->inputs[i].absent ? NULL : (float *)call->inputs[i].data + begin;
}

static void ema_update_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const KilnScaleAttrs *attrs = call->attrs;

    kiln_cpu(call)->loops->blend(variable_at(call, 0, begin), variable_at(call, 1, begin),
                                 (float)(1.0 - attrs->factor),
                                 (float)(attrs->factor * attrs->correction), end - begin);
}

static void ema_update_run(KilnCall *call)
{
    kiln_cpu_each(call, kiln_cpu_count(&call->inputs[0]), ema_update_part);
}

static void increment_run(KilnCall *call)
{
    int64_t *variable = call->inputs[0].data;

    (*variable)++;
}

static void sgd_update_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const KilnSgd *attrs = call->attrs;
    const float *hyper = call->inputs[3].data;
    const KilnSgdLoop sgd = {
        .lr = hyper[0],
        .first = hyper[1] != 0.0f,
        .momentum = (float)attrs->momentum,
        .weight_decay = (float)attrs->weight_decay,
        .nesterov = attrs->nesterov,
    };

    kiln_cpu(call)->loops->sgd(variable_at(call, 0, begin), variable_at(call, 2, begin),
                               variable_at(call, 1, begin), &sgd, end - begin);
}

static void sgd_update_run(KilnCall *call)
{
    kiln_cpu_each(call, kiln_cpu_count(&call->inputs[0]), sgd_update_part);
}

static void adam_update_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const KilnAdam *attrs = call->attrs;
    const float *hyper = call->inputs[4].data;
    const double lr = (double)hyper[0];
    const KilnAdamLoop adam = {
        .beta1 = (float)attrs->beta1,
        .beta2 = (float)attrs->beta2,
        .new1 = (float)(1.0 - attrs->beta1),
        .new2 = (float)(1.0 - attrs->beta2),
        .eps = (float)attrs->eps,
        .step = (float)(lr / (double)hyper[1]),
        .root_correction = (float)sqrt((double)hyper[2]),
        .decay = attrs->decoupled ? 0.0f : (float)attrs->weight_decay,
        .shrink = attrs->decoupled ? (float)(1.0 - lr * attrs->weight_decay) : 1.0f,
    };

    kiln_cpu(call)->loops->adam(variable_at(call, 0, begin), variable_at(call, 2, begin),
                                variable_at(call, 3, begin), variable_at(call, 1, begin), &adam,
                                end - begin);
}

static void adam_update_run(KilnCall *call)
{
    kiln_cpu_each(call, kiln_cpu_count(&call->inputs[0]), adam_update_part);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_ema_update, .run = ema_update_run },
    { .op = &kiln_op_increment, .run = increment_run },
    { .op = &kiln_op_sgd_update, .run = sgd_update_run },
    { .op = &kiln_op_adam_update, .run = adam_update_run },
};

const KilnCpuTable kiln_cpu_updates = { kernels, KILN_COUNT(kernels) };
