/* Kernels of in-place updates except optimizers: running averages, counters, limits; and of the
 * gradient norm and the clipping factor. Optimizers: backend/cpu/kernels/optimizers.c. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/kernels/update_tiles.h"

#include <math.h>

enum { ROWS_PIECE = 256 };

static const KilnOptimizerLoops *loops_of(const KilnCall *call)
{
    return kiln_cpu(call)->loops->optimizers;
}

/* ---- Averages, counters, limits ---------------------------------------------------- */

static void ema_update_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const KilnScaleAttrs *attrs = call->attrs;
    KilnUpdateTiles tiles;

    for (KILN_EACH_UPDATE_SPAN(s, call, begin, end)) {
        kiln_cpu(call)->loops->blend(kiln_variable_f32(call, 0, s, &tiles),
                                     kiln_variable_at(call, 1, s.at), (float)(1.0 - attrs->factor),
                                     (float)(attrs->factor * attrs->correction), s.n);
        kiln_variables_store(call, s, &tiles);
    }
}

static void ema_update_run(KilnCall *call)
{
    kiln_cpu_each(call, kiln_cpu_count(&call->inputs[0]), ema_update_part);
}

static void lerp_update_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    KilnUpdateTiles tiles;

    for (KILN_EACH_UPDATE_SPAN(s, call, begin, end)) {
        loops_of(call)->lerp(kiln_variable_f32(call, 0, s, &tiles),
                             kiln_variable_f32(call, 1, s, &tiles), *kiln_variable_at(call, 2, 0),
                             s.n);
        kiln_variables_store(call, s, &tiles);
    }
}

static void lerp_update_run(KilnCall *call)
{
    kiln_cpu_each(call, kiln_cpu_count(&call->inputs[0]), lerp_update_part);
}

/* The listed rows of input 0, its only ones that may be nonzero; NULL: any may be. */
static const int32_t *sparse_rows(const KilnCall *call)
{
    const int32_t *list = call->inputs[1].absent ? NULL : call->inputs[1].data;

    return list != NULL && list[0] != KILN_SPARSE_ROWS_ALL ? list : NULL;
}

static int64_t row_width(const KilnCall *call)
{
    return kiln_cpu_count(&call->inputs[0]) / call->inputs[0].shape.dim[0];
}

static void clamp_update_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const KilnLimitAttrs *attrs = call->attrs;
    KilnUpdateTiles tiles;

    for (KILN_EACH_UPDATE_SPAN(s, call, begin, end)) {
        loops_of(call)->clamp(kiln_variable_f32(call, 0, s, &tiles), (float)attrs->limit, s.n);
        kiln_variables_store(call, s, &tiles);
    }
}

static void clamp_rows_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const int32_t *rows = sparse_rows(call) + 1;
    const int64_t width = row_width(call);

    for (int64_t i = begin; i < end; i++)
        clamp_update_part(call, rows[i] * width, (rows[i] + 1) * width);
}

static void clamp_update_run(KilnCall *call)
{
    const int32_t *list = sparse_rows(call);

    if (list != NULL)
        kiln_parallel(call->backend->threads, list[0], ROWS_PIECE, 1, clamp_rows_part, call);
    else
        kiln_cpu_each(call, kiln_cpu_count(&call->inputs[0]), clamp_update_part);
}

static void increment_run(KilnCall *call)
{
    int64_t *variable = call->inputs[0].data;

    (*variable)++;
}

/* ---- Clipping by norm ------------------------------------------------------------------ */

/* Elements, or with a list of sparse rows its entries, are summed in pieces. */
static int64_t pieces_of(int64_t n, int64_t piece)
{
    return (n + piece - 1) / piece;
}

static KilnStatus l2_norm_prepare(KilnCall *call, KilnError *err)
{
    const KilnArg *x = &call->inputs[0];
    const int64_t rows = call->inputs[1].absent ? 0 : x->shape.dim[0];
    const int64_t most = pieces_of(kiln_cpu_count(x), KILN_UPDATE_PIECE) +
                         pieces_of(rows, ROWS_PIECE);

    (void)err;
    call->inputs[0].layout = KILN_PLAIN;
    call->workspace_size = (size_t)most * sizeof(double);
    return KILN_OK;
}

static double square_sum(const KilnCall *call, int64_t begin, int64_t end)
{
    KilnUpdateTiles tiles;
    double sum = 0.0;

    for (KILN_EACH_UPDATE_SPAN(s, call, begin, end))
        sum += loops_of(call)->square_sum(kiln_variable_f32(call, 0, s, &tiles), s.n);
    return sum;
}

static void l2_norm_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const int64_t n = kiln_cpu_count(&call->inputs[0]);
    double *sums = call->workspace;

    for (int64_t piece = begin; piece < end; piece++) {
        const int64_t from = piece * KILN_UPDATE_PIECE,
                      to = n - from < KILN_UPDATE_PIECE ? n : from + KILN_UPDATE_PIECE;

        sums[piece] = square_sum(call, from, to);
    }
}

static void l2_norm_rows_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const int32_t *list = sparse_rows(call);
    const int64_t width = row_width(call);
    double *sums = call->workspace;

    for (int64_t piece = begin; piece < end; piece++) {
        sums[piece] = 0.0;
        for (int64_t i = piece * ROWS_PIECE; i < (piece + 1) * ROWS_PIECE && i < list[0]; i++)
            sums[piece] += square_sum(call, list[1 + i] * width, (list[1 + i] + 1) * width);
    }
}

static void l2_norm_run(KilnCall *call)
{
    const int32_t *list = sparse_rows(call);
    const int64_t pieces = list != NULL
                               ? pieces_of(list[0], ROWS_PIECE)
                               : pieces_of(kiln_cpu_count(&call->inputs[0]), KILN_UPDATE_PIECE);
    const double *sums = call->workspace;
    double total = 0.0;

    kiln_parallel(call->backend->threads, pieces, 1, 1,
                  list != NULL ? l2_norm_rows_part : l2_norm_part, call);
    for (int64_t piece = 0; piece < pieces; piece++)
        total += sums[piece];
    *(float *)call->outputs[0].data = (float)sqrt(total);
}

static void clip_factor_run(KilnCall *call)
{
    const KilnLimitAttrs *attrs = call->attrs;
    double factor = attrs->limit / ((double)*kiln_variable_at(call, 0, 0) + 1e-6);

    *(float *)call->outputs[0].data = factor > 1.0 ? 1.0f : (float)factor;
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_ema_update, .run = ema_update_run, .bf16_inputs = 1u << 0 },
    { .op = &kiln_op_lerp_update,
      .run = lerp_update_run,
      .bf16_inputs = 1u << 0 | 1u << 1,
      .mixed_floats = true },
    { .op = &kiln_op_clamp_update, .run = clamp_update_run, .bf16_inputs = 1u << 0 },
    { .op = &kiln_op_increment, .run = increment_run },
    { .op = &kiln_op_l2_norm,
      .prepare = l2_norm_prepare,
      .run = l2_norm_run,
      .bf16_inputs = 1u << 0 },
    { .op = &kiln_op_clip_factor, .run = clip_factor_run },
};

const KilnCpuTable kiln_cpu_updates = { kernels, KILN_COUNT(kernels) };
