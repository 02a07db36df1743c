/* Matrix products of f64, by OpenBLAS. */
#include "backend/cpu/blas.h"
#include "backend/cpu/f64/f64.h"
#include "backend/cpu/kernels/bmm.h"

/* ---- matmul ------------------------------------------------------------------------- */

typedef struct Products {
    const KilnCall *call;
    KilnBmm batch;
    KilnGemm gemm; /* of one product */
} Products;

/* Runs product number i with so many threads. */
static void run_product(const Products *products, int64_t i, int threads)
{
    const KilnBmm *batch = &products->batch;
    const KilnCall *call = products->call;
    const double *a = call->inputs[0].data, *b = call->inputs[1].data;
    double *y = call->outputs[0].data;
    KilnGemm gemm = products->gemm;

    a += kiln_bmm_at(batch, batch->step_a, i) * batch->m * batch->k;
    b += kiln_bmm_at(batch, batch->step_b, i) * batch->k * batch->n;
    y += kiln_bmm_at(batch, batch->step_y, i) * batch->m * batch->n;
    gemm.beta = batch->add_up && kiln_bmm_adds(batch, i) ? 1.0f : 0.0f;
    if (threads > 1)
        kiln_blas_gemm(threads, &gemm, KILN_F64, a, b, y, NULL, NULL);
    else
        kiln_blas_product(&gemm, KILN_F64, a, b, y);
}

static void run_part(void *context, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        run_product(context, i, 1);
}

static void matmul_run(KilnCall *call)
{
    const int threads = call->backend->threads;
    Products products = { .call = call,
                          .batch = kiln_bmm_of(call->attrs, &call->inputs[0].shape,
                                               &call->inputs[1].shape, &call->outputs[0].shape) };

    kiln_bmm_merge(&products.batch);
    products.gemm = kiln_bmm_gemm(&products.batch);
    if (!products.batch.add_up && products.batch.count >= threads)
        kiln_parallel(threads, products.batch.count, 1, 1, run_part, &products);
    else
        for (int64_t i = 0; i < products.batch.count; i++)
            run_product(&products, i, threads);
}

/* ---- linear ------------------------------------------------------------------------- */

static void add_bias(void *context, const KilnGemmPart *part)
{
    const KilnCall *call = context;
    const double *bias = call->inputs[2].data;
    const int64_t columns = kiln_cpu_columns(&call->outputs[0]);

    for (int64_t i = part->row; i < part->row + part->rows; i++) {
        double *y = (double *)call->outputs[0].data + i * columns;

        for (int64_t j = part->column; j < part->column + part->columns; j++)
            y[j] += bias[j];
    }
}

static void linear_run(KilnCall *call)
{
    const int64_t in = kiln_cpu_columns(&call->inputs[0]);
    const int64_t out = kiln_cpu_columns(&call->outputs[0]);
    const KilnGemm gemm = { .m = kiln_cpu_rows(&call->outputs[0]),
                            .n = out,
                            .k = in,
                            .lda = in,
                            .ldb = in,
                            .ldc = out,
                            .transpose_b = true,
                            .alpha = 1.0f };

    kiln_blas_gemm(call->backend->threads, &gemm, KILN_F64, call->inputs[0].data,
                   call->inputs[1].data, call->outputs[0].data,
                   call->inputs[2].absent ? NULL : add_bias, call);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_matmul, .run = matmul_run },
    { .op = &kiln_op_linear, .run = linear_run },
};

const KilnCpuTable kiln_f64_products = { kernels, KILN_COUNT(kernels) };
