/* Matrix products. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/gemm.h"
#include "backend/cpu/map.h"

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

/* ---- What follows a product -------------------------------------------------------- */

/* Bias and epilogue, row by row of a part that is in cache. */
typedef struct Rows {
    const KilnCall *call;
    const float *bias; /* NULL: none */
    int64_t columns;   /* of the whole result */
} Rows;

static void finish_part(void *context, const KilnGemmPart *part)
{
    const Rows *rows = context;
    const KilnCall *call = rows->call;
    const bool whole = part->columns == rows->columns && rows->bias == NULL;
    const int64_t count = whole ? 1 : part->rows; /* whole rows lie one after the other */
    const int64_t n = whole ? part->rows * part->columns : part->columns;

    for (int64_t r = 0; r < count; r++) {
        const int64_t begin = (part->row + r) * rows->columns + part->column;
        float *y = (float *)call->outputs[0].data + begin;

        if (rows->bias != NULL)
            kiln_cpu(call)->loops->add(y, y, rows->bias + part->column, n);
        kiln_cpu_epilogue(call, y, begin, n);
    }
}

/* The product, then what follows it. */
static void run_and_finish(const KilnCall *call, const KilnGemm *gemm, const float *bias)
{
    Rows rows = { call, bias, gemm->n };
    const bool more = bias != NULL || call->epilogue != NULL;

    kiln_gemm_then(call, gemm, call->inputs[0].data, call->inputs[1].data, call->outputs[0].data,
                   more ? finish_part : NULL, &rows);
}

static KilnStatus product_prepare(KilnCall *call, KilnError *err)
{
    for (int i = 0; i < call->n_inputs; i++)
        call->inputs[i].layout = KILN_PLAIN;
    return kiln_cpu_epilogue_prepare(call, err);
}

/* ---- matmul ------------------------------------------------------------------------ */

/* The epilogue alone, over elements of a result that is complete. */
static void epilogue_part(void *context, int64_t begin, int64_t end)
{
    const KilnCall *call = context;

    kiln_cpu_epilogue(call, (float *)call->outputs[0].data + begin, begin, end - begin);
}

static void run_products(Matmul *matmul)
{
    const KilnBatch *batch = &matmul->batch;
    const int threads = matmul->call->backend->threads;

    if (!batch->add_up && batch->count >= threads && threads > 1) {
        kiln_parallel(threads, batch->count, 1, 1, run_part, matmul);
        return;
    }
    for (int64_t i = 0; i < batch->count; i++)
        run_product(matmul, false, i, batch->add_up && adds(batch, i));
}

static void matmul_run(KilnCall *call)
{
    const KilnArg *a = &call->inputs[0], *b = &call->inputs[1], *y = &call->outputs[0];
    Matmul matmul = { .call = call,
                      .batch = kiln_batch(call->attrs, &a->shape, &b->shape, &y->shape) };

    merge_products(&matmul.batch);
    matmul.gemm = gemm_of(&matmul.batch);
    if (matmul.batch.count == 1) {
        run_and_finish(call, &matmul.gemm, NULL);
        return;
    }
    run_products(&matmul);
    if (call->epilogue != NULL)
        kiln_cpu_each(call, kiln_cpu_count(y), epilogue_part);
}

/* ---- linear ------------------------------------------------------------------------ */

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

    run_and_finish(call, &gemm, call->inputs[2].absent ? NULL : call->inputs[2].data);
}

#define PRODUCT(name)                                                                              \
    {                                                                                              \
        .op = &kiln_op_##name, .prepare = product_prepare, .run = name##_run,                      \
        .release = kiln_cpu_epilogue_release, .epilogue = true                                     \
    }

static const KilnKernel kernels[] = { PRODUCT(matmul), PRODUCT(linear) };

const KilnCpuTable kiln_cpu_products = { kernels, KILN_COUNT(kernels) };
