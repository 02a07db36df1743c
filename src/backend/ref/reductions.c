/* Reference of reductions over axes. */
#include <math.h>

#include "backend/ref/ref.h"

/* The elements of one result: a start, and steps along the reduced axes. */
typedef struct Group {
    const KilnArg *x;
    uint32_t axes;
    int64_t start, count;
} Group;

static int64_t stride_of(const KilnShape *shape, int axis)
{
    int64_t stride = 1;

    for (int i = axis + 1; i < shape->rank; i++)
        stride *= shape->dim[i];
    return stride;
}

/* Offset of number i, counted over only the axes that are (not) in `axes`. */
static int64_t offset_over(const KilnShape *shape, uint32_t axes, int64_t i)
{
    int64_t at = 0;

    for (int axis = shape->rank - 1; axis >= 0; axis--) {
        if ((axes >> axis & 1) == 0)
            continue;
        at += i % shape->dim[axis] * stride_of(shape, axis);
        i /= shape->dim[axis];
    }
    return at;
}

static Group group_of(const KilnCall *call, int64_t i)
{
    const KilnReduceAttrs *attrs = call->attrs;
    const KilnArg *x = &call->inputs[0];

    return (Group) { .x = x,
                     .axes = attrs->axes,
                     .start = offset_over(&x->shape, ~attrs->axes, i),
                     .count = kiln_ref_count(x) / kiln_ref_count(&call->outputs[0]) };
}

static double element(const Group *group, int64_t i)
{
    return kiln_ref_get(group->x, group->start + offset_over(&group->x->shape, group->axes, i));
}

static double sum_of(const Group *group)
{
    double sum = 0.0;

    for (int64_t i = 0; i < group->count; i++)
        sum += element(group, i);
    return sum;
}

static double mean_of(const Group *group)
{
    return sum_of(group) / (double)group->count;
}

static int64_t largest_of(const Group *group, double sign)
{
    int64_t best = 0;

    for (int64_t i = 1; i < group->count && !isnan(element(group, best)); i++)
        if (isnan(element(group, i)) || sign * element(group, i) > sign * element(group, best))
            best = i;
    return best;
}

static double max_of(const Group *group)
{
    return element(group, largest_of(group, 1.0));
}

static double min_of(const Group *group)
{
    return element(group, largest_of(group, -1.0));
}

static double argmax_of(const Group *group)
{
    return (double)largest_of(group, 1.0);
}

static double logsumexp_of(const Group *group)
{
    double most = max_of(group), sum = 0.0;

    if (isinf(most))
        return most;
    for (int64_t i = 0; i < group->count; i++)
        sum += exp(element(group, i) - most);
    return most + log(sum);
}

static void reduce(KilnCall *call, double (*value)(const Group *group))
{
    for (int64_t i = 0; i < kiln_ref_count(&call->outputs[0]); i++) {
        Group group = group_of(call, i);

        kiln_ref_set(&call->outputs[0], i, value(&group));
    }
}

#define RUN(name)                                                                                  \
    static void name##_run(KilnCall *call)                                                         \
    {                                                                                              \
        reduce(call, name##_of);                                                                   \
    }
RUN(sum)
RUN(mean)
RUN(max)
RUN(min)
RUN(logsumexp)
RUN(argmax)

/* ---- Product ---------------------------------------------------------------------------- */

static void prod_run(KilnCall *call)
{
    const KilnArg *x = &call->inputs[0];
    const int64_t n = kiln_ref_columns(x);

    for (int64_t row = 0; row < kiln_ref_rows(x); row++) {
        double product = 1.0;

        for (int64_t i = 0; i < n; i++)
            product *= kiln_ref_get(x, row * n + i);
        kiln_ref_set(&call->outputs[0], row, product);
    }
}

/* dy times the product of the others. */
static void prod_grad_run(KilnCall *call)
{
    const KilnArg *x = &call->inputs[1];
    const int64_t n = kiln_ref_columns(x);

    for (int64_t row = 0; row < kiln_ref_rows(x); row++)
        for (int64_t i = 0; i < n; i++) {
            double product = kiln_ref_get(&call->inputs[0], row);

            for (int64_t k = 0; k < n; k++)
                product *= k != i ? kiln_ref_get(x, row * n + k) : 1.0;
            kiln_ref_set(&call->outputs[0], row * n + i, product);
        }
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_sum, .run = sum_run },
    { .op = &kiln_op_mean, .run = mean_run },
    { .op = &kiln_op_max, .run = max_run },
    { .op = &kiln_op_min, .run = min_run },
    { .op = &kiln_op_logsumexp, .run = logsumexp_run },
    { .op = &kiln_op_argmax, .run = argmax_run },
    { .op = &kiln_op_prod, .run = prod_run },
    { .op = &kiln_op_prod_grad, .run = prod_grad_run },
};

const KilnRefTable kiln_ref_reductions = { kernels, KILN_COUNT(kernels) };
