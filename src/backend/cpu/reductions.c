/* Sums and searches. Sums are made over fixed chunks whose results are added in
 * order, so they do not depend on the number of threads. */
#include "backend/cpu/cpu.h"

enum { SUM_CHUNK = 16384 /* elements */, ROW_CHUNK = 64 };

/* ---- Sum of everything, in any layout: padding is zero -------------------------- */

static int64_t sum_chunks(const KilnArg *x)
{
    return (kiln_cpu_floats(x) + SUM_CHUNK - 1) / SUM_CHUNK;
}

static KilnStatus sum_prepare(KilnCall *call, KilnError *err)
{
    KilnArg *x = &call->inputs[0];

    (void)err;
    x->bytes = call->backend->ops->layout_bytes(call->backend, x->layout, x->dtype, &x->shape);
    call->workspace_size = (size_t)sum_chunks(x) * sizeof(double);
    return KILN_OK;
}

static void sum_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const float *x = call->inputs[0].data;
    const int64_t n = kiln_cpu_floats(&call->inputs[0]);
    double *sums = call->workspace;

    for (int64_t chunk = begin; chunk < end; chunk++) {
        int64_t from = chunk * SUM_CHUNK;

        sums[chunk] = kiln_cpu(call)->loops->sum(x + from,
                                                 n - from < SUM_CHUNK ? n - from : SUM_CHUNK);
    }
}

static double sum_all(KilnCall *call)
{
    const int64_t chunks = sum_chunks(&call->inputs[0]);
    const double *sums = call->workspace;
    double total = 0.0;

    kiln_parallel(call->backend->threads, chunks, 2, 1, sum_part, call);
    for (int64_t chunk = 0; chunk < chunks; chunk++)
        total += sums[chunk];
    return total;
}

static void sum_run(KilnCall *call)
{
    *(float *)call->outputs[0].data = (float)sum_all(call);
}

static void mean_run(KilnCall *call)
{
    *(float *)call->outputs[0].data =
        (float)(sum_all(call) / (double)kiln_cpu_count(&call->inputs[0]));
}

/* ---- Sum over rows ---------------------------------------------------------------
 * Plain: chunks of ROW_CHUNK rows, each giving `columns` partial sums. Blocked
 * images: a chunk is one image, whose blocks are rows of 16 (or 8) channels. */

typedef struct RowSum {
    const KilnLoops *loops;
    const float *x;
    float *partial; /* [chunks, width] */
    int64_t rows, columns, chunks;
    int64_t block; /* channels per block; 0: plain */
    int64_t width; /* columns, filled up to whole blocks */
} RowSum;

static RowSum row_sum_of(KilnCall *call)
{
    const KilnArg *x = &call->inputs[0];
    const KilnMdFormat format = kiln_layout_format(&kiln_cpu(call)->dnnl, x->layout, &x->shape);
    RowSum sum = {
        .loops = kiln_cpu(call)->loops,
        .x = x->data,
        .partial = call->workspace,
        .rows = kiln_cpu_rows(x),
        .columns = kiln_cpu_columns(x),
        .block = format == KILN_MD_C16  ? 16
                 : format == KILN_MD_C8 ? 8
                                        : 0,
    };

    sum.width = sum.columns;
    sum.chunks = (sum.rows + ROW_CHUNK - 1) / ROW_CHUNK;
    if (sum.block > 0) {
        sum.width = (sum.columns + sum.block - 1) / sum.block * sum.block;
        sum.chunks = x->shape.dim[0];
    }
    return sum;
}

static KilnStatus sum_rows_prepare(KilnCall *call, KilnError *err)
{
    KilnArg *x = &call->inputs[0];

    (void)err;
    if (kiln_layout_format(&kiln_cpu(call)->dnnl, x->layout, &x->shape) == KILN_MD_ANY)
        x->layout = KILN_PLAIN;

    RowSum sum = row_sum_of(call);

    call->workspace_size = (size_t)(sum.chunks * sum.width) * sizeof(float);
    return KILN_OK;
}

static void sum_rows_part(void *context, int64_t begin, int64_t end)
{
    const RowSum *sum = context;

    for (int64_t chunk = begin; chunk < end; chunk++) {
        float *partial = sum->partial + chunk * sum->width;

        if (sum->block > 0) {
            const int64_t places = sum->rows / sum->chunks;
            const float *image = sum->x + chunk * places * sum->width;

            for (int64_t c = 0; c < sum->width; c += sum->block)
                sum->loops->sum_rows(partial + c, image + c * places, places, sum->block,
                                     sum->block);
        } else {
            int64_t first = chunk * ROW_CHUNK, rows = sum->rows - first;

            sum->loops->sum_rows(partial, sum->x + first * sum->columns,
                                 rows < ROW_CHUNK ? rows : ROW_CHUNK, sum->columns, sum->columns);
        }
    }
}

static void sum_rows_run(KilnCall *call)
{
    RowSum sum = row_sum_of(call);
    float *y = call->outputs[0].data;

    kiln_parallel(call->backend->threads, sum.chunks,
                  SUM_CHUNK * sum.chunks / (sum.rows * sum.columns + 1) + 1, 1, sum_rows_part,
                  &sum);
    for (int64_t c = 0; c < sum.columns; c++) {
        double total = 0.0;

        for (int64_t chunk = 0; chunk < sum.chunks; chunk++)
            total += (double)sum.partial[chunk * sum.width + c];
        y[c] = (float)total;
    }
}

/* ---- Argmax ---------------------------------------------------------------------- */

static void argmax_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const int64_t columns = kiln_cpu_columns(&call->inputs[0]);
    int32_t *y = call->outputs[0].data;

    for (int64_t r = begin; r < end; r++) {
        const float *x = (const float *)call->inputs[0].data + r * columns;
        int32_t best = 0;

        for (int32_t c = 1; c < columns; c++)
            if (x[c] > x[best])
                best = c;
        y[r] = best;
    }
}

static void argmax_run(KilnCall *call)
{
    const KilnArg *x = &call->inputs[0];

    kiln_parallel(call->backend->threads, kiln_cpu_rows(x), 16384 / (kiln_cpu_columns(x) + 1) + 1,
                  1, argmax_part, call);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_sum, .prepare = sum_prepare, .run = sum_run },
    { .op = &kiln_op_mean, .prepare = sum_prepare, .run = mean_run },
    { .op = &kiln_op_sum_rows, .prepare = sum_rows_prepare, .run = sum_rows_run },
    { .op = &kiln_op_argmax, .run = argmax_run },
};

const KilnCpuTable kiln_cpu_reductions = { kernels, KILN_COUNT(kernels) };
