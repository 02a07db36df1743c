/* The product of rows, and its gradient. */
#include "backend/cpu/cpu.h"

static void prod_part(void *context, int64_t begin, int64_t end)
{
    const KilnCall *call = context;
    const int64_t n = kiln_cpu_columns(&call->inputs[0]);
    float *y = call->outputs[0].data;

    for (int64_t row = begin; row < end; row++) {
        const float *x = (const float *)call->inputs[0].data + row * n;
        double product = 1.0;

        for (int64_t i = 0; i < n; i++)
            product *= (double)x[i];
        y[row] = (float)product;
    }
}

static void prod_run(KilnCall *call)
{
    const KilnArg *x = &call->inputs[0];

    kiln_parallel(call->backend->threads, kiln_cpu_rows(x), 8192 / (kiln_cpu_columns(x) + 1) + 1, 1,
                  prod_part, call);
}

/* The products of what comes after each element go into the workspace; dividing the whole product
 * would fail for zeros. */
static void prod_grad_part(void *context, int64_t begin, int64_t end)
{
    const KilnCall *call = context;
    const int64_t n = kiln_cpu_columns(&call->inputs[1]);
    const float *dy = call->inputs[0].data;

    for (int64_t row = begin; row < end; row++) {
        const float *x = (const float *)call->inputs[1].data + row * n;
        float *dx = (float *)call->outputs[0].data + row * n;
        double *after = (double *)call->workspace + row * n;
        double before = (double)dy[row];

        after[n - 1] = 1.0;
        for (int64_t i = n - 1; i > 0; i--)
            after[i - 1] = after[i] * (double)x[i];
        for (int64_t i = 0; i < n; i++) {
            const double factor = (double)x[i];

            dx[i] = (float)(before * after[i]);
            before *= factor;
        }
    }
}

static KilnStatus prod_grad_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    call->inputs[0].layout = call->inputs[1].layout = KILN_PLAIN;
    call->workspace_size = (size_t)kiln_cpu_count(&call->inputs[1]) * sizeof(double);
    return KILN_OK;
}

static void prod_grad_run(KilnCall *call)
{
    const KilnArg *x = &call->inputs[1];

    kiln_parallel(call->backend->threads, kiln_cpu_rows(x), 4096 / (kiln_cpu_columns(x) + 1) + 1, 1,
                  prod_grad_part, call);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_prod, .run = prod_run },
    { .op = &kiln_op_prod_grad, .prepare = prod_grad_prepare, .run = prod_grad_run },
};

const KilnCpuTable kiln_cpu_prod = { kernels, KILN_COUNT(kernels) };
