/* Layer and rms norm, row by row in plain order. The gradients of weight and bias are sums over
 * parts of the rows, combined in order, so that they do not depend on the number of threads. The
 * vector loops are in isa/row_norm.c. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "base/min.h"

/* Rows summed in float before adding to the doubles; most parts of the rows. */
enum { FLUSH_ROWS = 64, MOST_PARTS = 32 };

typedef struct RowNorm {
    const KilnCall *call;
    const KilnRowNormLoops *loops;
    KilnRowNorm norm;
    KilnSets sets;
    int64_t parts; /* of the rows, backward; a function of the shape alone */
} RowNorm;

static RowNorm row_norm_of(const KilnCall *call, int x, int weight)
{
    const KilnSetNormAttrs *attrs = call->attrs;
    const KilnSets sets = kiln_sets(attrs, &call->inputs[x].shape);

    return (RowNorm) {
        .call = call,
        .loops = kiln_cpu(call)->loops->row_norm,
        .norm = { .columns = sets.run,
                  .center = call->op != &kiln_op_rms_norm && call->op != &kiln_op_rms_norm_grad,
                  .eps = (float)attrs->eps,
                  .weight = call->inputs[weight].absent ? NULL : call->inputs[weight].data },
        .sets = sets,
    };
}

/* All bits if all are bf16, absent ones included. */
static unsigned bf16_of(const KilnArg *x, unsigned x_bit, const KilnArg *y, unsigned y_bit,
                        const KilnArg *z, unsigned z_bit)
{
    const unsigned bf16 = (x->dtype == KILN_BF16 ? x_bit : 0u) |
                          (y->dtype == KILN_BF16 ? y_bit : 0u) |
                          (z->dtype == KILN_BF16 ? z_bit : 0u);

    return bf16 == (x_bit | y_bit | z_bit) ? KILN_ROW_ALL : bf16;
}

static void *row(const KilnArg *arg, const RowNorm *rows, int64_t r)
{
    return (char *)arg->data + (size_t)(r * rows->sets.run) * kiln_dtype_size(arg->dtype);
}

static int64_t row_grain(const RowNorm *rows)
{
    return 16384 / (rows->sets.run + 1) + 1;
}

/* ---- Forward -------------------------------------------------------------------- */

static void forward_part(void *context, int64_t begin, int64_t end)
{
    const RowNorm *rows = context;
    const KilnArg *out = rows->call->outputs;
    float *rstd = out[rows->call->n_outputs - 1].data, none;

    for (int64_t r = begin; r < end; r++)
        rows->loops->forward(&rows->norm, row(&out[0], rows, r),
                             row(&rows->call->inputs[0], rows, r),
                             rows->norm.center ? (float *)out[1].data + r : &none, rstd + r);
}

static void forward_run(KilnCall *call)
{
    RowNorm rows = row_norm_of(call, 0, 1);

    rows.norm.bf16 = bf16_of(&call->inputs[0], KILN_ROW_X, &call->outputs[0], KILN_ROW_Y,
                             &call->outputs[0], KILN_ROW_Y);
    if (call->n_inputs > 2 && !call->inputs[2].absent)
        rows.norm.bias = call->inputs[2].data;
    kiln_parallel(call->backend->threads, rows.sets.count, row_grain(&rows), 1, forward_part,
                  &rows);
}

/* ---- Backward ------------------------------------------------------------------- */

enum { DY, X, WEIGHT, MEAN };

/* Each part has the sums of dweight and dbias: doubles, and a float buffer each. */
static double *part_sums(const RowNorm *rows, int64_t part)
{
    return (double *)rows->call->workspace + part * rows->sets.run * 3;
}

static void flush(double *sums, float *floats, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        sums[i] += (double)floats[i];
    memset(floats, 0, (size_t)n * sizeof(*floats));
}

static void backward_rows(const RowNorm *rows, int64_t part, int64_t begin, int64_t end)
{
    const KilnArg *in = rows->call->inputs;
    const int64_t columns = rows->sets.run;
    const float *mean = rows->norm.center ? in[MEAN].data : NULL;
    const float *rstd = in[rows->call->n_inputs - 1].data;
    double *sums = part_sums(rows, part);
    float *floats = (float *)(void *)(sums + 2 * columns);

    memset(sums, 0, (size_t)columns * 3 * sizeof(*sums));
    for (int64_t r = begin; r < end; r++) {
        rows->loops->backward(&rows->norm, row(&rows->call->outputs[0], rows, r),
                              row(&in[DY], rows, r), row(&in[X], rows, r),
                              mean != NULL ? mean[r] : 0.0f, rstd[r], floats,
                              rows->call->n_outputs > 2 ? floats + columns : NULL);
        if ((r - begin) % FLUSH_ROWS == FLUSH_ROWS - 1 || r + 1 == end)
            flush(sums, floats, 2 * columns);
    }
}

static void backward_part(void *context, int64_t begin, int64_t end)
{
    const RowNorm *rows = context;

    for (int64_t part = begin; part < end; part++)
        backward_rows(rows, part, rows->sets.count * part / rows->parts,
                      rows->sets.count * (part + 1) / rows->parts);
}

static int64_t parts_of(const RowNorm *rows)
{
    const int64_t parts = rows->sets.count / row_grain(rows);

    return parts < 1 ? 1 : kiln_min_i64(parts, MOST_PARTS);
}

static KilnStatus backward_prepare(KilnCall *call, KilnError *err)
{
    const RowNorm rows = row_norm_of(call, X, WEIGHT);

    (void)err;
    for (int i = 0; i < call->n_inputs; i++)
        call->inputs[i].layout = KILN_PLAIN;
    call->workspace_size = (size_t)(parts_of(&rows) * rows.sets.run * 3) * sizeof(double);
    return KILN_OK;
}

static void join_part(void *context, int64_t begin, int64_t end)
{
    const RowNorm *rows = context;

    for (int i = 1; i < rows->call->n_outputs; i++)
        for (int64_t c = begin; c < end; c++) {
            double sum = 0.0;

            for (int64_t part = 0; part < rows->parts; part++)
                sum += part_sums(rows, part)[(i - 1) * rows->sets.run + c];
            ((float *)rows->call->outputs[i].data)[c] = (float)sum;
        }
}

static void backward_run(KilnCall *call)
{
    RowNorm rows = row_norm_of(call, X, WEIGHT);
    const int threads = call->backend->threads;

    rows.norm.bf16 = bf16_of(&call->inputs[DY], KILN_ROW_DY, &call->inputs[X], KILN_ROW_X,
                             &call->outputs[0], KILN_ROW_DX);
    rows.parts = parts_of(&rows);
    kiln_parallel(threads, rows.parts, 1, 1, backward_part, &rows);
    kiln_parallel(threads, rows.sets.run, 8192 / rows.parts + 1, 16, join_part, &rows);
}

#define FORWARD(name)                                                                              \
    {                                                                                              \
        .op = &kiln_op_##name, .run = forward_run, .in_place = 1, .bf16_inputs = 1u << 0,          \
        .bf16_outputs = 1u << 0, .mixed_floats = true                                              \
    }
#define BACKWARD(name)                                                                             \
    {                                                                                              \
        .op = &kiln_op_##name, .prepare = backward_prepare, .run = backward_run, .in_place = 1,    \
        .bf16_inputs = 1u << DY | 1u << X, .bf16_outputs = 1u << 0, .mixed_floats = true           \
    }

static const KilnKernel kernels[] = { FORWARD(layer_norm), FORWARD(rms_norm),
                                      BACKWARD(layer_norm_grad), BACKWARD(rms_norm_grad) };

const KilnCpuTable kiln_cpu_row_norm = { kernels, KILN_COUNT(kernels) };
