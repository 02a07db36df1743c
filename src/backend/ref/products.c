/* Reference of matrix products. */
#include "backend/ref/ref.h"

/* Element (row, column) of matrix number `matrix`, of `rows` rows and `columns` columns after
 * transposing. */
static double element(const KilnArg *arg, int64_t matrix, bool transposed, int64_t rows,
                      int64_t columns, int64_t row, int64_t column)
{
    int64_t at = transposed ? column * rows + row : row * columns + column;

    return kiln_ref_get(arg, matrix * rows * columns + at);
}

static double dot(const KilnCall *call, const KilnBmm *batch, int64_t product, int64_t i, int64_t j)
{
    int64_t a = kiln_bmm_at(batch, batch->step_a, product);
    int64_t b = kiln_bmm_at(batch, batch->step_b, product);
    double sum = 0.0;

    for (int64_t l = 0; l < batch->k; l++)
        sum += element(&call->inputs[0], a, batch->transpose_a, batch->m, batch->k, i, l) *
               element(&call->inputs[1], b, batch->transpose_b, batch->k, batch->n, l, j);
    return sum;
}

/* Element by element, each over all products that share it, so that sums are rounded once. */
static void matmul_run(KilnCall *call)
{
    KilnArg *y = &call->outputs[0];
    const KilnBmm batch = kiln_bmm_of(call->attrs, &call->inputs[0].shape, &call->inputs[1].shape,
                                      &y->shape);
    const int64_t size = batch.m * batch.n;

    for (int64_t e = 0; e < kiln_ref_count(y); e++) {
        double sum = 0.0;

        for (int64_t p = 0; p < batch.count; p++)
            if (kiln_bmm_at(&batch, batch.step_y, p) == e / size)
                sum += dot(call, &batch, p, e % size / batch.n, e % batch.n);
        kiln_ref_set(y, e, sum);
    }
}

static void linear_run(KilnCall *call)
{
    const KilnArg *x = &call->inputs[0], *weight = &call->inputs[1], *bias = &call->inputs[2];
    const int64_t rows = kiln_ref_rows(x), in = kiln_ref_columns(x), out = weight->shape.dim[0];

    for (int64_t n = 0; n < rows; n++)
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
