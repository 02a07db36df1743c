/* Reference kernels for pooling. The maximum's place is its number within the
 * window, row by row. */
#include "backend/ref/ref.h"

#include <math.h>

/* Where the window of output `at` ([N, H, W, C] of shape y) starts in x. */
typedef struct Window {
    int64_t n, c, top, left;
} Window;

static Window window_of(const KilnPoolAttrs *attrs, const KilnShape *y, int64_t at)
{
    int64_t width = y->dim[2], channels = y->dim[3];

    return (Window) {
        .n = at / channels / width / y->dim[1],
        .c = at % channels,
        .top = at / channels / width % y->dim[1] * attrs->stride - attrs->padding,
        .left = at / channels % width * attrs->stride - attrs->padding,
    };
}

/* Offset in x of a window's element, -1 in the padding. */
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

        for (int64_t k = 0; k < attrs->kernel * attrs->kernel; k++) {
            int64_t from = offset_of(&window, &x->shape, k / attrs->kernel, k % attrs->kernel);

            if (from >= 0 && (place < 0 || kiln_ref_get(x, from) > best)) {
                best = kiln_ref_get(x, from);
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
        int64_t to = offset_of(&window, &dx->shape, place / attrs->kernel, place % attrs->kernel);

        kiln_ref_set(dx, to, kiln_ref_get(dx, to) + kiln_ref_get(dy, at));
    }
}

static void global_avg_pool2d_run(KilnCall *call)
{
    const KilnArg *x = &call->inputs[0];
    int64_t places = x->shape.dim[1] * x->shape.dim[2], channels = x->shape.dim[3];

    for (int64_t at = 0; at < kiln_ref_count(&call->outputs[0]); at++) {
        int64_t n = at / channels, c = at % channels;
        double sum = 0.0;

        for (int64_t place = 0; place < places; place++)
            sum += kiln_ref_get(x, (n * places + place) * channels + c);
        kiln_ref_set(&call->outputs[0], at, sum / (double)places);
    }
}

static void global_avg_pool2d_grad_run(KilnCall *call)
{
    KilnArg *dx = &call->outputs[0];
    int64_t places = dx->shape.dim[1] * dx->shape.dim[2], channels = dx->shape.dim[3];

    for (int64_t i = 0; i < kiln_ref_count(dx); i++) {
        int64_t n = i / channels / places, c = i % channels;

        kiln_ref_set(dx, i, kiln_ref_get(&call->inputs[0], n * channels + c) / (double)places);
    }
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_max_pool2d, .run = max_pool2d_run },
    { .op = &kiln_op_max_pool2d_grad, .run = max_pool2d_grad_run },
    { .op = &kiln_op_global_avg_pool2d, .run = global_avg_pool2d_run },
    { .op = &kiln_op_global_avg_pool2d_grad, .run = global_avg_pool2d_grad_run },
};

const KilnRefTable kiln_ref_pooling = { kernels, KILN_COUNT(kernels) };
