/* Kernels that select or scatter elements by index, or count along an axis. Threads split the lines
 * along the axis, so that no two write the same element. */
#include "backend/cpu/cpu.h"

#include <math.h>
#include <string.h>

#include "backend/cpu/kernels/strided.h"

/* ---- gather, scatter_add ----------------------------------------------------------- */

/* Maps elements of `index`, in order, to their offset in the other tensor off the axis. A line is
 * the index's elements along the axis. */
typedef struct Lines {
    KilnCall *call;
    int64_t outer, n, inner;      /* index as [outer, n, inner] */
    int64_t size, step;           /* of the axis in the other tensor */
    int64_t other[KILN_MAX_RANK]; /* steps of the other tensor */
    const KilnShape *shape;       /* of the index */
    int axis;
} Lines;

static Lines lines_of(KilnCall *call, const KilnShape *other)
{
    const KilnAxisAttrs *attrs = call->attrs;
    const KilnShape *shape = &call->inputs[1].shape;
    Lines lines = {
        .call = call, .outer = 1, .inner = 1, .shape = shape, .axis = (int)attrs->axis
    };

    kiln_plain_steps(other, lines.other);
    for (int i = 0; i < lines.axis; i++)
        lines.outer *= shape->dim[i];
    for (int i = lines.axis + 1; i < shape->rank; i++)
        lines.inner *= shape->dim[i];
    lines.n = shape->dim[lines.axis];
    lines.size = other->dim[lines.axis];
    lines.step = lines.other[lines.axis];
    return lines;
}

/* Start in the other tensor of line (o, i) of the outer and inner axes. */
static int64_t line_start(const Lines *lines, int64_t o, int64_t i)
{
    int64_t start = 0;

    for (int axis = lines->shape->rank - 1; axis > lines->axis; axis--) {
        start += i % lines->shape->dim[axis] * lines->other[axis];
        i /= lines->shape->dim[axis];
    }
    for (int axis = lines->axis - 1; axis >= 0; axis--) {
        start += o % lines->shape->dim[axis] * lines->other[axis];
        o /= lines->shape->dim[axis];
    }
    return start;
}

/* Copies one element of x, or the fill value for an index out of range. */
static void copy_element(const KilnArg *y, int64_t to, const KilnArg *x, int64_t from)
{
    const size_t size = kiln_dtype_size(y->dtype);
    char *at = (char *)y->data + to * (int64_t)size;
    static const float nan_f32 = NAN;
    static const uint16_t nan_bf16 = 0x7fc0;

    if (from >= 0 && size == 4)
        memcpy(at, (const char *)x->data + from * 4, 4);
    else if (from >= 0)
        memcpy(at, (const char *)x->data + from * (int64_t)size, size);
    else if (y->dtype == KILN_F32)
        memcpy(at, &nan_f32, size);
    else if (y->dtype == KILN_BF16)
        memcpy(at, &nan_bf16, size);
    else
        memset(at, 0, size);
}

static void gather_part(void *context, int64_t begin, int64_t end)
{
    const Lines *lines = context;
    const KilnCall *call = lines->call;
    const int32_t *index = call->inputs[1].data;

    for (int64_t line = begin; line < end; line++) {
        const int64_t o = line / lines->inner, i = line % lines->inner;
        const int64_t start = line_start(lines, o, i);

        for (int64_t k = 0; k < lines->n; k++) {
            const int64_t at = (o * lines->n + k) * lines->inner + i;
            const bool known = index[at] >= 0 && index[at] < lines->size;

            copy_element(&call->outputs[0], at, &call->inputs[0],
                         known ? start + index[at] * lines->step : -1);
        }
    }
}

static void gather_run(KilnCall *call)
{
    Lines lines = lines_of(call, &call->inputs[0].shape);

    kiln_parallel(call->backend->threads, lines.outer * lines.inner, 4096 / (lines.n + 1) + 1, 1,
                  gather_part, &lines);
}

static void scatter_part(void *context, int64_t begin, int64_t end)
{
    const Lines *lines = context;
    const int32_t *index = lines->call->inputs[1].data;
    const float *src = lines->call->inputs[2].data;
    float *y = lines->call->outputs[0].data;

    for (int64_t line = begin; line < end; line++) {
        const int64_t o = line / lines->inner, i = line % lines->inner;
        float *start = y + line_start(lines, o, i);

        for (int64_t k = 0; k < lines->n; k++) {
            const int64_t at = (o * lines->n + k) * lines->inner + i;

            if (index[at] >= 0 && index[at] < lines->size)
                start[index[at] * lines->step] += src[at];
            else
                start[0] = NAN;
        }
    }
}

static void scatter_add_run(KilnCall *call)
{
    const KilnArg *x = &call->inputs[0], *y = &call->outputs[0];
    Lines lines = lines_of(call, &y->shape);

    if (x->data != y->data) {
        KilnStrided copy = { .rank = 1,
                             .dim = { kiln_cpu_count(y) },
                             .from_step = { 1 },
                             .to_step = { 1 },
                             .from = x->data,
                             .to = y->data,
                             .size = 4 };

        kiln_strided_copy(call->backend->threads, copy);
    }
    kiln_parallel(call->backend->threads, lines.outer * lines.inner, 4096 / (lines.n + 1) + 1, 1,
                  scatter_part, &lines);
}

/* ---- one_hot, arange ------------------------------------------------------------- */

static void one_hot_part(void *context, int64_t begin, int64_t end)
{
    const KilnCall *call = context;
    const int64_t classes = kiln_cpu_columns(&call->outputs[0]);
    const int32_t *index = call->inputs[0].data;
    float *y = call->outputs[0].data;

    memset(y + begin * classes, 0, (size_t)((end - begin) * classes) * sizeof(*y));
    for (int64_t i = begin; i < end; i++)
        if (index[i] >= 0 && index[i] < classes)
            y[i * classes + index[i]] = 1.0f;
}

static void one_hot_run(KilnCall *call)
{
    const KilnArg *y = &call->outputs[0];

    kiln_parallel(call->backend->threads, kiln_cpu_rows(y), 16384 / (kiln_cpu_columns(y) + 1) + 1,
                  1, one_hot_part, call);
}

static void arange_run(KilnCall *call)
{
    const KilnArangeAttrs *attrs = call->attrs;

    for (int64_t i = 0; i < attrs->size; i++) {
        const double value = attrs->start + (double)i * attrs->step;

        if (attrs->dtype == KILN_I32)
            ((int32_t *)call->outputs[0].data)[i] = (int32_t)value;
        else
            ((float *)call->outputs[0].data)[i] = (float)value;
    }
}

/* ---- cumsum ------------------------------------------------------------------------ */

static void cumsum_part(void *context, int64_t begin, int64_t end)
{
    const Lines *lines = context;
    const KilnCumsumAttrs *attrs = lines->call->attrs;
    const int64_t n = lines->n, step = attrs->reverse != 0 ? -lines->inner : lines->inner;

    for (int64_t line = begin; line < end; line++) {
        const int64_t start = line / lines->inner * n * lines->inner + line % lines->inner +
                              (attrs->reverse != 0 ? (n - 1) * lines->inner : 0);
        const float *x = (const float *)lines->call->inputs[0].data + start;
        float *y = (float *)lines->call->outputs[0].data + start;
        double sum = 0.0;

        for (int64_t k = 0; k < n; k++) {
            sum += (double)x[k * step];
            y[k * step] = (float)sum;
        }
    }
}

static void cumsum_run(KilnCall *call)
{
    const KilnCumsumAttrs *attrs = call->attrs;
    const KilnShape *shape = &call->outputs[0].shape;
    Lines lines = { .call = call, .outer = 1, .inner = 1, .n = shape->dim[attrs->axis] };

    for (int i = 0; i < attrs->axis; i++)
        lines.outer *= shape->dim[i];
    for (int i = (int)attrs->axis + 1; i < shape->rank; i++)
        lines.inner *= shape->dim[i];
    kiln_parallel(call->backend->threads, lines.outer * lines.inner, 4096 / (lines.n + 1) + 1, 1,
                  cumsum_part, &lines);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_gather, .run = gather_run, .bf16_inputs = 1, .bf16_outputs = 1 },
    { .op = &kiln_op_scatter_add, .run = scatter_add_run, .in_place = 1 },
    { .op = &kiln_op_one_hot, .run = one_hot_run },
    { .op = &kiln_op_arange, .run = arange_run },
    { .op = &kiln_op_cumsum, .run = cumsum_run },
};

const KilnCpuTable kiln_cpu_index = { kernels, KILN_COUNT(kernels) };
