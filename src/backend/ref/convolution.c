/* Reference kernels for two-dimensional convolution and its gradients. Images
 * are [N, H, W, C], weights [O, I, kh, kw]. */
#include "backend/ref/ref.h"

/* One multiplication of the convolution: y[y_at] += x[x_at] * weight[w_at]. */
typedef void (*Visit)(KilnCall *call, int64_t x_at, int64_t w_at, int64_t y_at);

/* Every multiplication that a convolution of these shapes makes. */
static void each_product(KilnCall *call, const KilnShape *x, const KilnShape *weight,
                         const KilnShape *y, Visit visit)
{
    const KilnConvAttrs *attrs = call->attrs;
    int64_t height = x->dim[1], width = x->dim[2], in = x->dim[3];
    int64_t kh = weight->dim[2], kw = weight->dim[3];
    int64_t places = kiln_shape_count(y), out = y->dim[3];

    for (int64_t at = 0; at < places; at++) {
        int64_t o = at % out, ox = at / out % y->dim[2], oy = at / out / y->dim[2] % y->dim[1];
        int64_t n = at / out / y->dim[2] / y->dim[1];

        for (int64_t ky = 0; ky < kh; ky++)
            for (int64_t kx = 0; kx < kw; kx++) {
                int64_t iy = oy * attrs->stride + ky - attrs->padding;
                int64_t ix = ox * attrs->stride + kx - attrs->padding;

                if (iy < 0 || iy >= height || ix < 0 || ix >= width)
                    continue;
                for (int64_t i = 0; i < in; i++)
                    visit(call, ((n * height + iy) * width + ix) * in + i,
                          ((o * in + i) * kh + ky) * kw + kx, at);
            }
    }
}

/* Sums gather in doubles in the workspace and are rounded once. */
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

static void conv2d_run(KilnCall *call)
{
    const KilnArg *bias = &call->inputs[2];
    double *sums = call->workspace;
    int64_t out = kiln_ref_columns(&call->outputs[0]);

    clear(call);
    each_product(call, &call->inputs[0].shape, &call->inputs[1].shape, &call->outputs[0].shape,
                 visit_forward);
    if (!bias->absent)
        for (int64_t i = 0; i < kiln_ref_count(&call->outputs[0]); i++)
            sums[i] += kiln_ref_get(bias, i % out);
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
};

const KilnRefTable kiln_ref_convolution = { kernels, KILN_COUNT(kernels) };
