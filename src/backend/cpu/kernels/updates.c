/* Kernels of in-place updates except optimizers: running averages, counters, limits; and of the
 * gradient norm and the clipping factor. Optimizers: backend/cpu/kernels/optimizers.c. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/kernels/update_tiles.h"

#include <math.h>

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

static void clamp_update_run(KilnCall *call)
{
    kiln_cpu_each(call, kiln_cpu_count(&call->inputs[0]), clamp_update_part);
}

static void increment_run(KilnCall *call)
{
    int64_t *variable = call->inputs[0].data;

    (*variable)++;
}

/* ---- Clipping by norm ------------------------------------------------------------------ */

static int64_t pieces_of(int64_t n)
{
    return (n + KILN_UPDATE_PIECE - 1) / KILN_UPDATE_PIECE;
}

static KilnStatus l2_norm_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    call->inputs[0].layout = KILN_PLAIN;
    call->workspace_size = (size_t)pieces_of(kiln_cpu_count(&call->inputs[0])) * sizeof(double);
    return KILN_OK;
}

static void l2_norm_part(void *context, int64_t begin, int64_t end)
{
    KilnCall *call = context;
    const int64_t n = kiln_cpu_count(&call->inputs[0]);
    double *sums = call->workspace;
    KilnUpdateTiles tiles;

    for (int64_t piece = begin; piece < end; piece++) {
        const int64_t from = piece * KILN_UPDATE_PIECE,
                      to = n - from < KILN_UPDATE_PIECE ? n : from + KILN_UPDATE_PIECE;

        sums[piece] = 0.0;
        for (KILN_EACH_UPDATE_SPAN(s, call, from, to))
            sums[piece] += loops_of(call)->square_sum(kiln_variable_f32(call, 0, s, &tiles), s.n);
    }
}

static void l2_norm_run(KilnCall *call)
{
    const int64_t pieces = pieces_of(kiln_cpu_count(&call->inputs[0]));
    const double *sums = call->workspace;
    double total = 0.0;

    kiln_parallel(call->backend->threads, pieces, 1, 1, l2_norm_part, call);
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
