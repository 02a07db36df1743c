/* Reference of batch normalization over all axes except the last. */
#include "backend/ref/ref.h"

#include <math.h>

/* An element of an optional input, or the default. */
static double get_or(const KilnCall *call, int input, int64_t i, double otherwise)
{
    return call->inputs[input].absent ? otherwise : kiln_ref_get(&call->inputs[input], i);
}

/* Sets element i of a result: adds `more`, then applies the relu if the attributes have it. */
static void set_result(KilnCall *call, int more, int64_t i, double value)
{
    const KilnBatchNormAttrs *attrs = call->attrs;

    value += get_or(call, more, i, 0.0);
    kiln_ref_set(&call->outputs[0], i, attrs->relu != 0 && value < 0.0 ? 0.0 : value);
}

static void batch_norm_run(KilnCall *call)
{
    const KilnBatchNormAttrs *attrs = call->attrs;
    const KilnArg *x = &call->inputs[0];
    int64_t rows = kiln_ref_rows(x), columns = kiln_ref_columns(x);

    for (int64_t c = 0; c < columns; c++) {
        double weight = kiln_ref_get(&call->inputs[1], c), bias = kiln_ref_get(&call->inputs[2], c);
        double mean = 0.0, var = 0.0;

        for (int64_t r = 0; r < rows; r++)
            mean += kiln_ref_get(x, r * columns + c);
        mean /= (double)rows;
        for (int64_t r = 0; r < rows; r++) {
            double d = kiln_ref_get(x, r * columns + c) - mean;

            var += d * d;
        }
        var /= (double)rows;
        for (int64_t r = 0; r < rows; r++) {
            double d = kiln_ref_get(x, r * columns + c) - mean;

            set_result(call, 3, r * columns + c, d / sqrt(var + attrs->eps) * weight + bias);
        }
        kiln_ref_set(&call->outputs[1], c, mean);
        kiln_ref_set(&call->outputs[2], c, var);
    }
}

/* The masked gradient of element i, of channel c; h is the normalized x. */
static double gradient_at(const KilnCall *call, int64_t i, int64_t c, double h)
{
    const KilnBatchNormAttrs *attrs = call->attrs;
    double dy = kiln_ref_get(&call->inputs[0], i) + get_or(call, 7, i, 0.0);
    double again = h * kiln_ref_get(&call->inputs[2], c) + get_or(call, 5, c, 0.0);

    return attrs->relu != 0 && get_or(call, 6, i, again) <= 0.0 ? 0.0 : dy;
}

/* With h = (x - mean) / sqrt(var + eps):
 * dx = weight / sqrt(var + eps) * (dy - mean(dy) - h * mean(dy * h)). */
static void batch_norm_grad_run(KilnCall *call)
{
    const KilnBatchNormAttrs *attrs = call->attrs;
    const KilnArg *x = &call->inputs[1];
    int64_t rows = kiln_ref_rows(x), columns = kiln_ref_columns(x);

    for (int64_t c = 0; c < columns; c++) {
        double weight = kiln_ref_get(&call->inputs[2], c), mean = kiln_ref_get(&call->inputs[3], c);
        double scale = 1.0 / sqrt(kiln_ref_get(&call->inputs[4], c) + attrs->eps);
        double sum_dy = 0.0, sum_dy_h = 0.0;

        for (int64_t r = 0; r < rows; r++) {
            double h = (kiln_ref_get(x, r * columns + c) - mean) * scale;
            double d = gradient_at(call, r * columns + c, c, h);

            if (call->n_outputs > 3)
                kiln_ref_set(&call->outputs[3], r * columns + c, d);
            sum_dy += d;
            sum_dy_h += d * h;
        }
        for (int64_t r = 0; r < rows; r++) {
            double h = (kiln_ref_get(x, r * columns + c) - mean) * scale;
            double d = gradient_at(call, r * columns + c, c, h);

            kiln_ref_set(&call->outputs[0], r * columns + c,
                         weight * scale *
                             (d - sum_dy / (double)rows - h * sum_dy_h / (double)rows));
        }
        kiln_ref_set(&call->outputs[1], c, sum_dy_h);
        kiln_ref_set(&call->outputs[2], c, sum_dy);
    }
}

static void batch_norm_eval_run(KilnCall *call)
{
    const KilnBatchNormAttrs *attrs = call->attrs;
    int64_t columns = kiln_ref_columns(&call->inputs[0]);

    for (int64_t i = 0; i < kiln_ref_count(&call->outputs[0]); i++) {
        int64_t c = i % columns;
        double d = kiln_ref_get(&call->inputs[0], i) - kiln_ref_get(&call->inputs[3], c);
        double var = kiln_ref_get(&call->inputs[4], c);

        set_result(call, 5, i,
                   d / sqrt(var + attrs->eps) * kiln_ref_get(&call->inputs[1], c) +
                       kiln_ref_get(&call->inputs[2], c));
    }
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_batch_norm, .run = batch_norm_run },
    { .op = &kiln_op_batch_norm_grad, .run = batch_norm_grad_run },
    { .op = &kiln_op_batch_norm_eval, .run = batch_norm_eval_run },
};

const KilnRefTable kiln_ref_normalization = { kernels, KILN_COUNT(kernels) };
