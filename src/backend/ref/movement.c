/* Reference of operations that slice, join, select and scatter elements. */
#include "backend/ref/ref.h"

#include <math.h>
#include <string.h>

/* Product of the sizes of axes first to last - 1. */
static int64_t product(const KilnShape *shape, int64_t first, int64_t last)
{
    int64_t n = 1;

    for (int64_t axis = first; axis < last; axis++)
        n *= shape->dim[axis];
    return n;
}

/* The multi-index of element i. */
static void index_of(const KilnShape *shape, int64_t i, int64_t index[KILN_MAX_RANK])
{
    for (int axis = shape->rank - 1; axis >= 0; axis--) {
        index[axis] = i % shape->dim[axis];
        i /= shape->dim[axis];
    }
}

static int64_t element_of(const KilnShape *shape, const int64_t index[KILN_MAX_RANK])
{
    int64_t i = 0;

    for (int axis = 0; axis < shape->rank; axis++)
        i = i * shape->dim[axis] + index[axis];
    return i;
}

/* ---- Cutting and joining --------------------------------------------------------- */

/* Index in `whole` of element i of `part`, through the window. */
static int64_t through(const KilnWindowAttrs *attrs, const KilnShape *part, const KilnShape *whole,
                       int64_t i)
{
    int64_t index[KILN_MAX_RANK];

    index_of(part, i, index);
    for (int axis = 0; axis < part->rank; axis++)
        index[axis] = attrs->start[axis] + index[axis] * attrs->step[axis];
    return element_of(whole, index);
}

static void slice_run(KilnCall *call)
{
    const KilnArg *x = &call->inputs[0];
    KilnArg *y = &call->outputs[0];

    for (int64_t i = 0; i < kiln_ref_count(y); i++)
        kiln_ref_set(y, i, kiln_ref_get(x, through(call->attrs, &y->shape, &x->shape, i)));
}

static void pad_run(KilnCall *call)
{
    const KilnWindowAttrs *attrs = call->attrs;
    const KilnArg *x = &call->inputs[0];
    KilnArg *y = &call->outputs[0];

    for (int64_t i = 0; i < kiln_ref_count(y); i++)
        kiln_ref_set(y, i, attrs->value);
    for (int64_t i = 0; i < kiln_ref_count(x); i++)
        kiln_ref_set(y, through(attrs, &x->shape, &y->shape, i), kiln_ref_get(x, i));
}

/* Copies `part` into or out of `whole`, from `from` on the axis. */
static void copy_piece(KilnArg *part, KilnArg *whole, int axis, int64_t from, bool out)
{
    int64_t index[KILN_MAX_RANK];

    for (int64_t i = 0; i < kiln_ref_count(part); i++) {
        index_of(&part->shape, i, index);
        index[axis] += from;

        const int64_t at = element_of(&whole->shape, index);

        if (out)
            kiln_ref_set(part, i, kiln_ref_get(whole, at));
        else
            kiln_ref_set(whole, at, kiln_ref_get(part, i));
    }
}

static void concat_run(KilnCall *call)
{
    const int axis = (int)((const KilnConcatAttrs *)call->attrs)->axis;
    int64_t from = 0;

    for (int i = 0; i < call->n_inputs; i++) {
        copy_piece(&call->inputs[i], &call->outputs[0], axis, from, false);
        from += call->inputs[i].shape.dim[axis];
    }
}

static void split_run(KilnCall *call)
{
    const int axis = (int)((const KilnSplitAttrs *)call->attrs)->axis;
    int64_t from = 0;

    for (int i = 0; i < call->n_outputs; i++) {
        copy_piece(&call->outputs[i], &call->inputs[0], axis, from, true);
        from += call->outputs[i].shape.dim[axis];
    }
}

static void triangle_run(KilnCall *call)
{
    const KilnTriangleAttrs *attrs = call->attrs;
    const KilnShape *shape = &call->outputs[0].shape;
    const int64_t columns = shape->dim[shape->rank - 1], rows = shape->dim[shape->rank - 2];

    for (int64_t i = 0; i < kiln_ref_count(&call->outputs[0]); i++) {
        const int64_t above = i % columns - i / columns % rows - attrs->diagonal;
        const bool kept = attrs->upper != 0 ? above >= 0 : above <= 0;

        kiln_ref_set(&call->outputs[0], i, kept ? kiln_ref_get(&call->inputs[0], i) : attrs->value);
    }
}

/* ---- By index -------------------------------------------------------------------- */

/* The index in x that element i of `index` selects; -1 if out of range. */
static int64_t indexed(const KilnArg *x, const KilnArg *index, int64_t axis, int64_t i)
{
    int64_t at[KILN_MAX_RANK];
    const int32_t said = ((const int32_t *)index->data)[i];

    index_of(&index->shape, i, at);
    at[axis] = said;
    return said >= 0 && said < x->shape.dim[axis] ? element_of(&x->shape, at) : -1;
}

static double nothing(KilnDType dtype)
{
    return dtype == KILN_F32 || dtype == KILN_F64 || dtype == KILN_BF16 ? NAN : 0.0;
}

static void gather_run(KilnCall *call)
{
    const KilnAxisAttrs *attrs = call->attrs;
    const KilnArg *x = &call->inputs[0];
    KilnArg *y = &call->outputs[0];

    for (int64_t i = 0; i < kiln_ref_count(y); i++) {
        const int64_t from = indexed(x, &call->inputs[1], attrs->axis, i);

        kiln_ref_set(y, i, from >= 0 ? kiln_ref_get(x, from) : nothing(x->dtype));
    }
}

static void scatter_add_run(KilnCall *call)
{
    const KilnAxisAttrs *attrs = call->attrs;
    const KilnArg *index = &call->inputs[1], *src = &call->inputs[2];
    KilnArg *y = &call->outputs[0];

    memmove(y->data, call->inputs[0].data, y->bytes);
    for (int64_t i = 0; i < kiln_ref_count(index); i++) {
        int64_t at[KILN_MAX_RANK], to = indexed(y, index, attrs->axis, i);
        double term = kiln_ref_get(src, i);

        if (to < 0) {
            index_of(&index->shape, i, at);
            at[attrs->axis] = 0;
            to = element_of(&y->shape, at);
            term = NAN;
        }
        kiln_ref_set(y, to, kiln_ref_get(y, to) + term);
    }
}

static void one_hot_run(KilnCall *call)
{
    const int64_t classes = kiln_ref_columns(&call->outputs[0]);

    for (int64_t i = 0; i < kiln_ref_count(&call->outputs[0]); i++)
        kiln_ref_set(&call->outputs[0], i,
                     ((const int32_t *)call->inputs[0].data)[i / classes] == i % classes);
}

static void arange_run(KilnCall *call)
{
    const KilnArangeAttrs *attrs = call->attrs;

    for (int64_t i = 0; i < attrs->size; i++)
        kiln_ref_set(&call->outputs[0], i, attrs->start + (double)i * attrs->step);
}

static void cumsum_run(KilnCall *call)
{
    const KilnCumsumAttrs *attrs = call->attrs;
    const KilnShape *shape = &call->outputs[0].shape;
    const int64_t n = shape->dim[attrs->axis];
    const int64_t inner = product(shape, attrs->axis + 1, shape->rank);
    const int64_t outer = product(shape, 0, attrs->axis);

    for (int64_t line = 0; line < outer * inner; line++) {
        double sum = 0.0;

        for (int64_t k = 0; k < n; k++) {
            const int64_t position = attrs->reverse != 0 ? n - 1 - k : k;
            const int64_t i = (line / inner * n + position) * inner + line % inner;

            sum += kiln_ref_get(&call->inputs[0], i);
            kiln_ref_set(&call->outputs[0], i, sum);
        }
    }
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_slice, .run = slice_run },
    { .op = &kiln_op_pad, .run = pad_run },
    { .op = &kiln_op_concat, .run = concat_run },
    { .op = &kiln_op_split, .run = split_run },
    { .op = &kiln_op_triangle, .run = triangle_run, .in_place = 1 },
    { .op = &kiln_op_gather, .run = gather_run },
    { .op = &kiln_op_scatter_add, .run = scatter_add_run, .in_place = 1 },
    { .op = &kiln_op_one_hot, .run = one_hot_run },
    { .op = &kiln_op_arange, .run = arange_run },
    { .op = &kiln_op_cumsum, .run = cumsum_run },
};

const KilnRefTable kiln_ref_movement = { kernels, KILN_COUNT(kernels) };
