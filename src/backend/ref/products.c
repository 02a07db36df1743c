/* Reference kernels for matrix products. */
#include "backend/ref/ref.h"

static void matmul_run(KilnCall *call)
{
    const KilnMatmulAttrs *attrs = call->attrs;
    const KilnArg *a = &call->inputs[0], *b = &call->inputs[1];
    int64_t m = call->outputs[0].shape.dim[0], n = call->outputs[0].shape.dim[1];
    int64_t k = a->shape.dim[attrs->transpose_a ? 0 : 1];

    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0.0;

            for (int64_t l = 0; l < k; l++)
                sum += kiln_ref_get(a, attrs->transpose_a ? l * m + i : i * k + l) *
                       kiln_ref_get(b, attrs->transpose_b ? j * k + l : l * n + j);
            kiln_ref_set(&call->outputs[0], i * n + j, sum);
        }
}

static void linear_run(KilnCall *call)
{
    const KilnArg *x = &call->inputs[0], *weight = &call->inputs[1], *bias = &call->inputs[2];
    int64_t batch = x->shape.dim[0], in = x->shape.dim[1], out = weight->shape.dim[0];

    for (int64_t n = 0; n < batch; n++)
        for (int64_t o = 0; o < out; o++) {
            double sum = bias->absent ? 0.0 : kiln_ref_get(bias, o);

            for (int64_t i = 0; i < in; i++)
                sum += kiln_ref_get(x, n * in + i) * kiln_ref_get(weight, o * in + i);
            kiln_ref_set(&call->outputs[0], n * out + o, sum);
        }
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_matmul, .run = matmul_run },
    { .op = &kiln_op_linear, .run = linear_run },
};

const KilnRefTable kiln_ref_products = { kernels, KILN_COUNT(kernels) };
