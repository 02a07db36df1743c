/* Reference of embeddings. Their gradients write every row, and list those of the step. */
#include "backend/ref/ref.h"

#include <math.h>

/* ---- index_select ------------------------------------------------------------------ */

/* x as [outer, rows, inner]; `n` indices select rows. */
typedef struct Select {
    int64_t outer, rows, inner, n;
    const int32_t *index;
} Select;

static Select select_of(const KilnCall *call)
{
    const KilnSelectAttrs *attrs = call->attrs;
    Select select = { .outer = 1, .inner = 1, .rows = attrs->shape.dim[attrs->axis] };

    for (int axis = 0; axis < attrs->axis; axis++)
        select.outer *= attrs->shape.dim[axis];
    for (int axis = (int)attrs->axis + 1; axis < attrs->shape.rank; axis++)
        select.inner *= attrs->shape.dim[axis];
    select.n = kiln_ref_count(&call->inputs[1]);
    select.index = call->inputs[1].data;
    return select;
}

static void index_select_run(KilnCall *call)
{
    const Select s = select_of(call);
    const KilnDType dtype = call->inputs[0].dtype;
    const bool floats = dtype == KILN_F32 || dtype == KILN_F64 || dtype == KILN_BF16;

    for (int64_t i = 0; i < s.outer * s.n * s.inner; i++) {
        const int64_t row = s.index[i / s.inner % s.n], o = i / s.inner / s.n;
        const bool known = row >= 0 && row < s.rows;

        kiln_ref_set(
            &call->outputs[0], i,
            known    ? kiln_ref_get(&call->inputs[0], (o * s.rows + row) * s.inner + i % s.inner)
            : floats ? NAN
                     : 0.0);
    }
}

/* ---- Gradients ----------------------------------------------------------------------- */

/* Output 0, zeroed, or `sum` as it is if the gradient is added to it. */
static KilnArg *start_gradient(KilnCall *call, KilnArg *sum)
{
    KilnArg *dx = sum->absent ? &call->outputs[0] : sum;

    for (int64_t i = 0; sum->absent && i < kiln_ref_count(dx); i++)
        kiln_ref_set(dx, i, 0.0);
    return dx;
}

/* Lists the looked-up rows, if the gradient is in its destination. */
static void list_rows(const KilnCall *call, const KilnArg *sparse_rows, const KilnArg *sum,
                      int64_t rows, int64_t padding)
{
    const int32_t *index = call->inputs[1].data;
    int32_t *list = sparse_rows->data;

    if (sparse_rows->absent || (!sum->absent && list[0] == KILN_SPARSE_ROWS_ALL))
        return;
    if (sum->absent)
        list[0] = call->outputs[0].has_dest ? 0 : KILN_SPARSE_ROWS_ALL;
    for (int64_t i = 0; i < kiln_ref_count(&call->inputs[1]) && list[0] >= 0; i++)
        if (index[i] >= 0 && index[i] < rows && index[i] != padding)
            kiln_sparse_rows_add(list, rows, index[i]);
}

static void index_select_grad_run(KilnCall *call)
{
    const KilnSelectAttrs *attrs = call->attrs;
    const Select s = select_of(call);
    KilnArg *dx = start_gradient(call, &call->inputs[3]);

    list_rows(call, &call->inputs[2], &call->inputs[3], s.rows, attrs->padding);
    for (int64_t i = 0; i < s.outer * s.n * s.inner; i++) {
        const int64_t row = s.index[i / s.inner % s.n];
        const int64_t to = (i / s.inner / s.n * s.rows + row) * s.inner + i % s.inner;

        if (row >= 0 && row < s.rows && row != attrs->padding)
            kiln_ref_set(dx, to, kiln_ref_get(dx, to) + kiln_ref_get(&call->inputs[0], i));
    }
}

/* ---- embedding_bag ----------------------------------------------------------------- */

/* Bag b is index[first..end); false for invalid offsets. */
static bool bag_range(const KilnArg *index, const KilnArg *offsets, int64_t b, int64_t *ret_first,
                      int64_t *ret_end)
{
    const int64_t n = kiln_ref_count(index);

    if (offsets->absent) {
        const int64_t length = index->shape.dim[1];

        *ret_first = b * length;
        *ret_end = *ret_first + length;
        return true;
    }
    const int32_t *offset = offsets->data;
    *ret_first = offset[b];
    *ret_end = b + 1 < kiln_ref_count(offsets) ? offset[b + 1] : n;
    return *ret_first >= 0 && *ret_first <= *ret_end && *ret_end <= n;
}

/* Number of the bag's rows that count; -1 if one does not exist. */
static int64_t bag_size(const KilnBagAttrs *attrs, const int32_t *index, int64_t first, int64_t end)
{
    int64_t size = 0;

    for (int64_t i = first; i < end; i++) {
        if (index[i] < 0 || index[i] >= attrs->rows)
            return -1;
        size += index[i] != attrs->padding;
    }
    return size;
}

static double factor_of(const KilnArg *factors, int64_t i)
{
    return factors->absent ? 1.0 : kiln_ref_get(factors, i);
}

/* The value of one bag in column d, and the winning row. */
static double bag_value(const KilnCall *call, int64_t first, int64_t end, int64_t d,
                        int32_t *ret_winner)
{
    const KilnBagAttrs *attrs = call->attrs;
    const int32_t *index = call->inputs[1].data;
    const int64_t width = kiln_ref_columns(&call->inputs[0]);
    double sum = 0.0, most = 0.0;

    *ret_winner = -1;
    for (int64_t i = first; i < end; i++) {
        if (index[i] == attrs->padding)
            continue;

        const double value = kiln_ref_get(&call->inputs[0], index[i] * width + d);

        sum += value * factor_of(&call->inputs[4], i);
        if (*ret_winner < 0 || value > most || isnan(value)) {
            most = value;
            *ret_winner = index[i];
        }
    }
    return attrs->mode == KILN_BAG_MAX ? most : sum;
}

static void embedding_bag_run(KilnCall *call)
{
    const KilnBagAttrs *attrs = call->attrs;
    KilnArg *y = &call->outputs[0];
    const int64_t width = kiln_ref_columns(y);

    for (int64_t b = 0; b < kiln_ref_rows(y); b++) {
        int64_t first, end;
        const bool fits = bag_range(&call->inputs[1], &call->inputs[2], b, &first, &end);
        const int64_t size = fits ? bag_size(attrs, call->inputs[1].data, first, end) : -1;

        for (int64_t d = 0; d < width; d++) {
            int32_t winner = -1;
            double value = size >= 0 ? bag_value(call, first, end, d, &winner) : NAN;

            if (attrs->mode == KILN_BAG_MEAN && size > 0)
                value /= (double)size;
            kiln_ref_set(y, b * width + d, value);
            if (attrs->mode == KILN_BAG_MAX)
                ((int32_t *)call->outputs[1].data)[b * width + d] = winner;
        }
    }
}

/* Adds the terms of bag b = index[first..end) to dx. */
typedef void AddBag(KilnCall *call, KilnArg *dx, int64_t b, int64_t first, int64_t end);

static void add_bags(KilnCall *call, KilnArg *dx, AddBag *add)
{
    for (int64_t b = 0; b < kiln_ref_rows(&call->inputs[0]); b++) {
        int64_t first, end;

        if (bag_range(&call->inputs[1], &call->inputs[2], b, &first, &end))
            add(call, dx, b, first, end);
    }
}

static void bag_grad(KilnCall *call, KilnArg *dx, int64_t b, int64_t first, int64_t end)
{
    const KilnBagAttrs *attrs = call->attrs;
    const int32_t *index = call->inputs[1].data, *winners = call->inputs[3].data;
    const int64_t width = kiln_ref_columns(dx), size = bag_size(attrs, index, first, end);
    const double scale = attrs->mode == KILN_BAG_MEAN ? 1.0 / (double)size : 1.0;

    for (int64_t d = 0; d < width && size > 0; d++) {
        const double dy = kiln_ref_get(&call->inputs[0], b * width + d) * scale;

        if (attrs->mode == KILN_BAG_MAX) {
            const int64_t to = winners[b * width + d] * width + d;

            kiln_ref_set(dx, to, kiln_ref_get(dx, to) + dy);
            continue;
        }
        for (int64_t i = first; i < end; i++) {
            const int64_t to = index[i] * width + d;

            if (index[i] != attrs->padding)
                kiln_ref_set(dx, to, kiln_ref_get(dx, to) + dy * factor_of(&call->inputs[5], i));
        }
    }
}

static void embedding_bag_grad_run(KilnCall *call)
{
    const KilnBagAttrs *attrs = call->attrs;
    KilnArg *sum = &call->inputs[6];

    add_bags(call, start_gradient(call, sum), bag_grad);
    list_rows(call, &call->inputs[4], sum, attrs->rows, attrs->padding);
}

static void factors_grad(KilnCall *call, KilnArg *dx, int64_t b, int64_t first, int64_t end)
{
    const KilnBagAttrs *attrs = call->attrs;
    const int32_t *index = call->inputs[1].data;
    const int64_t width = kiln_ref_columns(&call->inputs[0]);

    for (int64_t i = first; i < end && bag_size(attrs, index, first, end) > 0; i++) {
        double sum = kiln_ref_get(dx, i);

        for (int64_t d = 0; d < width && index[i] != attrs->padding; d++)
            sum += kiln_ref_get(&call->inputs[0], b * width + d) *
                   kiln_ref_get(&call->inputs[3], index[i] * width + d);
        kiln_ref_set(dx, i, sum);
    }
}

static void embedding_bag_factors_grad_run(KilnCall *call)
{
    KilnArg none = { .absent = true };

    add_bags(call, start_gradient(call, &none), factors_grad);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_index_select, .run = index_select_run },
    { .op = &kiln_op_index_select_grad, .run = index_select_grad_run },
    { .op = &kiln_op_embedding_bag, .run = embedding_bag_run },
    { .op = &kiln_op_embedding_bag_grad, .run = embedding_bag_grad_run },
    { .op = &kiln_op_embedding_bag_factors_grad, .run = embedding_bag_factors_grad_run },
};

const KilnRefTable kiln_ref_embedding = { kernels, KILN_COUNT(kernels) };
