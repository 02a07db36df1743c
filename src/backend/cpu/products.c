/* Matrix products. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/gemm.h"

/* A matmul as the kernel runs it. */
typedef struct Matmul {
    const KilnCall *call;
    KilnBatch batch;
    KilnGemm gemm; /* of one product */
} Matmul;

static KilnGemm gemm_of(const KilnBatch *batch)
{
    return (KilnGemm) { .m = batch->m,
                        .n = batch->n,
                        .k = batch->k,
                        .lda = batch->transpose_a ? batch->m : batch->k,
                        .ldb = batch->transpose_b ? batch->k : batch->n,
                        .ldc = batch->n,
                        .transpose_a = batch->transpose_a,
                        .transpose_b = batch->transpose_b,
                        .alpha = 1.0f };
}

/* Whether walking over the products walks over the matrices one after the other;
 * or stays with the first. */
static bool steps_even(const KilnBatch *batch, const int64_t *steps)
{
    int64_t step = 1;

    for (int i = batch->axes.rank - 1; i >= 0; i--) {
        if (batch->axes.dim[i] > 1 && steps[i] != step)
            return false;
        step *= batch->axes.dim[i];
    }
    return true;
}

static bool steps_none(const KilnBatch *batch, const int64_t *steps)
{
    for (int i = 0; i < batch->axes.rank; i++)
        if (batch->axes.dim[i] > 1 && steps[i] != 0)
            return false;
    return true;
}

/* Many products with one matrix on the right are one product of all rows; the sum
 * of many aᵀ b is one product over all their rows. */
static void merge_products(KilnBatch *batch)
{
    bool a = steps_even(batch, batch->step_a), b = steps_even(batch, batch->step_b);

    if (a && !batch->transpose_a && steps_none(batch, batch->step_b) &&
        steps_even(batch, batch->step_y))
        batch->m *= batch->count;
    else if (a && b && batch->transpose_a && !batch->transpose_b &&
             steps_none(batch, batch->step_y))
        batch->k *= batch->count;
    else
        return;
    batch->count = 1;
    batch->axes.rank = 0;
    batch->add_up = false;
}

/* Product number i; alone: within a parallel loop. */
static void run_product(const Matmul *matmul, bool alone, int64_t i, bool add)
{
    const KilnBatch *batch = &matmul->batch;
    const KilnCall *call = matmul->call;
    const float *a = call->inputs[0].data, *b = call->inputs[1].data;
    float *y = call->outputs[0].data;
    KilnGemm gemm = matmul->gemm;

    a += kiln_batch_at(batch, batch->step_a, i) * batch->m * batch->k;
    b += kiln_batch_at(batch, batch->step_b, i) * batch->k * batch->n;
    y += kiln_batch_at(batch, batch->step_y, i) * batch->m * batch->n;
    gemm.beta = add ? 1.0f : 0.0f;
    if (alone)
        kiln_gemm_alone(call, &gemm, a, b, y);
    else
        kiln_gemm(call, &gemm, a, b, y);
}

static void run_part(void *context, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        run_product(context, true, i, false);
}

/* The first product of each matrix of the result sets it, later ones add to it:
 * it is the first when it stands at the start of every axis that is summed. */
static bool adds(const KilnBatch *batch, int64_t i)
{
    for (int axis = batch->axes.rank - 1; axis >= 0; axis--) {
        if (batch->step_y[axis] == 0 && i % batch->axes.dim[axis] != 0)
            return true;
        i /= batch->axes.dim[axis];
    }
    return false;
}

static void matmul_run(KilnCall *call)
{
    const KilnArg *a = &call->inputs[0], *b = &call->inputs[1], *y = &call->outputs[0];
    const int threads = call->backend->threads;
    Matmul matmul = { .call = call,
                      .batch = kiln_batch(call->attrs, &a->shape, &b->shape, &y->shape) };

    merge_products(&matmul.batch);
    matmul.gemm = gemm_of(&matmul.batch);
    if (!matmul.batch.add_up && matmul.batch.count >= threads && threads > 1 &&
        matmul.batch.count > 1) {
        kiln_parallel(threads, matmul.batch.count, 1, 1, run_part, &matmul);
        return;
    }
    for (int64_t i = 0; i < matmul.batch.count; i++)
        run_product(&matmul, false, i, matmul.batch.add_up && adds(&matmul.batch, i));
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
    const int64_t rows = kiln_cpu_rows(&call->outputs[0]);
    const int64_t in = kiln_cpu_columns(&call->inputs[0]);
    const int64_t out = kiln_cpu_columns(&call->outputs[0]);
    const KilnGemm gemm = { .m = rows,
                            .n = out,
                            .k = in,
                            .lda = in,
                            .ldb = in,
                            .ldc = out,
                            .transpose_b = true,
                            .alpha = 1.0f };

    kiln_gemm(call, &gemm, call->inputs[0].data, call->inputs[1].data, call->outputs[0].data);
    if (!call->inputs[2].absent)
        kiln_parallel(call->backend->threads, rows, 16384 / (out + 1) + 1, 1, bias_part, call);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_matmul, .run = matmul_run },
    { .op = &kiln_op_linear, .run = linear_run },
};

const KilnCpuTable kiln_cpu_products = { kernels, KILN_COUNT(kernels) };
