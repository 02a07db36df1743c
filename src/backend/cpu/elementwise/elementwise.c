/* Elementwise kernels: maps, and the others: fill, dropout, equal. */
#include "backend/cpu/cpu.h"

#include <math.h>

#include "backend/cpu/elementwise/map.h"
#include "tensor/bf16.h"

static const float *input(const KilnCall *call, int i, int64_t begin)
{
    return (const float *)call->inputs[i].data + begin;
}

static float *output(const KilnCall *call, int64_t begin)
{
    return (float *)call->outputs[0].data + begin;
}

/* ---- Fill, the only one that makes other types than float --------------------- */

static void fill_f32_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const KilnFillAttrs *attrs = call->attrs;

    kiln_cpu(call)->loops->fill(output(call, begin), (float)attrs->value, end - begin);
}

static void fill_other_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const KilnFillAttrs *attrs = call->attrs;
    KilnArg *y = &call->outputs[0];

    for (int64_t i = begin; i < end; i++)
        switch (y->dtype) {
        case KILN_I32:
            ((int32_t *)y->data)[i] = (int32_t)attrs->value;
            break;
        case KILN_I64:
            ((int64_t *)y->data)[i] = (int64_t)attrs->value;
            break;
        case KILN_U8:
            ((uint8_t *)y->data)[i] = (uint8_t)attrs->value;
            break;
        case KILN_F64:
            ((double *)y->data)[i] = attrs->value;
            break;
        case KILN_BF16:
            ((uint16_t *)y->data)[i] = kiln_bf16_of((float)attrs->value);
            break;
        case KILN_F32:
            break;
        }
}

static void fill_run(KilnCall *call)
{
    KilnArg *y = &call->outputs[0];

    kiln_cpu_each(call, kiln_cpu_count(y), y->dtype == KILN_F32 ? fill_f32_part : fill_other_part);
}

/* ---- Dropout: plain order, for the mask is a function of the element's number -- */

/* That of input `rate`, if there is one; NaN if it is out of range. */
static double rate_of(const KilnCall *call, int rate)
{
    const KilnDropoutAttrs *attrs = call->attrs;

    if (call->inputs[rate].absent)
        return attrs->p;

    const double p = (double)*(const float *)call->inputs[rate].data;

    return p >= 0.0 && p < 1.0 ? p : NAN;
}

static void dropout_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const KilnDropoutAttrs *attrs = call->attrs;
    const int32_t *key = call->inputs[1].data;
    const double p = rate_of(call, 2);
    const KilnDropoutLoop dropout = {
        .key = { (uint32_t)key[0], (uint32_t)key[1] },
        .stream = (uint64_t)attrs->stream,
        .threshold = isnan(p) ? 0 : (uint32_t)ceil(p * 0x1p24),
        .scale = (float)(1.0 / (1.0 - p)),
    };

    kiln_cpu(call)->loops->dropout(call->outputs[0].data, call->outputs[1].data,
                                   call->inputs[0].data, &dropout, begin, end);
}

static void dropout_grad_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const uint8_t *mask = call->inputs[1].data;
    const float scale = (float)(1.0 / (1.0 - rate_of(call, 2)));

    kiln_cpu(call)->loops->dropout_grad(output(call, begin), input(call, 0, begin), mask + begin,
                                        scale, end - begin);
}

static void dropout_run(KilnCall *call)
{
    kiln_cpu_each(call, kiln_cpu_count(&call->outputs[0]), dropout_part);
}

static void dropout_grad_run(KilnCall *call)
{
    kiln_cpu_each(call, kiln_cpu_count(&call->outputs[0]), dropout_grad_part);
}

/* ---- Equal --------------------------------------------------------------------- */

static void equal_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const int32_t *a = call->inputs[0].data, *b = call->inputs[1].data;

    for (int64_t i = begin; i < end; i++)
        *output(call, i) = a[i] == b[i] ? 1.0f : 0.0f;
}

static void equal_run(KilnCall *call)
{
    kiln_cpu_each(call, kiln_cpu_count(&call->outputs[0]), equal_part);
}

#define MAPPED(name)                                                                               \
    { .op = &kiln_op_##name,                                                                       \
      .prepare = kiln_cpu_map_prepare,                                                             \
      .run = kiln_cpu_map_run,                                                                     \
      .release = kiln_cpu_map_release,                                                             \
      .in_place = ~0u,                                                                             \
      .bf16_inputs = ~0u,                                                                          \
      .bf16_outputs = ~0u,                                                                         \
      .mixed_floats = true },

static const KilnKernel kernels[] = {
    /* clang-format off */
    KILN_OPS_MAPPED(MAPPED)
    KILN_OPS_ACTIVATION(MAPPED)
    /* clang-format on */
    { .op = &kiln_op_fill, .run = fill_run },
    { .op = &kiln_op_dropout, .run = dropout_run, .in_place = 1 },
    { .op = &kiln_op_dropout_grad, .run = dropout_grad_run, .in_place = 1 },
    { .op = &kiln_op_equal, .run = equal_run },
};

const KilnCpuTable kiln_cpu_elementwise = { kernels, KILN_COUNT(kernels) };
