/* Matrix products by OpenBLAS; the only file that knows it. */
#include <cblas.h>

#include "backend/cpu/cpu.h"

/* Row-major c [m, n] = op(a) · op(b). Tensors have less than 2^31 elements, so
 * BLAS's ints hold every size. */
typedef struct Product {
    int m, n, k, lda, ldb;
    bool transpose_a, transpose_b;
} Product;

static void product_run(const KilnCall *call, const Product *p)
{
    int before = kiln_threads_set(call->backend->threads);

    if (openblas_get_num_threads() != call->backend->threads)
        openblas_set_num_threads(call->backend->threads);
    cblas_sgemm(CblasRowMajor, p->transpose_a ? CblasTrans : CblasNoTrans,
                p->transpose_b ? CblasTrans : CblasNoTrans, p->m, p->n, p->k, 1.0f,
                call->inputs[0].data, p->lda, call->inputs[1].data, p->ldb, 0.0f,
                call->outputs[0].data, p->n);
    kiln_threads_set(before);
}

static void matmul_run(KilnCall *call)
{
    const KilnMatmulAttrs *attrs = call->attrs;
    const KilnShape *a = &call->inputs[0].shape, *b = &call->inputs[1].shape;
    const Product product = {
        .m = (int)call->outputs[0].shape.dim[0],
        .n = (int)call->outputs[0].shape.dim[1],
        .k = (int)a->dim[attrs->transpose_a ? 0 : 1],
        .lda = (int)a->dim[1],
        .ldb = (int)b->dim[1],
        .transpose_a = attrs->transpose_a != 0,
        .transpose_b = attrs->transpose_b != 0,
    };

    product_run(call, &product);
}

static void bias_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const float *bias = call->inputs[2].data;
    const int64_t columns = kiln_cpu_columns(&call->outputs[0]);

    for (int64_t r = begin; r < end; r++) {
        float *y = (float *)call->outputs[0].data + r * columns;

        kiln_cpu(call)->loops->add(y, y, bias, columns);
    }
}

static void linear_run(KilnCall *call)
{
    const KilnShape *x = &call->inputs[0].shape, *y = &call->outputs[0].shape;
    const Product product = {
        .m = (int)x->dim[0],
        .n = (int)y->dim[1],
        .k = (int)x->dim[1],
        .lda = (int)x->dim[1],
        .ldb = (int)x->dim[1],
        .transpose_b = true,
    };

    product_run(call, &product);
    if (!call->inputs[2].absent)
        kiln_parallel(call->backend->threads, y->dim[0], 16384 / (y->dim[1] + 1) + 1, 1, bias_part,
                      call);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_matmul, .run = matmul_run },
    { .op = &kiln_op_linear, .run = linear_run },
};

const KilnCpuTable kiln_cpu_products = { kernels, KILN_COUNT(kernels) };
