/* Reference of sums, means and largest elements of groups of rows. */
#include <math.h>

#include "backend/ref/ref.h"

/* Rows of the segment; 0 if there is no such one. */
static int64_t rows_of(const KilnArg *ids, int64_t segment)
{
    int64_t n = 0;

    for (int64_t i = 0; i < kiln_ref_count(ids); i++)
        n += ((const int32_t *)ids->data)[i] == segment;
    return n;
}

/* Column c of a segment, over its rows in order. */
static double value_of(const KilnCall *call, int64_t segment, int64_t c, int64_t inner)
{
    const KilnSegmentAttrs *attrs = call->attrs;
    const KilnArg *ids = &call->inputs[1];
    double value = 0.0;
    int64_t n = 0;

    for (int64_t i = 0; i < kiln_ref_count(ids); i++) {
        const int32_t id = ((const int32_t *)ids->data)[i];
        const double x = kiln_ref_get(&call->inputs[0], i * inner + c);

        if (id >= attrs->count && segment == 0)
            return NAN;
        if (id != segment)
            continue;
        if (attrs->mode != KILN_SEGMENT_MAX)
            value += x;
        else if (n == 0 || isnan(x) || x > value)
            value = x;
        n++;
    }
    return attrs->mode == KILN_SEGMENT_MEAN && n > 0 ? value / (double)n : value;
}

static void segment_run(KilnCall *call)
{
    const KilnSegmentAttrs *attrs = call->attrs;
    const int64_t inner = kiln_ref_count(&call->outputs[0]) / attrs->count;

    for (int64_t i = 0; i < kiln_ref_count(&call->outputs[0]); i++)
        kiln_ref_set(&call->outputs[0], i, value_of(call, i / inner, i % inner, inner));
}

/* Number of rows of segment `id` whose element c is the largest. */
static int64_t largest_rows(const KilnCall *call, int32_t id, int64_t c, int64_t inner)
{
    const int32_t *ids = call->inputs[1].data;
    const double most = kiln_ref_get(&call->inputs[3], id * inner + c);
    int64_t n = 0;

    for (int64_t i = 0; i < kiln_ref_count(&call->inputs[1]); i++)
        n += ids[i] == id && kiln_ref_get(&call->inputs[2], i * inner + c) == most;
    return n;
}

/* Element c of row i of the gradient. */
static double gradient_of(const KilnCall *call, int64_t i, int64_t c, int64_t inner)
{
    const KilnSegmentAttrs *attrs = call->attrs;
    const int32_t id = ((const int32_t *)call->inputs[1].data)[i];

    if (id < 0 || id >= attrs->count)
        return 0.0;

    const double dy = kiln_ref_get(&call->inputs[0], id * inner + c);

    if (attrs->mode == KILN_SEGMENT_SUM)
        return dy;
    if (attrs->mode == KILN_SEGMENT_MEAN)
        return dy / (double)rows_of(&call->inputs[1], id);
    if (kiln_ref_get(&call->inputs[2], i * inner + c) !=
        kiln_ref_get(&call->inputs[3], id * inner + c))
        return 0.0;
    return dy / (double)largest_rows(call, id, c, inner);
}

static void segment_grad_run(KilnCall *call)
{
    const KilnSegmentAttrs *attrs = call->attrs;
    const int64_t inner = kiln_ref_count(&call->inputs[0]) / attrs->count;

    for (int64_t i = 0; i < kiln_ref_count(&call->outputs[0]); i++)
        kiln_ref_set(&call->outputs[0], i, gradient_of(call, i / inner, i % inner, inner));
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_segment, .run = segment_run },
    { .op = &kiln_op_segment_grad, .run = segment_grad_run },
};

const KilnRefTable kiln_ref_segment = { kernels, KILN_COUNT(kernels) };
