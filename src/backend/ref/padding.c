/* Reference of padding with a tensor's edges. */
#include "backend/ref/ref.h"

/* Index in x, the shorter of the two, that element i of y copies. */
static int64_t source_of(const KilnCall *call, const KilnShape *x, const KilnShape *y, int64_t i)
{
    const KilnPadAttrs *attrs = call->attrs;
    const int64_t x_size = x->dim[attrs->axis], y_size = y->dim[attrs->axis];
    int64_t inner = 1;

    for (int axis = (int)attrs->axis + 1; axis < x->rank; axis++)
        inner *= x->dim[axis];
    return (i / inner / y_size * x_size + kiln_pad_source(attrs, x_size, i / inner % y_size)) *
               inner +
           i % inner;
}

static void pad_axis_run(KilnCall *call)
{
    const KilnArg *x = &call->inputs[0];
    KilnArg *y = &call->outputs[0];

    for (int64_t i = 0; i < kiln_ref_count(y); i++)
        kiln_ref_set(y, i, kiln_ref_get(x, source_of(call, &x->shape, &y->shape, i)));
}

static void pad_axis_grad_run(KilnCall *call)
{
    const KilnArg *dy = &call->inputs[0];
    KilnArg *dx = &call->outputs[0];

    for (int64_t i = 0; i < kiln_ref_count(dx); i++)
        kiln_ref_set(dx, i, 0.0);
    for (int64_t i = 0; i < kiln_ref_count(dy); i++) {
        const int64_t to = source_of(call, &dx->shape, &dy->shape, i);

        kiln_ref_set(dx, to, kiln_ref_get(dx, to) + kiln_ref_get(dy, i));
    }
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_pad_axis, .run = pad_axis_run },
    { .op = &kiln_op_pad_axis_grad, .run = pad_axis_grad_run },
};

const KilnRefTable kiln_ref_padding = { kernels, KILN_COUNT(kernels) };
