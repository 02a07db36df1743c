/* Results whose size is data. One pass over the elements, on one thread. */
#include "backend/cpu/cpu.h"

#include <string.h>

/* ---- nonzero -------------------------------------------------------------------------- */

/* Whether any bit is set that makes the element differ from zero: not the sign of floats. */
static bool is_set(const KilnArg *x, int64_t i)
{
    switch (x->dtype) {
    case KILN_F32:
        return ((const float *)x->data)[i] != 0.0f;
    case KILN_F64:
        return ((const double *)x->data)[i] != 0.0;
    case KILN_I32:
        return ((const int32_t *)x->data)[i] != 0;
    case KILN_I64:
        return ((const int64_t *)x->data)[i] != 0;
    case KILN_U8:
        return ((const uint8_t *)x->data)[i] != 0;
    case KILN_BF16:
        return (((const uint16_t *)x->data)[i] & 0x7fff) != 0;
    }
    return false;
}

static void nonzero_run(KilnCall *call)
{
    const KilnNonzeroAttrs *attrs = call->attrs;
    const KilnArg *x = &call->inputs[0];
    int32_t *index = call->outputs[0].data;
    int64_t count = 0;

    for (int64_t i = 0; i < kiln_cpu_count(x); i++)
        if (is_set(x, i)) {
            if (count < attrs->limit)
                index[count] = (int32_t)i;
            count++;
        }
    for (int64_t i = count; i < attrs->limit; i++)
        index[i] = (int32_t)attrs->fill;
    *(int32_t *)call->outputs[1].data = (int32_t)count;
}

/* ---- unique --------------------------------------------------------------------------- */

/* Whether sorted elements i - 1 and i differ: NaN differs from everything. */
static bool differs(const KilnArg *x, int64_t i)
{
    const float *f32 = x->data;
    const int32_t *i32 = x->data;

    return x->dtype == KILN_I32 ? i32[i] != i32[i - 1] : f32[i] != f32[i - 1];
}

static void unique_run(KilnCall *call)
{
    const KilnArg *x = &call->inputs[0];
    const int32_t *index = call->inputs[1].data, *sorted = x->data;
    int32_t *values = call->outputs[0].data, *inverse = call->outputs[1].data;
    int32_t *counts = call->outputs[2].data, last = -1;

    memset(values, 0, call->outputs[0].bytes);
    memset(counts, 0, call->outputs[2].bytes);
    for (int64_t i = 0; i < kiln_cpu_count(x); i++) {
        if (i == 0 || differs(x, i))
            values[++last] = sorted[i]; /* the bits of either type */
        inverse[index[i]] = last;
        counts[last]++;
    }
    *(int32_t *)call->outputs[3].data = last + 1;
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_nonzero, .run = nonzero_run },
    { .op = &kiln_op_unique, .run = unique_run },
};

const KilnCpuTable kiln_cpu_compact = { kernels, KILN_COUNT(kernels) };
