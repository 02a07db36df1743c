/* Reference of pooling. The index of a maximum is its number within the window, row by row; NaN is
 * larger than anything. */
#include "backend/ref/ref.h"

#include <math.h>

/* Start in x of the window of output `at` ([N, H, W, C] of shape y). */
typedef struct Window {
    int64_t n, c, top, left;
} Window;

static Window window_of(const KilnPoolAttrs *attrs, const KilnShape *y, int64_t at)
{
    int64_t width = y->dim[2], channels = y->dim[3];

    return (Window) {
        .n = at / channels / width / y->dim[1],
        .c = at % channels,
        .top = at / channels / width % y->dim[1] * attrs->stride[0] - attrs->padding[0],
        .left = at / channels % width * attrs->stride[1] - attrs->padding[1],
    };
}

/* Offset in x of a window's element; -1 in the padding. */
static int64_t offset_of(const Window *window, const KilnShape *x, int64_t ky, int64_t kx)
{
    int64_t iy = window->top + ky, ix = window->left + kx;

    if (iy < 0 || iy >= x->dim[1] || ix < 0 || ix >= x->dim[2])
        return -1;
    return ((window->n * x->dim[1] + iy) * x->dim[2] + ix) * x->dim[3] + window->c;
}

static void max_pool2d_run(KilnCall *call)
{
    const KilnPoolAttrs *attrs = call->attrs;
    const KilnArg *x = &call->inputs[0];

    for (int64_t at = 0; at < kiln_ref_count(&call->outputs[0]); at++) {
        Window window = window_of(attrs, &call->outputs[0].shape, at);
        double best = -INFINITY;
        int64_t place = -1;

        for (int64_t k = 0; k < attrs->kernel[0] * attrs->kernel[1]; k++) {
            int64_t from = offset_of(&window, &x->shape, k / attrs->kernel[1],
                                     k % attrs->kernel[1]);

            const double value = from >= 0 ? kiln_ref_get(x, from) : -INFINITY;

            if (from >= 0 && (place < 0 || value > best || isnan(value))) {
                best = value;
                place = k;
            }
        }
        kiln_ref_set(&call->outputs[0], at, best);
        kiln_ref_set(&call->outputs[1], at, (double)place);
    }
}

static void max_pool2d_grad_run(KilnCall *call)
{
    const KilnPoolAttrs *attrs = call->attrs;
    const KilnArg *dy = &call->inputs[0], *index = &call->inputs[1];
    KilnArg *dx = &call->outputs[0];

    for (int64_t i = 0; i < kiln_ref_count(dx); i++)
        kiln_ref_set(dx, i, 0.0);
    for (int64_t at = 0; at < kiln_ref_count(dy); at++) {
        Window window = window_of(attrs, &dy->shape, at);
        int64_t place = (int64_t)kiln_ref_get(index, at);
        int64_t to = offset_of(&window, &dx->shape, place / attrs->kernel[1],
                               place % attrs->kernel[1]);

        kiln_ref_set(dx, to, kiln_ref_get(dx, to) + kiln_ref_get(dy, at));
    }
}

/* The elements of x under the window of element `at` of y. */
typedef struct Patch {
    KilnWindow rows, columns;
    int64_t n, c;
    double scale; /* of each element in the mean */
} Patch;

static Patch patch_of(const KilnPoolAttrs *attrs, const KilnShape *x, const KilnShape *y,
                      int64_t at)
{
    int64_t width = y->dim[2], channels = y->dim[3];
    int64_t row = at / channels / width % y->dim[1], column = at / channels % width;
    Patch patch = {
        .rows = kiln_pool_window(attrs, 0, x->dim[1], y->dim[1], row),
        .columns = kiln_pool_window(attrs, 1, x->dim[2], width, column),
        .n = at / channels / width / y->dim[1],
        .c = at % channels,
    };

    patch.scale = 1.0 / ((double)patch.rows.count * (double)patch.columns.count);
    return patch;
}

static void avg_pool2d_run(KilnCall *call)
{
    const KilnArg *x = &call->inputs[0];
    const int64_t *dim = x->shape.dim;

    for (int64_t at = 0; at < kiln_ref_count(&call->outputs[0]); at++) {
        Patch patch = patch_of(call->attrs, &x->shape, &call->outputs[0].shape, at);
        double sum = 0.0;

        for (int64_t row = patch.rows.begin; row < patch.rows.end; row++)
            for (int64_t column = patch.columns.begin; column < patch.columns.end; column++)
                sum += kiln_ref_get(x, ((patch.n * dim[1] + row) * dim[2] + column) * dim[3] +
                                           patch.c);
        kiln_ref_set(&call->outputs[0], at, sum * patch.scale);
    }
}

static void avg_pool2d_grad_run(KilnCall *call)
{
    KilnArg *dx = &call->outputs[0];
    const int64_t *dim = dx->shape.dim;

    for (int64_t i = 0; i < kiln_ref_count(dx); i++)
        kiln_ref_set(dx, i, 0.0);
    for (int64_t at = 0; at < kiln_ref_count(&call->inputs[0]); at++) {
        Patch patch = patch_of(call->attrs, &dx->shape, &call->inputs[0].shape, at);
        double share = kiln_ref_get(&call->inputs[0], at) * patch.scale;

        for (int64_t row = patch.rows.begin; row < patch.rows.end; row++)
            for (int64_t column = patch.columns.begin; column < patch.columns.end; column++) {
                int64_t to = ((patch.n * dim[1] + row) * dim[2] + column) * dim[3] + patch.c;

                kiln_ref_set(dx, to, kiln_ref_get(dx, to) + share);
            }
    }
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_max_pool2d, .run = max_pool2d_run },
    { .op = &kiln_op_max_pool2d_grad, .run = max_pool2d_grad_run },
    { .op = &kiln_op_avg_pool2d, .run = avg_pool2d_run },
    { .op = &kiln_op_avg_pool2d_grad, .run = avg_pool2d_grad_run },
};

const KilnRefTable kiln_ref_pooling = { kernels, KILN_COUNT(kernels) };
