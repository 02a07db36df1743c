/* Elementwise kernels: maps, and the others: fill, equal. */
#include "backend/cpu/cpu.h"

#include "backend/cpu/elementwise/map.h"
#include "tensor/bf16.h"

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
    { .op = &kiln_op_equal, .run = equal_run },
};

const KilnCpuTable kiln_cpu_elementwise = { kernels, KILN_COUNT(kernels) };
