/* Softmax and cross-entropy, row by row. */
#include "backend/cpu/cpu.h"

#include <math.h>

/* Softmax of one row; returns log(sum(exp(x))). */
static double softmax_row(float *y, const float *x, int64_t n)
{
    float top = -INFINITY;
    double sum = 0.0;

    for (int64_t c = 0; c < n; c++)
        top = x[c] > top ? x[c] : top;

    const double shift = (double)top;

    for (int64_t c = 0; c < n; c++) {
        y[c] = expf(x[c] - top);
        sum += (double)y[c];
    }

    const float scale = (float)(1.0 / sum);

    for (int64_t c = 0; c < n; c++)
        y[c] *= scale;
    /* cppcheck-suppress invalidFunctionArg ; rows are not empty, so the sum is at least 1 */
    return shift + log(sum);
}

static int64_t grain_of(int64_t columns)
{
    return 2048 / (columns + 1) + 1;
}

static void softmax_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const int64_t n = kiln_cpu_columns(&call->inputs[0]);

    for (int64_t r = begin; r < end; r++)
        softmax_row((float *)call->outputs[0].data + r * n,
                    (const float *)call->inputs[0].data + r * n, n);
}

static void softmax_run(KilnCall *call)
{
    const KilnArg *x = &call->inputs[0];

    kiln_parallel(call->backend->threads, kiln_cpu_rows(x), grain_of(kiln_cpu_columns(x)), 1,
                  softmax_part, call);
}

static void softmax_grad_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const int64_t n = kiln_cpu_columns(&call->inputs[0]);

    for (int64_t r = begin; r < end; r++)
        kiln_cpu(call)->loops->softmax_grad((float *)call->outputs[0].data + r * n,
                                            (const float *)call->inputs[0].data + r * n,
                                            (const float *)call->inputs[1].data + r * n, n);
}

static void softmax_grad_run(KilnCall *call)
{
    const KilnArg *dy = &call->inputs[0];

    kiln_parallel(call->backend->threads, kiln_cpu_rows(dy), grain_of(kiln_cpu_columns(dy)), 1,
                  softmax_grad_part, call);
}

/* ---- Cross-entropy: per-row losses in the workspace, added in order -------------- */

static KilnStatus cross_entropy_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    for (int i = 0; i < call->n_inputs; i++)
        call->inputs[i].layout = KILN_PLAIN;
    call->workspace_size = (size_t)kiln_cpu_rows(&call->inputs[0]) * sizeof(double);
    return KILN_OK;
}

/* A label that is none of the classes gives NaN, to be seen and not learned. */
static double row_loss(const float *x, int64_t n, int32_t label, double smoothing, double log_sum)
{
    double sum = 0.0;

    if (label < 0 || label >= n)
        return NAN;

    double loss = (1.0 - smoothing) * (log_sum - (double)x[label]);

    if (smoothing == 0.0)
        return loss;
    for (int64_t c = 0; c < n; c++)
        sum += log_sum - (double)x[c];
    return loss + smoothing / (double)n * sum;
}

static void cross_entropy_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const KilnCrossEntropyAttrs *attrs = call->attrs;
    const int32_t *labels = call->inputs[1].data;
    const int64_t n = kiln_cpu_columns(&call->inputs[0]);
    double *losses = call->workspace;

    for (int64_t r = begin; r < end; r++) {
        const float *x = (const float *)call->inputs[0].data + r * n;
        double log_sum = softmax_row((float *)call->outputs[1].data + r * n, x, n);

        losses[r] = row_loss(x, n, labels[r], attrs->label_smoothing, log_sum);
    }
}

static void cross_entropy_run(KilnCall *call)
{
    const KilnArg *x = &call->inputs[0];
    const int64_t rows = kiln_cpu_rows(x);
    const double *losses = call->workspace;
    double total = 0.0;

    kiln_parallel(call->backend->threads, rows, grain_of(kiln_cpu_columns(x)), 1,
                  cross_entropy_part, call);
    for (int64_t r = 0; r < rows; r++)
        total += losses[r];
    *(float *)call->outputs[0].data = (float)(total / (double)rows);
}

static void cross_entropy_grad_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const KilnCrossEntropyAttrs *attrs = call->attrs;
    const int32_t *labels = call->inputs[2].data;
    const int64_t n = kiln_cpu_columns(&call->inputs[1]);
    const float scale = *(const float *)call->inputs[0].data /
                        (float)kiln_cpu_rows(&call->inputs[1]);
    const float others = (float)(attrs->label_smoothing / (double)n);

    for (int64_t r = begin; r < end; r++) {
        const float *p = (const float *)call->inputs[1].data + r * n;
        float *dx = (float *)call->outputs[0].data + r * n;
        const bool known = labels[r] >= 0 && labels[r] < n;

        for (int64_t c = 0; c < n; c++)
            dx[c] = known ? scale * (p[c] - others) : NAN;
        if (known) /* from the probability itself, for near 1 the two cancel */
            dx[labels[r]] = (float)((double)scale * ((double)p[labels[r]] - (double)others -
                                                     (1.0 - attrs->label_smoothing)));
    }
}

static void cross_entropy_grad_run(KilnCall *call)
{
    const KilnArg *p = &call->inputs[1];

    kiln_parallel(call->backend->threads, kiln_cpu_rows(p), grain_of(kiln_cpu_columns(p)), 1,
                  cross_entropy_grad_part, call);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_softmax, .run = softmax_run, .in_place = 1 },
    { .op = &kiln_op_softmax_grad, .run = softmax_grad_run },
    { .op = &kiln_op_cross_entropy, .prepare = cross_entropy_prepare, .run = cross_entropy_run },
    { .op = &kiln_op_cross_entropy_grad, .run = cross_entropy_grad_run },
};

const KilnCpuTable kiln_cpu_losses = { kernels, KILN_COUNT(kernels) };
