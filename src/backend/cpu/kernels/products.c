/* Matrix products: matmul and linear, with their epilogues. f32 runs on kernels/gemm.c, bf16 on
 * bf16/product.c. */
#include "backend/cpu/bf16/product.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/kernels/bmm.h"
#include "backend/cpu/elementwise/map.h"

/* A matmul as the kernel runs it. */
typedef struct Matmul {
    const KilnCall *call;
    KilnBmm batch;
    KilnGemm gemm; /* of one product */
    float *sums;   /* of several products, if the result is bf16; else NULL */
} Matmul;

/* Runs product number i; alone: within a parallel loop. */
static void run_product(const Matmul *matmul, bool alone, int64_t i, bool add)
{
    const KilnBmm *batch = &matmul->batch;
    const KilnCall *call = matmul->call;
    const float *a = call->inputs[0].data, *b = call->inputs[1].data;
    float *y = call->outputs[0].data;
    KilnGemm gemm = matmul->gemm;

    a += kiln_bmm_at(batch, batch->step_a, i) * batch->m * batch->k;
    b += kiln_bmm_at(batch, batch->step_b, i) * batch->k * batch->n;
    y += kiln_bmm_at(batch, batch->step_y, i) * batch->m * batch->n;
    gemm.beta = add ? 1.0f : 0.0f;
    if (alone)
        kiln_gemm_alone(call, &gemm, a, b, y);
    else
        kiln_gemm(call, &gemm, a, b, y);
}

/* ---- In bf16 --------------------------------------------------------------------- */

/* A result in bf16 may have two factors in f32, which are rounded on the way. */
static bool is_bf16(const KilnCall *call)
{
    return call->inputs[0].dtype == KILN_BF16 || call->inputs[1].dtype == KILN_BF16 ||
           call->outputs[0].dtype == KILN_BF16;
}

static KilnBf16Product bf16_of(const KilnCall *call, const KilnGemm *gemm)
{
    const KilnArg *a = &call->inputs[0], *b = &call->inputs[1], *y = &call->outputs[0];

    return (KilnBf16Product) {
        .left = { .data = a->data,
                  .f32 = a->dtype == KILN_F32,
                  .across = gemm->transpose_a,
                  .stride = gemm->lda,
                  .rows = gemm->m,
                  .depth = gemm->k },
        .right = { .data = b->data,
                   .f32 = b->dtype == KILN_F32,
                   .across = !gemm->transpose_b,
                   .stride = gemm->ldb,
                   .rows = gemm->n,
                   .depth = gemm->k },
        .result = { .data = y->data, .f32 = y->dtype == KILN_F32, .stride = gemm->ldc },
        .tiles = kiln_cpu(call)->tiles,
        .loops = kiln_cpu(call)->loops,
        .threads = call->backend->threads,
    };
}

static void *element(const KilnArg *arg, int64_t i)
{
    return (char *)arg->data + (size_t)i * kiln_dtype_size(arg->dtype);
}

/* On one thread if it is alone. */
static void run_bf16(const Matmul *matmul, bool alone, int64_t i, bool add)
{
    const KilnBmm *batch = &matmul->batch;
    const KilnCall *call = matmul->call;
    KilnBf16Product product = bf16_of(call, &matmul->gemm);

    product.left.data = element(&call->inputs[0],
                                kiln_bmm_at(batch, batch->step_a, i) * batch->m * batch->k);
    product.right.data = element(&call->inputs[1],
                                 kiln_bmm_at(batch, batch->step_b, i) * batch->k * batch->n);

    const int64_t at = kiln_bmm_at(batch, batch->step_y, i) * batch->m * batch->n;

    product.result.data = element(&call->outputs[0], at);
    if (matmul->sums != NULL) {
        product.result.data = matmul->sums + at;
        product.result.f32 = true;
    }
    product.result.add = add;
    if (alone)
        product.threads = 1;
    kiln_bf16_product(&product, (char *)call->workspace +
                                    (size_t)kiln_thread() * kiln_bf16_product_workspace(&product));
}

/* Products that share a matrix of the result are summed in float and rounded once. */
static bool needs_sums(const KilnCall *call, const KilnBmm *batch)
{
    return batch->add_up && call->outputs[0].dtype == KILN_BF16;
}

/* Whether each product of a batch runs on one thread: there are several for each, or enough small
 * ones. */
static bool runs_alone(const KilnBmm *batch, int threads)
{
    enum { EACH = 4, SMALL = 1 << 20 };

    return !batch->add_up && threads > 1 && batch->count >= threads &&
           (batch->count >= EACH * threads || batch->m * batch->n <= SMALL / (batch->k + 1));
}

static void plain_inputs(KilnCall *call)
{
    for (int i = 0; i < call->n_inputs; i++)
        call->inputs[i].layout = KILN_PLAIN;
}

static KilnStatus matmul_prepare(KilnCall *call, KilnError *err)
{
    KilnBmm batch = kiln_bmm_of(call->attrs, &call->inputs[0].shape, &call->inputs[1].shape,
                                &call->outputs[0].shape);

    plain_inputs(call);
    if (is_bf16(call)) {
        kiln_bmm_merge(&batch);
        const KilnGemm gemm = kiln_bmm_gemm(&batch);
        const KilnBf16Product product = bf16_of(call, &gemm);
        const int threads = call->backend->threads;
        call->workspace_size = kiln_bf16_product_workspace(&product);
        if (runs_alone(&batch, threads))
            call->workspace_size *= (size_t)threads;
        if (needs_sums(call, &batch))
            call->workspace_size += (size_t)kiln_cpu_count(&call->outputs[0]) * sizeof(float);
    }
    return kiln_cpu_epilogue_prepare(call, err);
}

/* ---- The kernels ------------------------------------------------------------------ */

static void take_products(void *context, KilnShares *shares)
{
    for (int64_t i; (i = kiln_next_item(shares)) >= 0;)
        run_product(context, true, i, false);
}

/* ---- Bias and epilogue ---------------------------------------------------------- */

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
    const int64_t count = whole ? 1 : part->rows; /* whole rows are adjacent */
    const int64_t n = whole ? part->rows * part->columns : part->columns;

    for (int64_t r = 0; r < count; r++) {
        const int64_t begin = (part->row + r) * rows->columns + part->column;
        float *y = (float *)call->outputs[0].data + begin;

        if (rows->bias != NULL)
            kiln_cpu(call)->loops->add(y, y, rows->bias + part->column, n);
        kiln_cpu_epilogue(call, y, begin, n);
    }
}

/* The same in bf16: the epilogue gets the sums before rounding. */
static void finish_strip(void *context, float *sums, int64_t stride, const KilnGemmPart *part)
{
    const Rows *rows = context;

    for (int64_t r = 0; r < part->rows; r++, sums += stride) {
        if (rows->bias != NULL)
            kiln_cpu(rows->call)->loops->add(sums, sums, rows->bias + part->column, part->columns);
        kiln_cpu_epilogue(rows->call, sums, (part->row + r) * rows->columns + part->column,
                          part->columns);
    }
}

static void run_and_finish_bf16(const KilnCall *call, const KilnGemm *gemm, const float *bias)
{
    KilnBf16Product product = bf16_of(call, gemm);
    Rows rows = { call, bias, gemm->n };

    product.result.bias = bias;
    if (call->epilogue != NULL) {
        product.done = finish_strip;
        product.context = &rows;
    }
    kiln_bf16_product(&product, call->workspace);
}

/* The product, then bias and epilogue. */
static void run_and_finish(const KilnCall *call, const KilnGemm *gemm, const float *bias)
{
    Rows rows = { call, bias, gemm->n };
    const bool more = bias != NULL || call->epilogue != NULL;

    if (is_bf16(call)) {
        run_and_finish_bf16(call, gemm, bias);
        return;
    }
    kiln_gemm_then(call, gemm, call->inputs[0].data, call->inputs[1].data, call->outputs[0].data,
                   more ? finish_part : NULL, &rows);
}

/* Only the epilogue, over elements of a complete result. */
static void epilogue_part(void *context, int64_t begin, int64_t end)
{
    const KilnCall *call = context;
    const KilnArg *y = &call->outputs[0];
    float tile[KILN_MAP_TILE];

    if (y->dtype == KILN_F32) {
        kiln_cpu_epilogue(call, (float *)y->data + begin, begin, end - begin);
        return;
    }
    for (; begin < end; begin += KILN_MAP_TILE) {
        const int64_t n = end - begin < KILN_MAP_TILE ? end - begin : KILN_MAP_TILE;

        kiln_cpu(call)->loops->from_bf16(tile, (const uint16_t *)y->data + begin, n);
        kiln_cpu_epilogue(call, tile, begin, n);
    }
}

static void run_epilogue(KilnCall *call)
{
    if (call->epilogue != NULL)
        kiln_cpu_each(call, kiln_cpu_count(&call->outputs[0]), epilogue_part);
}

/* ---- matmul ------------------------------------------------------------------------ */

static void run_products(Matmul *matmul)
{
    const KilnBmm *batch = &matmul->batch;
    const int threads = matmul->call->backend->threads;

    if (runs_alone(batch, threads) && !kiln_gemm_is_deep(&matmul->gemm)) {
        kiln_parallel_items(threads, batch->count, take_products, matmul);
        return;
    }
    for (int64_t i = 0; i < batch->count; i++)
        run_product(matmul, false, i, batch->add_up && kiln_bmm_adds(batch, i));
}

/* Rounds elements of the sums and runs the epilogue on them. */
static void finish_sums(void *context, int64_t begin, int64_t end)
{
    const Matmul *matmul = context;
    const KilnCall *call = matmul->call;
    const float *sums = matmul->sums + begin;

    if (call->epilogue != NULL)
        kiln_cpu_epilogue(call, sums, begin, end - begin);
    else
        kiln_cpu(call)->loops->to_bf16((uint16_t *)call->outputs[0].data + begin, sums,
                                       end - begin);
}

static void take_products_bf16(void *context, KilnShares *shares)
{
    for (int64_t i; (i = kiln_next_item(shares)) >= 0;)
        run_bf16(context, true, i, false);
}

static void run_products_bf16(Matmul *matmul)
{
    const KilnBmm *batch = &matmul->batch;
    const KilnCall *call = matmul->call;

    if (runs_alone(batch, call->backend->threads)) {
        kiln_parallel_items(call->backend->threads, batch->count, take_products_bf16, matmul);
        return;
    }
    if (needs_sums(call, batch)) {
        const KilnBf16Product product = bf16_of(call, &matmul->gemm);

        matmul->sums =
            (float *)(void *)((char *)call->workspace + kiln_bf16_product_workspace(&product));
    }
    for (int64_t i = 0; i < batch->count; i++)
        run_bf16(matmul, false, i, batch->add_up && kiln_bmm_adds(batch, i));
    if (matmul->sums != NULL)
        kiln_parallel(call->backend->threads, kiln_cpu_count(&call->outputs[0]), 16384, 64,
                      finish_sums, matmul);
}

static void matmul_run(KilnCall *call)
{
    const KilnArg *a = &call->inputs[0], *b = &call->inputs[1], *y = &call->outputs[0];
    Matmul matmul = { .call = call,
                      .batch = kiln_bmm_of(call->attrs, &a->shape, &b->shape, &y->shape) };
    const KilnBmm *batch = &matmul.batch;

    kiln_bmm_merge(&matmul.batch);
    matmul.gemm = kiln_bmm_gemm(batch);
    if (batch->count == 1) {
        run_and_finish(call, &matmul.gemm, NULL);
        return;
    }
    if (is_bf16(call))
        run_products_bf16(&matmul);
    else
        run_products(&matmul);
    if (matmul.sums == NULL)
        run_epilogue(call);
}

/* ---- linear ------------------------------------------------------------------------ */

static KilnGemm linear_gemm(const KilnCall *call)
{
    const int64_t in = kiln_cpu_columns(&call->inputs[0]);
    const int64_t out = kiln_cpu_columns(&call->outputs[0]);

    return (KilnGemm) { .m = kiln_cpu_rows(&call->outputs[0]),
                        .n = out,
                        .k = in,
                        .lda = in,
                        .ldb = in,
                        .ldc = out,
                        .transpose_b = true,
                        .packed_b = call->inputs[1].layout != KILN_PLAIN,
                        .alpha = 1.0f };
}

/* Asks for a weight that stays the same between runs in panels, so that no run packs it. */
static KilnStatus pack_weight(KilnCall *call, const KilnGemm *gemm, KilnError *err)
{
    KilnArg *weight = &call->inputs[1];
    const int64_t panel = kiln_gemm_panel(call, gemm);

    return panel == 0 ? KILN_OK
                      : kiln_layout_panels(&kiln_cpu(call)->dnnl, &weight->shape, panel,
                                           &weight->layout, err);
}

static KilnStatus linear_prepare(KilnCall *call, KilnError *err)
{
    const KilnGemm gemm = linear_gemm(call);
    const KilnBf16Product product = bf16_of(call, &gemm);

    KilnStatus status = KILN_OK;

    plain_inputs(call);
    if (is_bf16(call))
        call->workspace_size = kiln_bf16_product_workspace(&product);
    else if (call->inputs[1].constant)
        status = pack_weight(call, &gemm, err);
    return status >= 0 ? kiln_cpu_epilogue_prepare(call, err) : status;
}

static void linear_run(KilnCall *call)
{
    const KilnGemm gemm = linear_gemm(call);

    run_and_finish(call, &gemm, call->inputs[2].absent ? NULL : call->inputs[2].data);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_matmul,
      .prepare = matmul_prepare,
      .run = matmul_run,
      .release = kiln_cpu_epilogue_release,
      .epilogue = true,
      .epilogue_gives_f32 = true,
      .bf16_inputs = 1u << 0 | 1u << 1,
      .bf16_outputs = 1u << 0,
      .rounding_inputs = 1u << 0 | 1u << 1 },
    { .op = &kiln_op_linear,
      .prepare = linear_prepare,
      .run = linear_run,
      .release = kiln_cpu_epilogue_release,
      .epilogue = true,
      .epilogue_gives_f32 = true,
      .bf16_inputs = 1u << 0 | 1u << 1,
      .bf16_outputs = 1u << 0,
      .rounding_inputs = 1u << 1 },
};

const KilnCpuTable kiln_cpu_products = { kernels, KILN_COUNT(kernels) };
