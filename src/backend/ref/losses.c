/* Reference of probabilities and the classification losses. */
#include "backend/ref/ref.h"

#include <math.h>

/* log(sum(exp(x))) of one row is top + rest; separate, since they may differ much in size. */
typedef struct LogSum {
    double top, rest;
} LogSum;

static LogSum log_sum(const KilnArg *x, int64_t row)
{
    const int64_t columns = kiln_ref_columns(x);
    double top = -INFINITY, sum = 0.0;

    for (int64_t c = 0; c < columns; c++) {
        const double value = kiln_ref_get(x, row * columns + c);

        top = value > top || isnan(value) ? value : top;
    }
    for (int64_t c = 0; c < columns; c++)
        sum += exp(kiln_ref_get(x, row * columns + c) - top);
    /* cppcheck-suppress invalidFunctionArg ; rows are not empty, so the sum is at least 1 */
    return (LogSum) { top, log(sum) };
}

/* ---- softmax, log_softmax ------------------------------------------------------------ */

static void log_softmax_run(KilnCall *call)
{
    const KilnArg *x = &call->inputs[0];
    const int64_t columns = kiln_ref_columns(x);

    for (int64_t r = 0; r < kiln_ref_rows(x); r++) {
        const LogSum total = log_sum(x, r);

        for (int64_t i = r * columns; i < (r + 1) * columns; i++)
            kiln_ref_set(&call->outputs[0], i, kiln_ref_get(x, i) - total.top - total.rest);
    }
}

static void softmax_row(const KilnArg *x, KilnArg *y, int64_t row, LogSum total)
{
    const int64_t columns = kiln_ref_columns(x);

    for (int64_t i = row * columns; i < (row + 1) * columns; i++)
        kiln_ref_set(y, i, exp(kiln_ref_get(x, i) - total.top - total.rest));
}

static void softmax_run(KilnCall *call)
{
    const KilnArg *x = &call->inputs[0];

    for (int64_t r = 0; r < kiln_ref_rows(x); r++)
        softmax_row(x, &call->outputs[0], r, log_sum(x, r));
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

static void log_softmax_grad_run(KilnCall *call)
{
    const KilnArg *dy = &call->inputs[0], *y = &call->inputs[1];
    const int64_t columns = kiln_ref_columns(y);

    for (int64_t r = 0; r < kiln_ref_rows(y); r++) {
        double total = 0.0;

        for (int64_t i = r * columns; i < (r + 1) * columns; i++)
            total += kiln_ref_get(dy, i);
        for (int64_t i = r * columns; i < (r + 1) * columns; i++)
            kiln_ref_set(&call->outputs[0], i,
                         kiln_ref_get(dy, i) - exp(kiln_ref_get(y, i)) * total);
    }
}

/* ---- Losses over classes ------------------------------------------------------------- */

static double weight_of(const KilnArg *weight, int64_t c)
{
    return weight->absent ? 1.0 : kiln_ref_get(weight, c);
}

/* The divisor of the losses: rows for targets; for labels the sum of weights over rows that count.
 */
static double divisor(const KilnLabelAttrs *attrs, const int32_t *labels, int64_t rows,
                      const KilnArg *weight)
{
    double total = 0.0;

    if (attrs->reduction != KILN_REDUCTION_MEAN)
        return 1.0;
    if (labels == NULL)
        return (double)rows;
    for (int64_t r = 0; r < rows; r++)
        if (labels[r] >= 0 && labels[r] < attrs->classes && labels[r] != attrs->ignore_index)
            total += weight_of(weight, labels[r]);
    return total;
}

/* Weight times the target probability of class c in row r, given labels or targets. Label smoothing
 * as in PyTorch: with labels, the weight of the row's label scales the sharp part, and each class's
 * own weight the smooth part. A label outside the classes gives NaN, so that it shows instead of
 * being learned. */
static double wanted(const KilnLabelAttrs *attrs, const int32_t *labels, const KilnArg *targets,
                     const KilnArg *weight, int64_t r, int64_t c)
{
    const double share = attrs->label_smoothing / (double)attrs->classes;

    if (labels == NULL)
        return weight_of(weight, c) * (share + (1.0 - attrs->label_smoothing) *
                                                   kiln_ref_get(targets, r * attrs->classes + c));
    if (labels[r] == attrs->ignore_index)
        return 0.0;
    if (labels[r] < 0 || labels[r] >= attrs->classes)
        return NAN;
    return weight_of(weight, c) * (share + (c == labels[r] ? 1.0 - attrs->label_smoothing : 0.0));
}

/* Both losses entirely, from log-probabilities x - log_sum. */
static void loss_run(KilnCall *call, bool soft, bool logits)
{
    const KilnLabelAttrs *attrs = call->attrs;
    const KilnArg *x = &call->inputs[0], *weight = &call->inputs[2];
    const int32_t *labels = soft ? NULL : call->inputs[1].data;
    const int64_t rows = kiln_ref_rows(x), n = attrs->classes;
    double total = 0.0;

    for (int64_t r = 0; r < rows; r++) {
        const LogSum sum = logits ? log_sum(x, r) : (LogSum) { 0 };
        double loss = 0.0;

        for (int64_t c = 0; c < n; c++) {
            const double w = wanted(attrs, labels, &call->inputs[1], weight, r, c);

            if (w != 0.0) /* an impossible class of probability 0 costs nothing */
                loss += w * (sum.top - kiln_ref_get(x, r * n + c) + sum.rest);
        }
        if (logits)
            softmax_row(x, &call->outputs[1], r, sum);
        if (attrs->reduction == KILN_REDUCTION_NONE)
            kiln_ref_set(&call->outputs[0], r, loss);
        total += loss;
    }
    if (attrs->reduction != KILN_REDUCTION_NONE)
        kiln_ref_set(&call->outputs[0], 0, total / divisor(attrs, labels, rows, weight));
}

static void nll_run(KilnCall *call)
{
    loss_run(call, false, false);
}

static void cross_entropy_run(KilnCall *call)
{
    loss_run(call, false, true);
}

static void cross_entropy_soft_run(KilnCall *call)
{
    loss_run(call, true, true);
}

/* The factor of a row's gradient. An ignored row has none, even if all are ignored and their mean
 * is NaN (as PyTorch). */
static double row_scale(const KilnLabelAttrs *attrs, const KilnArg *dloss, const int32_t *labels,
                        int64_t r, double by)
{
    if (labels != NULL && labels[r] == attrs->ignore_index)
        return 0.0;
    return kiln_ref_get(dloss, attrs->reduction == KILN_REDUCTION_NONE ? r : 0) / by;
}

static void nll_grad_run(KilnCall *call)
{
    const KilnLabelAttrs *attrs = call->attrs;
    const int32_t *labels = call->inputs[1].data;
    const KilnArg *weight = &call->inputs[2];
    const int64_t rows = kiln_ref_count(&call->inputs[1]), n = attrs->classes;
    const double by = divisor(attrs, labels, rows, weight);

    for (int64_t i = 0; i < rows * n; i++)
        kiln_ref_set(&call->outputs[0], i,
                     -row_scale(attrs, &call->inputs[0], labels, i / n, by) *
                         wanted(attrs, labels, &call->inputs[1], weight, i / n, i % n));
}

/* d/dx of sum(w_c * (log_sum(x) - x_c)) is p_c * sum(w) - w_c. */
static void entropy_grad_run(KilnCall *call, bool soft)
{
    const KilnLabelAttrs *attrs = call->attrs;
    const KilnArg *p = &call->inputs[1], *targets = &call->inputs[2], *weight = &call->inputs[3];
    const int32_t *labels = soft ? NULL : targets->data;
    const int64_t rows = kiln_ref_rows(p), n = attrs->classes;
    const double by = divisor(attrs, labels, rows, weight);

    for (int64_t r = 0; r < rows; r++) {
        const double scale = row_scale(attrs, &call->inputs[0], labels, r, by);
        double total = 0.0;

        for (int64_t c = 0; c < n; c++)
            total += wanted(attrs, labels, targets, weight, r, c);
        for (int64_t c = 0; c < n; c++)
            kiln_ref_set(&call->outputs[0], r * n + c,
                         scale * (kiln_ref_get(p, r * n + c) * total -
                                  wanted(attrs, labels, targets, weight, r, c)));
    }
}

static void cross_entropy_grad_run(KilnCall *call)
{
    entropy_grad_run(call, false);
}

static void cross_entropy_soft_grad_run(KilnCall *call)
{
    entropy_grad_run(call, true);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_softmax, .run = softmax_run, .in_place = 1 },
    { .op = &kiln_op_softmax_grad, .run = softmax_grad_run },
    { .op = &kiln_op_log_softmax, .run = log_softmax_run, .in_place = 1 },
    { .op = &kiln_op_log_softmax_grad, .run = log_softmax_grad_run },
    { .op = &kiln_op_nll, .run = nll_run },
    { .op = &kiln_op_nll_grad, .run = nll_grad_run },
    { .op = &kiln_op_cross_entropy, .run = cross_entropy_run },
    { .op = &kiln_op_cross_entropy_grad, .run = cross_entropy_grad_run },
    { .op = &kiln_op_cross_entropy_soft, .run = cross_entropy_soft_run },
    { .op = &kiln_op_cross_entropy_soft_grad, .run = cross_entropy_soft_grad_run },
};

const KilnRefTable kiln_ref_losses = { kernels, KILN_COUNT(kernels) };
