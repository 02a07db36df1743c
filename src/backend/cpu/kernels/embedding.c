/* Rows selected by index, alone and in bags. In the gradients each thread owns some of the rows and
 * goes through all indices in order: no two threads write one row, and sums do not depend on the
 * number of threads. */
#include "backend/cpu/cpu.h"

#include <math.h>
#include <string.h>

/* ---- index_select ------------------------------------------------------------------ */

/* x as [outer, rows, inner]; `n` indices select rows. */
typedef struct Select {
    KilnCall *call;
    int64_t outer, rows, inner, n;
    const int32_t *index;
} Select;

static Select select_of(KilnCall *call)
{
    const KilnSelectAttrs *attrs = call->attrs;
    Select select = { .call = call, .outer = 1, .inner = 1 };

    select.rows = attrs->shape.dim[attrs->axis];
    for (int axis = 0; axis < attrs->axis; axis++)
        select.outer *= attrs->shape.dim[axis];
    for (int axis = (int)attrs->axis + 1; axis < attrs->shape.rank; axis++)
        select.inner *= attrs->shape.dim[axis];
    select.n = kiln_cpu_count(&call->inputs[1]);
    select.index = call->inputs[1].data;
    return select;
}

/* Fills in for a row that does not exist. */
static void fill_nothing(char *y, KilnDType dtype, int64_t n)
{
    memset(y, 0, (size_t)n * kiln_dtype_size(dtype));
    for (int64_t i = 0; i < n; i++) {
        if (dtype == KILN_F32)
            ((float *)(void *)y)[i] = NAN;
        else if (dtype == KILN_BF16)
            ((uint16_t *)(void *)y)[i] = 0x7fc0;
    }
}

static void select_part(void *context, int64_t begin, int64_t end)
{
    const Select *s = context;
    const KilnArg *x = &s->call->inputs[0];
    const size_t bytes = (size_t)s->inner * kiln_dtype_size(x->dtype);

    for (int64_t i = begin; i < end; i++) {
        const int64_t row = s->index[i % s->n];
        char *y = (char *)s->call->outputs[0].data + i * (int64_t)bytes;

        if (row >= 0 && row < s->rows)
            memcpy(y, (const char *)x->data + (i / s->n * s->rows + row) * (int64_t)bytes, bytes);
        else
            fill_nothing(y, x->dtype, s->inner);
    }
}

static void index_select_run(KilnCall *call)
{
    Select s = select_of(call);

    kiln_parallel(call->backend->threads, s.outer * s.n, 16384 / (s.inner + 1) + 1, 1, select_part,
                  &s);
}

/* ---- Gradients: sparse rows ----------------------------------------------------- */

/* A gradient [rows, width]. Owner `t` of `owners` computes the rows t modulo owners: frequent words
 * have low numbers, so this balances. */
typedef struct Rows {
    KilnCall *call;
    float *gradient;
    int64_t rows, width, owners, padding;
    const int32_t *index;
    int64_t n;
    int32_t *sparse_rows; /* NULL: the gradient's old content is unknown */
    bool adds;            /* to the gradient's old content */
    void (*add)(const struct Rows *rows, int64_t owner);
} Rows;

static bool is_mine(const Rows *r, int64_t row, int64_t owner)
{
    return row >= 0 && row < r->rows && row % r->owners == owner && row != r->padding;
}

static void clear_row(const Rows *r, int64_t row)
{
    memset(r->gradient + row * r->width, 0, (size_t)r->width * sizeof(float));
}

static void clear_rows(const Rows *r, int64_t owner)
{
    if (r->sparse_rows == NULL || r->sparse_rows[0] == KILN_SPARSE_ROWS_ALL) {
        for (int64_t row = owner; row < r->rows; row += r->owners)
            clear_row(r, row);
        return;
    }
    for (int32_t i = 0; i < r->sparse_rows[0]; i++)
        if (is_mine(r, r->sparse_rows[1 + i], owner))
            clear_row(r, r->sparse_rows[1 + i]);
}

/* Clears the rows that may be nonzero, unless they count, then adds this step's terms. */
static void rows_part(void *context, int64_t begin, int64_t end)
{
    const Rows *r = context;

    for (int64_t owner = begin; owner < end; owner++) {
        if (!r->adds)
            clear_rows(r, owner);
        r->add(r, owner);
    }
}

/* Stores this step's rows: for the next gradient, and for the optimizer. */
static void store_rows(const Rows *r)
{
    int32_t *list = r->sparse_rows;

    if (r->adds && list[0] == KILN_SPARSE_ROWS_ALL)
        return;
    if (!r->adds)
        list[0] = 0;
    for (int64_t i = 0; i < r->n; i++)
        if (r->index[i] >= 0 && r->index[i] < r->rows && r->index[i] != r->padding)
            kiln_sparse_rows_add(list, r->rows, r->index[i]);
}

/* Output 0, or `sum` if the gradient is added to it. */
static float *gradient_of(const KilnCall *call, const KilnArg *sum)
{
    return sum->absent ? call->outputs[0].data : sum->data;
}

/* The list describes the gradient's destination. Elsewhere all rows are written, and the
 * destination's content is then unknown. */
static void run_rows(Rows *r, const KilnArg *sparse_rows, const KilnArg *sum)
{
    const int64_t work = (r->n + 1) * r->width / 8192 + 1;
    const int64_t threads = r->call->backend->threads;

    r->adds = !sum->absent;
    r->owners = work < threads ? work : threads;
    r->sparse_rows = !sparse_rows->absent && (r->adds || r->call->outputs[0].has_dest)
                         ? sparse_rows->data
                         : NULL;
    kiln_parallel((int)threads, r->owners, 1, 1, rows_part, r);
    if (r->sparse_rows != NULL)
        store_rows(r);
    else if (!sparse_rows->absent)
        *(int32_t *)sparse_rows->data = KILN_SPARSE_ROWS_ALL;
}

/* ---- index_select_grad --------------------------------------------------------------- */

static void select_add(const Rows *r, int64_t owner)
{
    const KilnLossLoops *loops = kiln_cpu(r->call)->loops->losses;
    const float *dy = r->call->inputs[0].data;

    for (int64_t i = 0; i < r->n; i++)
        if (is_mine(r, r->index[i], owner))
            loops->add_scaled(r->gradient + r->index[i] * r->width, dy + i * r->width, 1.0f,
                              r->width);
}

/* Axes before the selected one are processed one after the other; only without them does the list
 * apply. */
static void index_select_grad_run(KilnCall *call)
{
    const KilnSelectAttrs *attrs = call->attrs;
    const Select s = select_of(call);
    const KilnArg nobody = { .absent = true };
    KilnCall part = *call;

    for (int64_t o = 0; o < s.outer; o++) {
        Rows r = {
            .call = &part,
            .gradient = gradient_of(call, &call->inputs[3]) + o * s.rows * s.inner,
            .rows = s.rows,
            .width = s.inner,
            .padding = attrs->padding,
            .index = s.index,
            .n = s.n,
            .add = select_add,
        };

        part.inputs[0].data = (float *)call->inputs[0].data + o * s.n * s.inner;
        run_rows(&r, s.outer == 1 ? &call->inputs[2] : &nobody, &call->inputs[3]);
    }
}

/* ---- embedding_bag ----------------------------------------------------------------- */

/* The bag's indices [first, end); end < first for invalid offsets. */
static void bag_range(const KilnArg *index, const KilnArg *offsets, int64_t b, int64_t *ret_first,
                      int64_t *ret_end)
{
    const int64_t n = kiln_cpu_count(index);

    if (offsets->absent) {
        *ret_first = b * index->shape.dim[1];
        *ret_end = *ret_first + index->shape.dim[1];
        return;
    }
    const int32_t *offset = offsets->data;
    *ret_first = offset[b];
    *ret_end = b + 1 < offsets->shape.dim[0] ? offset[b + 1] : n;
    if (*ret_first < 0 || *ret_end > n)
        *ret_end = *ret_first - 1;
}

static const float *factors_of(const KilnArg *factors)
{
    return factors->absent ? NULL : factors->data;
}

/* Number of the bag's rows that count; -1 if one does not exist. */
static int64_t bag_size(const KilnBagAttrs *attrs, const int32_t *index, int64_t first, int64_t end)
{
    int64_t size = end < first ? -1 : 0;

    for (int64_t i = first; i < end; i++) {
        if (index[i] < 0 || index[i] >= attrs->rows)
            return -1;
        size += index[i] != attrs->padding;
    }
    return size;
}

static void bag_sum(const KilnCall *call, float *y, int64_t width, int64_t first, int64_t end,
                    float scale)
{
    const KilnBagAttrs *attrs = call->attrs;
    const KilnLoops *loops = kiln_cpu(call)->loops;
    const int32_t *index = call->inputs[1].data;
    const float *weight = call->inputs[0].data;
    const float *factors = factors_of(&call->inputs[4]);

    loops->fill(y, 0.0f, width);
    for (int64_t i = first; i < end; i++)
        if (index[i] != attrs->padding)
            loops->losses->add_scaled(y, weight + index[i] * width,
                                      factors != NULL ? factors[i] : 1.0f, width);
    if (scale != 1.0f)
        loops->scale(y, y, scale, width);
}

static void bag_max(const KilnCall *call, float *y, int32_t *winners, int64_t width, int64_t first,
                    int64_t end)
{
    const KilnBagAttrs *attrs = call->attrs;
    const int32_t *index = call->inputs[1].data;

    for (int64_t d = 0; d < width; d++) {
        y[d] = 0.0f;
        winners[d] = -1;
    }
    for (int64_t i = first; i < end; i++) {
        const float *row = (const float *)call->inputs[0].data + index[i] * width;

        if (index[i] == attrs->padding)
            continue;
        for (int64_t d = 0; d < width; d++)
            if (winners[d] < 0 || row[d] > y[d] || isnan(row[d])) {
                y[d] = row[d];
                winners[d] = index[i];
            }
    }
}

static void bag_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const KilnBagAttrs *attrs = call->attrs;
    const int64_t width = kiln_cpu_columns(&call->outputs[0]);
    int32_t *winners = attrs->mode == KILN_BAG_MAX ? call->outputs[1].data : NULL;

    for (int64_t b = begin; b < end; b++) {
        float *y = (float *)call->outputs[0].data + b * width;
        int64_t first, last;

        bag_range(&call->inputs[1], &call->inputs[2], b, &first, &last);
        const int64_t size = bag_size(attrs, call->inputs[1].data, first, last);
        if (attrs->mode == KILN_BAG_MAX)
            bag_max(call, y, winners + b * width, width, first, size < 0 ? first : last);
        else if (size >= 0)
            bag_sum(call, y, width, first, last,
                    attrs->mode == KILN_BAG_MEAN && size > 0 ? 1.0f / (float)size : 1.0f);
        if (size < 0)
            kiln_cpu(call)->loops->fill(y, NAN, width);
    }
}

static void embedding_bag_run(KilnCall *call)
{
    const KilnArg *y = &call->outputs[0];
    const int64_t bags = kiln_cpu_rows(y);
    const int64_t work = kiln_cpu_count(&call->inputs[1]) / bags * kiln_cpu_columns(y);

    kiln_parallel(call->backend->threads, bags, 8192 / (work + 1) + 1, 1, bag_part, call);
}

static void bag_add_max(const Rows *r, int64_t owner)
{
    const float *dy = r->call->inputs[0].data;
    const int32_t *winners = r->call->inputs[3].data;

    for (int64_t i = 0; i < kiln_cpu_count(&r->call->inputs[0]); i++)
        if (is_mine(r, winners[i], owner))
            r->gradient[winners[i] * r->width + i % r->width] += dy[i];
}

static void bag_add(const Rows *r, int64_t owner)
{
    const KilnBagAttrs *attrs = r->call->attrs;
    const KilnLossLoops *loops = kiln_cpu(r->call)->loops->losses;
    const float *factors = factors_of(&r->call->inputs[5]);

    for (int64_t b = 0; b < kiln_cpu_rows(&r->call->inputs[0]); b++) {
        const float *dy = (const float *)r->call->inputs[0].data + b * r->width;
        int64_t first, end;

        bag_range(&r->call->inputs[1], &r->call->inputs[2], b, &first, &end);
        const int64_t size = bag_size(attrs, r->index, first, end);
        const float scale = attrs->mode == KILN_BAG_MEAN && size > 0 ? 1.0f / (float)size : 1.0f;
        for (int64_t i = first; i < end && size > 0; i++)
            if (is_mine(r, r->index[i], owner))
                loops->add_scaled(r->gradient + r->index[i] * r->width, dy,
                                  factors != NULL ? factors[i] : scale, r->width);
    }
}

static void embedding_bag_grad_run(KilnCall *call)
{
    const KilnBagAttrs *attrs = call->attrs;
    Rows r = {
        .call = call,
        .gradient = gradient_of(call, &call->inputs[6]),
        .rows = attrs->rows,
        .width = kiln_cpu_columns(&call->inputs[0]),
        .padding = attrs->padding,
        .index = call->inputs[1].data,
        .n = kiln_cpu_count(&call->inputs[1]),
        .add = attrs->mode == KILN_BAG_MAX ? bag_add_max : bag_add,
    };

    run_rows(&r, &call->inputs[4], &call->inputs[6]);
}

/* Factors [begin, end), in any bags. */
static void factors_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const KilnBagAttrs *attrs = call->attrs;
    const KilnLossLoops *loops = kiln_cpu(call)->loops->losses;
    const int32_t *index = call->inputs[1].data;
    const int64_t width = kiln_cpu_columns(&call->inputs[0]);
    float *dfactors = call->outputs[0].data;

    memset(dfactors + begin, 0, (size_t)(end - begin) * sizeof(*dfactors));
    for (int64_t b = 0; b < kiln_cpu_rows(&call->inputs[0]); b++) {
        const float *dy = (const float *)call->inputs[0].data + b * width;
        const float *weight = call->inputs[3].data;
        int64_t first, last;

        bag_range(&call->inputs[1], &call->inputs[2], b, &first, &last);
        if (last <= begin || first >= end || bag_size(attrs, index, first, last) <= 0)
            continue;
        for (int64_t i = first > begin ? first : begin; i < last && i < end; i++)
            if (index[i] != attrs->padding)
                dfactors[i] += (float)loops->weighted_sum(dy, weight + index[i] * width, width);
    }
}

static void embedding_bag_factors_grad_run(KilnCall *call)
{
    const int64_t width = kiln_cpu_columns(&call->inputs[0]);

    kiln_parallel(call->backend->threads, kiln_cpu_count(&call->outputs[0]),
                  16384 / (width + 1) + 1, 1, factors_part, call);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_index_select, .run = index_select_run, .bf16_inputs = 1, .bf16_outputs = 1 },
    { .op = &kiln_op_index_select_grad, .run = index_select_grad_run },
    { .op = &kiln_op_embedding_bag, .run = embedding_bag_run },
    { .op = &kiln_op_embedding_bag_grad, .run = embedding_bag_grad_run },
    { .op = &kiln_op_embedding_bag_factors_grad, .run = embedding_bag_factors_grad_run },
};

const KilnCpuTable kiln_cpu_embedding = { kernels, KILN_COUNT(kernels) };
