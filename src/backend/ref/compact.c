/* Reference of results whose size is data. */
#include "backend/ref/ref.h"

static void nonzero_run(KilnCall *call)
{
    const KilnNonzeroAttrs *attrs = call->attrs;
    int64_t count = 0;

    for (int64_t i = 0; i < attrs->limit; i++)
        kiln_ref_set(&call->outputs[0], i, (double)attrs->fill);
    for (int64_t i = 0; i < kiln_ref_count(&call->inputs[0]); i++) {
        if (kiln_ref_get(&call->inputs[0], i) == 0.0)
            continue;
        if (count < attrs->limit)
            kiln_ref_set(&call->outputs[0], count, (double)i);
        count++;
    }
    kiln_ref_set(&call->outputs[1], 0, (double)count);
}

static void unique_run(KilnCall *call)
{
    const int64_t n = kiln_ref_count(&call->inputs[0]);
    int64_t last = -1;

    for (int64_t i = 0; i < n; i++) {
        kiln_ref_set(&call->outputs[0], i, 0.0);
        kiln_ref_set(&call->outputs[2], i, 0.0);
    }
    for (int64_t i = 0; i < n; i++) {
        const double value = kiln_ref_get(&call->inputs[0], i);

        if (i == 0 || value != kiln_ref_get(&call->inputs[0], i - 1))
            kiln_ref_set(&call->outputs[0], ++last, value);
        kiln_ref_set(&call->outputs[1], (int64_t)kiln_ref_get(&call->inputs[1], i), (double)last);
        kiln_ref_set(&call->outputs[2], last, kiln_ref_get(&call->outputs[2], last) + 1.0);
    }
    kiln_ref_set(&call->outputs[3], 0, (double)(last + 1));
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_nonzero, .run = nonzero_run },
    { .op = &kiln_op_unique, .run = unique_run },
};

const KilnRefTable kiln_ref_compact = { kernels, KILN_COUNT(kernels) };
