/* Reference of two-dimensional convolution and its gradients. Images are [N, H, W, C], weights [O,
 * I/groups, kh, kw]. */
#include "backend/ref/ref.h"

/* One multiplication of the convolution: y[y_at] += x[x_at] * weight[w_at]. */
typedef void (*Visit)(KilnCall *call, int64_t x_at, int64_t w_at, int64_t y_at);

/* The products of output element `at` with one element of the kernel. */
static void each_channel(KilnCall *call, const KilnShape *x, const KilnShape *weight, int64_t pixel,
                         int64_t o, int64_t tap, int64_t at, Visit visit)
{
    const KilnConvAttrs *attrs = call->attrs;
    int64_t in = weight->dim[1], area = weight->dim[2] * weight->dim[3];
    int64_t first = o / (weight->dim[0] / attrs->groups) * in;

    for (int64_t i = 0; i < in; i++)
        visit(call, pixel * x->dim[3] + first + i, (o * in + i) * area + tap, at);
}

/* Every multiplication of a convolution of these shapes. */
static void each_product(KilnCall *call, const KilnShape *x, const KilnShape *weight,
                         const KilnShape *y, Visit visit)
{
    const KilnConvAttrs *attrs = call->attrs;
    int64_t height = x->dim[1], width = x->dim[2];
    int64_t kh = weight->dim[2], kw = weight->dim[3];
    int64_t places = kiln_shape_count(y), out = y->dim[3];

    for (int64_t at = 0; at < places; at++) {
        int64_t o = at % out, ox = at / out % y->dim[2], oy = at / out / y->dim[2] % y->dim[1];
        int64_t n = at / out / y->dim[2] / y->dim[1];

        for (int64_t tap = 0; tap < kh * kw; tap++) {
            int64_t iy = oy * attrs->stride[0] + tap / kw * attrs->dilation[0] - attrs->padding[0];
            int64_t ix = ox * attrs->stride[1] + tap % kw * attrs->dilation[1] - attrs->padding[1];

            if (iy >= 0 && iy < height && ix >= 0 && ix < width)
                each_channel(call, x, weight, (n * height + iy) * width + ix, o, tap, at, visit);
        }
    }
}

/* Sums accumulate in doubles in the workspace and are rounded once. */
static KilnStatus conv_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    call->workspace_size = (size_t)kiln_ref_count(&call->outputs[0]) * sizeof(double);
    return KILN_OK;
}

static void clear(KilnCall *call)
{
    double *sums = call->workspace;

    for (int64_t i = 0; i < kiln_ref_count(&call->outputs[0]); i++)
        sums[i] = 0.0;
}

static void store(KilnCall *call)
{
    const double *sums = call->workspace;

    for (int64_t i = 0; i < kiln_ref_count(&call->outputs[0]); i++)
        kiln_ref_set(&call->outputs[0], i, sums[i]);
}

static void visit_forward(KilnCall *call, int64_t x_at, int64_t w_at, int64_t y_at)
{
    ((double *)call->workspace)[y_at] += kiln_ref_get(&call->inputs[0], x_at) *
                                         kiln_ref_get(&call->inputs[1], w_at);
}

static void add_bias(KilnCall *call)
{
    const KilnArg *bias = &call->inputs[2];
    double *sums = call->workspace;
    int64_t out = kiln_ref_columns(&call->outputs[0]);

    if (!bias->absent)
        for (int64_t i = 0; i < kiln_ref_count(&call->outputs[0]); i++)
            sums[i] += kiln_ref_get(bias, i % out);
}

/* The residual and the activation that were folded into the convolution. */
static void finish(KilnCall *call)
{
    const KilnConvAttrs *attrs = call->attrs;
    double *sums = call->workspace;

    for (int64_t i = 0; i < kiln_ref_count(&call->outputs[0]); i++) {
        if (!call->inputs[3].absent)
            sums[i] += kiln_ref_get(&call->inputs[3], i);
        if (attrs->activation.code != KILN_MAP_NUMBER)
            sums[i] = kiln_ref_step(&attrs->activation, sums[i], 0.0, 0.0);
    }
}

static void conv2d_run(KilnCall *call)
{
    clear(call);
    each_product(call, &call->inputs[0].shape, &call->inputs[1].shape, &call->outputs[0].shape,
                 visit_forward);
    add_bias(call);
    finish(call);
    store(call);
}

static void visit_input(KilnCall *call, int64_t x_at, int64_t w_at, int64_t y_at)
{
    ((double *)call->workspace)[x_at] += kiln_ref_get(&call->inputs[0], y_at) *
                                         kiln_ref_get(&call->inputs[1], w_at);
}

static void conv2d_grad_input_run(KilnCall *call)
{
    clear(call);
    each_product(call, &call->outputs[0].shape, &call->inputs[1].shape, &call->inputs[0].shape,
                 visit_input);
    store(call);
}

static void conv_transpose2d_run(KilnCall *call)
{
    clear(call);
    each_product(call, &call->outputs[0].shape, &call->inputs[1].shape, &call->inputs[0].shape,
                 visit_input);
    add_bias(call);
    store(call);
}

static void visit_weight(KilnCall *call, int64_t x_at, int64_t w_at, int64_t y_at)
{
    ((double *)call->workspace)[w_at] += kiln_ref_get(&call->inputs[0], y_at) *
                                         kiln_ref_get(&call->inputs[1], x_at);
}

static void conv2d_grad_weight_run(KilnCall *call)
{
    clear(call);
    each_product(call, &call->inputs[1].shape, &call->outputs[0].shape, &call->inputs[0].shape,
                 visit_weight);
    store(call);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_conv2d, .prepare = conv_prepare, .run = conv2d_run },
    { .op = &kiln_op_conv2d_grad_input, .prepare = conv_prepare, .run = conv2d_grad_input_run },
    { .op = &kiln_op_conv2d_grad_weight, .prepare = conv_prepare, .run = conv2d_grad_weight_run },
    { .op = &kiln_op_conv_transpose2d, .prepare = conv_prepare, .run = conv_transpose2d_run },
};

const KilnRefTable kiln_ref_convolution = { kernels, KILN_COUNT(kernels) };
