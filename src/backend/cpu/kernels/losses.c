/* Probabilities and classification losses, row by row. The vector loops are in isa/losses.c. */
#include "backend/cpu/cpu.h"

#include <math.h>

static const KilnLossLoops *rows_of(const KilnCall *call)
{
    return kiln_cpu(call)->loops->losses;
}

static int64_t grain_of(int64_t columns)
{
    return 2048 / (columns + 1) + 1;
}

/* Splits the rows of argument `x` between the threads. */
static void each_row(KilnCall *call, const KilnArg *x, KilnRange range)
{
    kiln_parallel(call->backend->threads, kiln_cpu_rows(x), grain_of(kiln_cpu_columns(x)), 1, range,
                  call);
}

static const float *in(const KilnCall *call, int i, int64_t begin)
{
    return call->inputs[i].absent ? NULL : (const float *)call->inputs[i].data + begin;
}

static float *out(const KilnCall *call, int i, int64_t begin)
{
    return (float *)call->outputs[i].data + begin;
}

/* ---- softmax, log_softmax ------------------------------------------------------------ */

static void softmax_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const int64_t n = kiln_cpu_columns(&call->inputs[0]);

    rows_of(call)->softmax(out(call, 0, begin * n), NULL, in(call, 0, begin * n), end - begin, n);
}

static void softmax_run(KilnCall *call)
{
    each_row(call, &call->inputs[0], softmax_part);
}

static void softmax_grad_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const int64_t n = kiln_cpu_columns(&call->inputs[0]);

    for (int64_t r = begin; r < end; r++)
        kiln_cpu(call)->loops->softmax_grad(out(call, 0, r * n), in(call, 0, r * n),
                                            in(call, 1, r * n), n);
}

static void softmax_grad_run(KilnCall *call)
{
    each_row(call, &call->inputs[0], softmax_grad_part);
}

static void log_softmax_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const int64_t n = kiln_cpu_columns(&call->inputs[0]);

    rows_of(call)->log_softmax(out(call, 0, begin * n), in(call, 0, begin * n), end - begin, n);
}

static void log_softmax_run(KilnCall *call)
{
    each_row(call, &call->inputs[0], log_softmax_part);
}

static void log_softmax_grad_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const int64_t n = kiln_cpu_columns(&call->inputs[0]);

    for (int64_t r = begin; r < end; r++)
        rows_of(call)->log_softmax_grad(out(call, 0, r * n), in(call, 0, r * n), in(call, 1, r * n),
                                        n);
}

static void log_softmax_grad_run(KilnCall *call)
{
    each_row(call, &call->inputs[0], log_softmax_grad_part);
}

/* ---- Labels --------------------------------------------------------------------------- */

typedef enum Label { LABEL_COUNTS, LABEL_IGNORED, LABEL_WRONG } Label;

/* A label outside the classes gives NaN, so that it shows instead of being learned. */
static Label label_kind(const KilnLabelAttrs *attrs, int32_t label)
{
    if (label == attrs->ignore_index)
        return LABEL_IGNORED;
    return label >= 0 && label < attrs->classes ? LABEL_COUNTS : LABEL_WRONG;
}

static float weight_at(const float *weight, int64_t c)
{
    return weight != NULL ? weight[c] : 1.0f;
}

/* The divisor of a reduced loss: rows for targets (labels NULL); for labels the sum of weights over
 * rows that count. */
static double divisor(const KilnLabelAttrs *attrs, const int32_t *labels, const float *weight,
                      int64_t rows)
{
    double total = 0.0;

    if (attrs->reduction != KILN_REDUCTION_MEAN)
        return 1.0;
    if (labels == NULL)
        return (double)rows;
    for (int64_t r = 0; r < rows; r++)
        if (label_kind(attrs, labels[r]) == LABEL_COUNTS)
            total += (double)weight_at(weight, labels[r]);
    return total;
}

/* ---- Forward: per-row losses in the workspace, added in order --------------------------- */

/* Input 0 has the rows; losses, and other values per row, are doubles. */
static KilnStatus loss_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    for (int i = 0; i < call->n_inputs; i++)
        call->inputs[i].layout = KILN_PLAIN;
    call->workspace_size = (size_t)kiln_cpu_rows(&call->inputs[0]) * sizeof(double);
    return KILN_OK;
}

static void reduce_losses(KilnCall *call, const int32_t *labels)
{
    const KilnLabelAttrs *attrs = call->attrs;
    const int64_t rows = kiln_cpu_rows(&call->inputs[0]);
    const double *losses = call->workspace;
    double total = 0.0;

    if (attrs->reduction == KILN_REDUCTION_NONE) {
        for (int64_t r = 0; r < rows; r++)
            out(call, 0, 0)[r] = (float)losses[r];
        return;
    }
    for (int64_t r = 0; r < rows; r++)
        total += losses[r];
    *out(call, 0, 0) = (float)(total / divisor(attrs, labels, in(call, 2, 0), rows));
}

static void nll_run(KilnCall *call)
{
    const KilnLabelAttrs *attrs = call->attrs;
    const int32_t *labels = call->inputs[1].data;
    const float *x = in(call, 0, 0), *weight = in(call, 2, 0);
    double *losses = call->workspace;

    for (int64_t r = 0; r < kiln_cpu_rows(&call->inputs[0]); r++) {
        const Label kind = label_kind(attrs, labels[r]);

        losses[r] = kind == LABEL_WRONG ? NAN : 0.0;
        if (kind == LABEL_COUNTS)
            losses[r] = -(double)weight_at(weight, labels[r]) *
                        (double)x[r * attrs->classes + labels[r]];
    }
    reduce_losses(call, labels);
}

static double row_loss(const KilnCall *call, const float *x, int32_t label, double log_sum)
{
    const KilnLabelAttrs *attrs = call->attrs;
    const int64_t n = attrs->classes;
    const float *weight = in(call, 2, 0);
    const Label kind = label_kind(attrs, label);

    if (kind != LABEL_COUNTS)
        return kind == LABEL_WRONG ? NAN : 0.0;

    const double smoothing = attrs->label_smoothing;
    double loss = (1.0 - smoothing) * (double)weight_at(weight, label) *
                  (log_sum - (double)x[label]);

    if (smoothing != 0.0) {
        double sum = 0.0;

        for (int64_t c = 0; c < n; c++)
            sum += (double)weight_at(weight, c) * (log_sum - (double)x[c]);
        loss += smoothing / (double)n * sum;
    }
    return loss;
}

static void cross_entropy_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const int32_t *labels = call->inputs[1].data;
    const int64_t n = kiln_cpu_columns(&call->inputs[0]);
    double *losses = call->workspace;

    rows_of(call)->softmax(out(call, 1, begin * n), losses + begin, in(call, 0, begin * n),
                           end - begin, n);
    for (int64_t r = begin; r < end; r++)
        losses[r] = row_loss(call, in(call, 0, r * n), labels[r], losses[r]);
}

static void cross_entropy_run(KilnCall *call)
{
    each_row(call, &call->inputs[0], cross_entropy_part);
    reduce_losses(call, call->inputs[1].data);
}

/* Weight times the target probability of each class, smoothing included. */
static void soft_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const KilnLabelAttrs *attrs = call->attrs;
    const int64_t n = attrs->classes;
    const float *weight = in(call, 2, 0);
    const double share = attrs->label_smoothing / (double)n;
    double *losses = call->workspace;

    rows_of(call)->softmax(out(call, 1, begin * n), losses + begin, in(call, 0, begin * n),
                           end - begin, n);
    for (int64_t r = begin; r < end; r++) {
        const float *x = in(call, 0, r * n), *target = in(call, 1, r * n);
        const double log_sum = losses[r];
        double loss = 0.0;

        for (int64_t c = 0; c < n; c++) {
            const double wanted = (double)weight_at(weight, c) *
                                  (share + (1.0 - attrs->label_smoothing) * (double)target[c]);

            if (wanted != 0.0) /* an impossible class of probability 0 costs nothing */
                loss += wanted * (log_sum - (double)x[c]);
        }
        losses[r] = loss;
    }
}

static void cross_entropy_soft_run(KilnCall *call)
{
    each_row(call, &call->inputs[0], soft_part);
    reduce_losses(call, NULL);
}

/* ---- Backward --------------------------------------------------------------------------- */

/* One double in the workspace: the loss's divisor. */
static KilnStatus grad_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    for (int i = 0; i < call->n_inputs; i++)
        call->inputs[i].layout = KILN_PLAIN;
    call->workspace_size = sizeof(double);
    return KILN_OK;
}

/* The factor of the row's own loss. */
static double row_scale(const KilnCall *call, int64_t r)
{
    const KilnLabelAttrs *attrs = call->attrs;
    const float *dloss = in(call, 0, 0);

    return (double)dloss[attrs->reduction == KILN_REDUCTION_NONE ? r : 0] /
           *(const double *)call->workspace;
}

static void nll_grad_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const KilnLabelAttrs *attrs = call->attrs;
    const int32_t *labels = call->inputs[1].data;
    const int64_t n = attrs->classes;

    for (int64_t r = begin; r < end; r++) {
        const Label kind = label_kind(attrs, labels[r]);

        kiln_cpu(call)->loops->fill(out(call, 0, r * n), kind == LABEL_WRONG ? NAN : 0.0f, n);
        if (kind == LABEL_COUNTS)
            *out(call, 0, r * n + labels[r]) =
                (float)(-row_scale(call, r) * (double)weight_at(in(call, 2, 0), labels[r]));
    }
}

static void nll_grad_run(KilnCall *call)
{
    const KilnLabelAttrs *attrs = call->attrs;
    const int64_t rows = kiln_cpu_count(&call->inputs[1]);

    *(double *)call->workspace = divisor(attrs, call->inputs[1].data, in(call, 2, 0), rows);
    each_row(call, &call->outputs[0], nll_grad_part);
}

/* d/dx of sum(w * (log_sum(x) - x)), with w each class's target times its weight, is p * sum(w) -
 * w. */
static void cross_entropy_grad_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const KilnLabelAttrs *attrs = call->attrs;
    const int32_t *labels = call->inputs[2].data;
    const int64_t n = attrs->classes;
    const float *weight = in(call, 3, 0);
    const double smoothing = attrs->label_smoothing, share = smoothing / (double)n;
    const double all = smoothing == 0.0 ? 0.0
                       : weight == NULL ? (double)n
                                        : rows_of(call)->weighted_sum(weight, NULL, n);

    for (int64_t r = begin; r < end; r++) {
        const float *p = in(call, 1, r * n);
        float *dx = out(call, 0, r * n);
        const int32_t label = labels[r];
        const Label kind = label_kind(attrs, label);

        if (kind == LABEL_WRONG) {
            kiln_cpu(call)->loops->fill(dx, NAN, n);
            continue;
        }
        /* 0, and NaN where p is (as PyTorch). */
        if (kind != LABEL_COUNTS) {
            rows_of(call)->entropy_grad(dx, p, NULL, 0.0f, 0.0f, n);
            continue;
        }

        const double scale = row_scale(call, r), own = (double)weight_at(weight, label);
        const double sharp = (1.0 - smoothing) * own, total = sharp + share * all;

        rows_of(call)->entropy_grad(dx, p, weight, (float)(scale * total), (float)(scale * share),
                                    n);
        /* From the probability itself, since near 1 the two cancel; of one class exactly. */
        dx[label] = (float)(scale * (total * (double)p[label] - (sharp + share * own)));
    }
}

static void cross_entropy_grad_run(KilnCall *call)
{
    const KilnArg *p = &call->inputs[1];

    *(double *)call->workspace = divisor(call->attrs, call->inputs[2].data, in(call, 3, 0),
                                         kiln_cpu_rows(p));
    each_row(call, p, cross_entropy_grad_part);
}

static void soft_grad_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const KilnLabelAttrs *attrs = call->attrs;
    const int64_t n = attrs->classes;
    const float *weight = in(call, 3, 0);
    const float share = (float)(attrs->label_smoothing / (double)n);

    for (int64_t r = begin; r < end; r++) {
        const float *p = in(call, 1, r * n);
        float *dx = out(call, 0, r * n);

        rows_of(call)->blend_targets(dx, in(call, 2, r * n), weight, share,
                                     (float)(1.0 - attrs->label_smoothing), n);

        const double total = rows_of(call)->weighted_sum(dx, NULL, n), scale = row_scale(call, r);

        for (int64_t c = 0; c < n; c++)
            dx[c] = (float)(scale * (total * (double)p[c] - (double)dx[c]));
    }
}

static void cross_entropy_soft_grad_run(KilnCall *call)
{
    const KilnArg *p = &call->inputs[1];

    *(double *)call->workspace = divisor(call->attrs, NULL, NULL, kiln_cpu_rows(p));
    each_row(call, p, soft_grad_part);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_softmax, .run = softmax_run, .in_place = 1 },
    { .op = &kiln_op_softmax_grad, .run = softmax_grad_run },
    { .op = &kiln_op_log_softmax, .run = log_softmax_run, .in_place = 1 },
    { .op = &kiln_op_log_softmax_grad, .run = log_softmax_grad_run },
    { .op = &kiln_op_nll, .prepare = loss_prepare, .run = nll_run },
    { .op = &kiln_op_nll_grad, .prepare = grad_prepare, .run = nll_grad_run },
    { .op = &kiln_op_cross_entropy, .prepare = loss_prepare, .run = cross_entropy_run },
    { .op = &kiln_op_cross_entropy_grad, .prepare = grad_prepare, .run = cross_entropy_grad_run },
    { .op = &kiln_op_cross_entropy_soft, .prepare = loss_prepare, .run = cross_entropy_soft_run },
    { .op = &kiln_op_cross_entropy_soft_grad,
      .prepare = grad_prepare,
      .run = cross_entropy_soft_grad_run },
};

const KilnCpuTable kiln_cpu_losses = { kernels, KILN_COUNT(kernels) };
