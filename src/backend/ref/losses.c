/* Reference kernels for softmax and cross-entropy. */
#include "backend/ref/ref.h"

#include <math.h>

/* Softmax of one row; returns log(sum(exp(x))). */
static double softmax_row(const KilnArg *x, KilnArg *y, int64_t row)
{
    int64_t columns = kiln_ref_columns(x);
    double top = -INFINITY, sum = 0.0;

    for (int64_t c = 0; c < columns; c++)
        top = fmax(top, kiln_ref_get(x, row * columns + c));
    for (int64_t c = 0; c < columns; c++)
        sum += exp(kiln_ref_get(x, row * columns + c) - top);
    for (int64_t c = 0; c < columns; c++)
        kiln_ref_set(y, row * columns + c, exp(kiln_ref_get(x, row * columns + c) - top) / sum);
    /* cppcheck-suppress invalidFunctionArg ; rows are not empty, so the sum is at least 1 */
    return top + log(sum);
}

static void softmax_run(KilnCall *call)
{
    for (int64_t r = 0; r < kiln_ref_rows(&call->inputs[0]); r++)
        softmax_row(&call->inputs[0], &call->outputs[0], r);
}

static void softmax_grad_run(KilnCall *call)
{
    const KilnArg *dy = &call->inputs[0], *y = &call->inputs[1];
    int64_t columns = kiln_ref_columns(y);

    for (int64_t r = 0; r < kiln_ref_rows(y); r++) {
        double dot = 0.0;

        for (int64_t i = r * columns; i < (r + 1) * columns; i++)
            dot += kiln_ref_get(dy, i) * kiln_ref_get(y, i);
        for (int64_t i = r * columns; i < (r + 1) * columns; i++)
            kiln_ref_set(&call->outputs[0], i, kiln_ref_get(y, i) * (kiln_ref_get(dy, i) - dot));
    }
}

/* The probability that label smoothing asks of class c; NaN when the label is
 * none of the classes, so that a wrong label shows instead of being learned. */
static double target(double smoothing, int32_t label, int64_t c, int64_t classes)
{
    if (label < 0 || label >= classes)
        return NAN;
    return smoothing / (double)classes + (c == label ? 1.0 - smoothing : 0.0);
}

static void cross_entropy_run(KilnCall *call)
{
    const KilnCrossEntropyAttrs *attrs = call->attrs;
    const KilnArg *logits = &call->inputs[0];
    const int32_t *labels = call->inputs[1].data;
    int64_t rows = kiln_ref_rows(logits), classes = kiln_ref_columns(logits);
    double loss = 0.0;

    for (int64_t r = 0; r < rows; r++) {
        double log_sum = softmax_row(logits, &call->outputs[1], r);

        for (int64_t c = 0; c < classes; c++) {
            double wanted = target(attrs->label_smoothing, labels[r], c, classes);

            if (wanted != 0.0) /* an impossible class of probability 0 costs nothing */
                loss += wanted * (log_sum - kiln_ref_get(logits, r * classes + c));
        }
    }
    kiln_ref_set(&call->outputs[0], 0, loss / (double)rows);
}

static void cross_entropy_grad_run(KilnCall *call)
{
    const KilnCrossEntropyAttrs *attrs = call->attrs;
    const KilnArg *probabilities = &call->inputs[1];
    const int32_t *labels = call->inputs[2].data;
    int64_t rows = kiln_ref_rows(probabilities), classes = kiln_ref_columns(probabilities);
    double scale = kiln_ref_get(&call->inputs[0], 0) / (double)rows;

    for (int64_t i = 0; i < rows * classes; i++) {
        double wanted = target(attrs->label_smoothing, labels[i / classes], i % classes, classes);

        kiln_ref_set(&call->outputs[0], i, scale * (kiln_ref_get(probabilities, i) - wanted));
    }
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_softmax, .run = softmax_run, .in_place = 1 },
    { .op = &kiln_op_softmax_grad, .run = softmax_grad_run },
    { .op = &kiln_op_cross_entropy, .run = cross_entropy_run },
    { .op = &kiln_op_cross_entropy_grad, .run = cross_entropy_grad_run },
};

const KilnRefTable kiln_ref_losses = { kernels, KILN_COUNT(kernels) };
