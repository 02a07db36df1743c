/* Reference of resizing by weighted sums along an axis. */
#include "backend/ref/ref.h"
#include "graph/ops/select/lines.h"

/* Adds the line's share of element i of y, forwards or backwards. */
static void add_element(KilnCall *call, int64_t x, int64_t y, int64_t inner, int64_t i)
{
    const KilnResizeAttrs *attrs = call->attrs;
    const KilnArg *from = &call->inputs[0];
    KilnArg *to = &call->outputs[0];
    double *weights = call->workspace;
    int64_t n, first = kiln_resize_weights(attrs, i, weights, &n);

    for (int64_t k = 0; k < n; k++) {
        const int64_t a = x + (first + k) * inner, b = y + i * inner;
        const int64_t source = attrs->back != 0 ? b : a, target = attrs->back != 0 ? a : b;

        kiln_ref_set(to, target,
                     kiln_ref_get(to, target) + weights[k] * kiln_ref_get(from, source));
    }
}

static void resize_run(KilnCall *call)
{
    const KilnResizeAttrs *attrs = call->attrs;
    const bool back = attrs->back != 0;
    const KilnLines x = kiln_lines_of(&(back ? call->outputs : call->inputs)[0].shape, attrs->axis);
    const KilnLines y = kiln_lines_of(&(back ? call->inputs : call->outputs)[0].shape, attrs->axis);

    for (int64_t i = 0; i < kiln_ref_count(&call->outputs[0]); i++)
        kiln_ref_set(&call->outputs[0], i, 0.0);
    for (int64_t line = 0; line < x.count; line++)
        for (int64_t i = 0; i < y.n; i++)
            add_element(call, kiln_line_start(&x, line), kiln_line_start(&y, line), x.inner, i);
}

static KilnStatus resize_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    call->workspace_size = (size_t)kiln_resize_window(call->attrs) * sizeof(double);
    return KILN_OK;
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_resize, .prepare = resize_prepare, .run = resize_run },
};

const KilnRefTable kiln_ref_resize = { kernels, KILN_COUNT(kernels) };
