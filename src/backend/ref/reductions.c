/* Reference kernels that sum, or search, over axes. */
#include "backend/ref/ref.h"

static double sum_of(const KilnArg *x)
{
    double sum = 0.0;

    for (int64_t i = 0; i < kiln_ref_count(x); i++)
        sum += kiln_ref_get(x, i);
    return sum;
}

static void sum_run(KilnCall *call)
{
    kiln_ref_set(&call->outputs[0], 0, sum_of(&call->inputs[0]));
}

static void mean_run(KilnCall *call)
{
    kiln_ref_set(&call->outputs[0], 0,
                 sum_of(&call->inputs[0]) / (double)kiln_ref_count(&call->inputs[0]));
}

static void sum_rows_run(KilnCall *call)
{
    const KilnArg *x = &call->inputs[0];
    int64_t columns = kiln_ref_columns(x), rows = kiln_ref_rows(x);

    for (int64_t c = 0; c < columns; c++) {
        double sum = 0.0;

        for (int64_t r = 0; r < rows; r++)
            sum += kiln_ref_get(x, r * columns + c);
        kiln_ref_set(&call->outputs[0], c, sum);
    }
}

static void argmax_run(KilnCall *call)
{
    const KilnArg *x = &call->inputs[0];
    int64_t columns = kiln_ref_columns(x), rows = kiln_ref_rows(x);

    for (int64_t r = 0; r < rows; r++) {
        int64_t best = 0;

        for (int64_t c = 1; c < columns; c++)
            if (kiln_ref_get(x, r * columns + c) > kiln_ref_get(x, r * columns + best))
                best = c;
        kiln_ref_set(&call->outputs[0], r, (double)best);
    }
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_sum, .run = sum_run },
    { .op = &kiln_op_mean, .run = mean_run },
    { .op = &kiln_op_sum_rows, .run = sum_rows_run },
    { .op = &kiln_op_argmax, .run = argmax_run },
};

const KilnRefTable kiln_ref_reductions = { kernels, KILN_COUNT(kernels) };
