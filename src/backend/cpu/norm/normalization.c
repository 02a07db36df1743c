/* Batch normalization on the vector loops, in the layout of x. A thread processes a group of
 * channels as a whole, statistics first and then the result, so that the second pass reads from
 * cache; with few groups, threads share the images of each. Sums are made in parts of the images
 * and combined in their order, so that results do not depend on the number of threads. */
#include <math.h>
#include <string.h>

#include "backend/cpu/norm/panels.h"
#include "base/min.h"

enum { PART = 32768, MOST_PARTS = 16 }; /* elements of a part of a group's images; most parts */

typedef struct BatchNorm BatchNorm;

/* Images of a group. */
typedef struct Span {
    int64_t group, begin, end;
} Span;

/* The two passes over some images; the second needs the sums of the whole group. Evaluation has
 * only the second. */
typedef struct Passes {
    void (*sums)(const BatchNorm *norm, const Span *span, double *sums);
    void (*apply)(const BatchNorm *norm, const Span *span);
} Passes;

struct BatchNorm {
    const KilnCall *call;
    const KilnBatchNormLoops *loops;
    const Passes *passes;
    KilnGroups groups;
    int64_t parts; /* of the images of a group; a function of the shape alone */
    bool relu;
    double *sums; /* [groups][parts][2][KILN_PANEL] */
};

/* ---- Numbers of channels -------------------------------------------------------------- */

static double *sums_at(const BatchNorm *norm, int64_t g, int64_t part)
{
    return norm->sums + (g * norm->parts + part) * 2 * KILN_PANEL;
}

/* One of the two sums (0 or 1) of channel c of group g. */
static double total(const BatchNorm *norm, int64_t g, int which, int64_t c)
{
    double sum = 0.0;

    for (int64_t part = 0; part < norm->parts; part++)
        sum += kiln_panel_total(&norm->groups, sums_at(norm, g, part) + which * KILN_PANEL, c);
    return sum;
}

/* The group's part of an input or output of [C]. */
static float *channels(const KilnArg *arg, const BatchNorm *norm, int64_t g)
{
    return (float *)arg->data + g * norm->groups.size;
}

/* ---- Splitting the work --------------------------------------------------------- */

static Span span_of(const BatchNorm *norm, int64_t item)
{
    const int64_t part = item % norm->parts, images = norm->groups.images;

    return (Span) { .group = item / norm->parts,
                    .begin = images * part / norm->parts,
                    .end = images * (part + 1) / norm->parts };
}

static int64_t parts_of(const KilnGroups *groups)
{
    const int64_t most = kiln_min_i64(groups->images, MOST_PARTS);
    const int64_t parts = groups->rows * groups->size / PART;

    return parts < 1 ? 1 : kiln_min_i64(parts, most);
}

static BatchNorm norm_of(const KilnCall *call, const KilnArg *x, const KilnPanelArg *args)
{
    const KilnBatchNormAttrs *attrs = call->attrs;
    BatchNorm norm = {
        .call = call,
        .loops = kiln_cpu(call)->loops->batch_norm,
        .groups = kiln_groups(call, x, 0),
        .relu = attrs->relu != 0,
        .sums = call->workspace,
    };

    norm.groups.bf16 = kiln_panel_to_bf16(call, args);
    norm.parts = parts_of(&norm.groups);
    return norm;
}

static void run_sums(void *context, int64_t begin, int64_t end)
{
    const BatchNorm *norm = context;

    for (int64_t item = begin; item < end; item++) {
        const Span span = span_of(norm, item);
        double *sums = sums_at(norm, span.group, item % norm->parts);

        memset(sums, 0, 2 * KILN_PANEL * sizeof(*sums));
        norm->passes->sums(norm, &span, sums);
    }
}

static void run_apply(void *context, int64_t begin, int64_t end)
{
    const BatchNorm *norm = context;

    for (int64_t item = begin; item < end; item++) {
        const Span span = span_of(norm, item);

        norm->passes->apply(norm, &span);
    }
}

/* Both passes over whole groups. */
static void run_groups(void *context, int64_t begin, int64_t end)
{
    const BatchNorm *norm = context;

    for (int64_t g = begin; g < end; g++) {
        if (norm->passes->sums != NULL)
            run_sums(context, g * norm->parts, (g + 1) * norm->parts);
        norm->passes->apply(norm, &(Span) { g, 0, norm->groups.images });
    }
}

/* Runs [0, n), each of which has this many elements. */
static void share(BatchNorm *norm, int64_t n, int64_t elements, KilnRange range)
{
    /* Below this many elements, a thread costs more than it gains. */
    const int64_t grain = 16384 / (elements + 1) + 1;

    kiln_parallel(norm->call->backend->threads, n, grain, 1, range, norm);
}

/* All sums of a group must exist before its first result. */
static void run_passes(BatchNorm *norm, const Passes *passes)
{
    const int64_t threads = norm->call->backend->threads, count = norm->groups.count;
    const int64_t elements = norm->groups.rows * norm->groups.size;

    norm->passes = passes;
    if (norm->parts == 1 || count % threads == 0 || count >= 4 * threads) {
        share(norm, count, elements, run_groups);
        return;
    }
    if (passes->sums != NULL)
        share(norm, count * norm->parts, elements / norm->parts, run_sums);
    share(norm, count * norm->parts, elements / norm->parts, run_apply);
}

/* ---- Workspace ------------------------------------------------------------------ */

static void room_for_sums(KilnCall *call, const KilnArg *x)
{
    const KilnGroups groups = kiln_groups(call, x, 0);

    call->workspace_size = (size_t)(groups.count * parts_of(&groups) * 2 * KILN_PANEL) *
                           sizeof(double);
}

/* ---- Forward ---------------------------------------------------------------------------- */

/* Uses differences from an element of the channel, so that the squares of a large mean do not swamp
 * the variance. */
static void near_mean(const BatchNorm *norm, int64_t g, KilnNormColumns *columns)
{
    const KilnArg *x = &norm->call->inputs[0];
    const int64_t at = kiln_panels(&norm->groups, g, 0, false).at[0];

    memset(columns, 0, sizeof(*columns));
    for (int64_t c = 0; c < kiln_group_channels(&norm->groups, g); c++)
        columns->mean[c] = kiln_panel_element(x, at + c);
    kiln_columns_repeat(&norm->groups, columns);
}

static void forward_sums(const BatchNorm *norm, const Span *span, double *sums)
{
    KilnNormColumns columns;

    near_mean(norm, span->group, &columns);
    for (int64_t image = span->begin; image < span->end; image++) {
        const KilnPanels panels = kiln_panels(&norm->groups, span->group, image, norm->relu);

        for (int i = 0; i < panels.n; i++)
            norm->loops->sums(&panels.panel[i], kiln_panel_input(norm->call, 0, panels.at[i]),
                              &columns, sums, sums + KILN_PANEL);
    }
}

/* Rounds mean and variance as the backward pass will read them. */
static void forward_columns(const BatchNorm *norm, int64_t g, const float *mean, const float *var,
                            KilnNormColumns *columns)
{
    const KilnBatchNormAttrs *attrs = norm->call->attrs;
    const float *weight = channels(&norm->call->inputs[1], norm, g);
    const float *bias = channels(&norm->call->inputs[2], norm, g);

    memset(columns, 0, sizeof(*columns));
    for (int64_t c = 0; c < kiln_group_channels(&norm->groups, g); c++) {
        columns->mean[c] = mean[c];
        columns->scale[c] = (float)((double)weight[c] / sqrt((double)var[c] + attrs->eps));
        columns->bias[c] = bias[c];
    }
    kiln_columns_repeat(&norm->groups, columns);
}

/* Mean and variance of a group from its sums. Every span computes the same; only the first stores
 * them. */
static void statistics(const BatchNorm *norm, int64_t g, float mean[KILN_PANEL],
                       float var[KILN_PANEL])
{
    const double n = (double)norm->groups.rows;
    KilnNormColumns near;

    near_mean(norm, g, &near);
    for (int64_t c = 0; c < kiln_group_channels(&norm->groups, g); c++) {
        const double d = total(norm, g, 0, c) / n, square = total(norm, g, 1, c) / n - d * d;

        mean[c] = (float)((double)near.mean[c] + d);
        var[c] = (float)(square < 0.0 ? 0.0 : square);
    }
}

static void apply_span(const BatchNorm *norm, const Span *span, int more,
                       const KilnNormColumns *columns)
{
    for (int64_t image = span->begin; image < span->end; image++) {
        const KilnPanels panels = kiln_panels(&norm->groups, span->group, image, norm->relu);

        for (int i = 0; i < panels.n; i++)
            norm->loops->apply(&panels.panel[i], kiln_panel_output(norm->call, 0, panels.at[i]),
                               kiln_panel_input(norm->call, 0, panels.at[i]),
                               kiln_panel_input(norm->call, more, panels.at[i]), columns);
    }
}

static void forward_apply(const BatchNorm *norm, const Span *span)
{
    const size_t bytes = (size_t)kiln_group_channels(&norm->groups, span->group) * sizeof(float);
    float mean[KILN_PANEL], var[KILN_PANEL];
    KilnNormColumns columns;

    statistics(norm, span->group, mean, var);
    forward_columns(norm, span->group, mean, var, &columns);
    if (span->begin == 0) {
        memcpy(channels(&norm->call->outputs[1], norm, span->group), mean, bytes);
        memcpy(channels(&norm->call->outputs[2], norm, span->group), var, bytes);
    }
    apply_span(norm, span, 3, &columns);
}

static KilnStatus batch_norm_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    kiln_panel_layouts(call, 0, (const int[]) { 0, 3 }, 2, (const int[]) { 0 }, 1);
    room_for_sums(call, &call->inputs[0]);
    return KILN_OK;
}

static void batch_norm_run(KilnCall *call)
{
    static const KilnPanelArg args[] = {
        { KILN_NORM_X, 0, false }, { KILN_NORM_MORE, 3, false }, { KILN_NORM_Y, 0, true }, { 0 }
    };
    BatchNorm norm = norm_of(call, &call->inputs[0], args);

    run_passes(&norm, &(Passes) { forward_sums, forward_apply });
}

/* ---- Evaluation -------------------------------------------------------------------------- */

static KilnStatus batch_norm_eval_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    kiln_panel_layouts(call, 0, (const int[]) { 0, 5 }, 2, (const int[]) { 0 }, 1);
    return KILN_OK;
}

static void eval_apply(const BatchNorm *norm, const Span *span)
{
    KilnNormColumns columns;

    forward_columns(norm, span->group, channels(&norm->call->inputs[3], norm, span->group),
                    channels(&norm->call->inputs[4], norm, span->group), &columns);
    apply_span(norm, span, 5, &columns);
}

static void batch_norm_eval_run(KilnCall *call)
{
    static const KilnPanelArg args[] = {
        { KILN_NORM_X, 0, false }, { KILN_NORM_MORE, 5, false }, { KILN_NORM_Y, 0, true }, { 0 }
    };
    BatchNorm norm = norm_of(call, &call->inputs[0], args);

    run_passes(&norm, &(Passes) { NULL, eval_apply });
}

/* ---- Backward ---------------------------------------------------------------------------- */

/* The inputs of batch_norm_grad, and its outputs. */
enum { DY, X, WEIGHT, MEAN, VAR, BIAS, Y, MORE_DY };
enum { DX, DWEIGHT, DBIAS, MASKED };

static KilnNormGrad grad_at(const BatchNorm *norm, int64_t at)
{
    return (KilnNormGrad) {
        .dy = kiln_panel_input(norm->call, DY, at),
        .more_dy = kiln_panel_input(norm->call, MORE_DY, at),
        .x = kiln_panel_input(norm->call, X, at),
        .y = kiln_panel_input(norm->call, Y, at),
        .masked = kiln_panel_output(norm->call, MASKED, at),
    };
}

/* Columns for the relu's mask; the bias only if the mask comes from x. */
static void grad_columns(const BatchNorm *norm, int64_t g, KilnNormColumns *columns)
{
    const KilnBatchNormAttrs *attrs = norm->call->attrs;
    const KilnArg *in = norm->call->inputs;
    const float *weight = channels(&in[WEIGHT], norm, g), *mean = channels(&in[MEAN], norm, g);
    const float *var = channels(&in[VAR], norm, g);
    const float *bias = in[BIAS].absent ? NULL : channels(&in[BIAS], norm, g);

    memset(columns, 0, sizeof(*columns));
    for (int64_t c = 0; c < kiln_group_channels(&norm->groups, g); c++) {
        columns->mean[c] = mean[c];
        columns->scale[c] = (float)((double)weight[c] / sqrt((double)var[c] + attrs->eps));
        columns->bias[c] = bias != NULL ? bias[c] : 0.0f;
    }
}

static void backward_sums(const BatchNorm *norm, const Span *span, double *sums)
{
    KilnNormColumns columns;

    grad_columns(norm, span->group, &columns);
    kiln_columns_repeat(&norm->groups, &columns);
    for (int64_t image = span->begin; image < span->end; image++) {
        const KilnPanels panels = kiln_panels(&norm->groups, span->group, image, norm->relu);

        for (int i = 0; i < panels.n; i++) {
            const KilnNormGrad grad = grad_at(norm, panels.at[i]);

            norm->loops->grad_sums(&panels.panel[i], &grad, &columns, sums, sums + KILN_PANEL);
        }
    }
}

/* With h = (x - mean) / sqrt(var + eps):
 * dx = weight / sqrt(var + eps) * (dy - mean(dy) - h * mean(dy * h)). */
static void grad_slopes(const BatchNorm *norm, int64_t g, bool keep, KilnNormColumns *columns)
{
    const KilnBatchNormAttrs *attrs = norm->call->attrs;
    const double n = (double)norm->groups.rows;
    const float *var = channels(&norm->call->inputs[VAR], norm, g);

    for (int64_t c = 0; c < kiln_group_channels(&norm->groups, g); c++) {
        const double sum = total(norm, g, 0, c), dot = total(norm, g, 1, c);
        const double square = 1.0 / ((double)var[c] + attrs->eps);

        columns->mean_dy[c] = (float)(sum / n * (double)columns->scale[c]);
        columns->slope[c] = (float)(dot / n * square * (double)columns->scale[c]);
        if (keep) {
            channels(&norm->call->outputs[DWEIGHT], norm, g)[c] = (float)(dot * sqrt(square));
            channels(&norm->call->outputs[DBIAS], norm, g)[c] = (float)sum;
        }
    }
}

/* Once the masked gradient is stored, it is read instead. */
static void apply_grad(const BatchNorm *norm, const KilnPanels *panels, int i,
                       const KilnNormColumns *columns)
{
    KilnNormGrad grad = grad_at(norm, panels->at[i]);
    KilnPanel panel = panels->panel[i];

    if (grad.masked != NULL) {
        grad = (KilnNormGrad) { .dy = grad.masked, .x = grad.x };
        panel.relu = false;
        panel.bf16 &= ~(unsigned)KILN_NORM_DY;
        panel.bf16 |= (panel.bf16 & KILN_NORM_MASKED) != 0 ? KILN_NORM_DY : 0u;
    }
    norm->loops->grad_apply(&panel, kiln_panel_output(norm->call, DX, panels->at[i]), &grad,
                            columns);
}

static void backward_apply(const BatchNorm *norm, const Span *span)
{
    KilnNormColumns columns;

    grad_columns(norm, span->group, &columns);
    grad_slopes(norm, span->group, span->begin == 0, &columns);
    kiln_columns_repeat(&norm->groups, &columns);
    for (int64_t image = span->begin; image < span->end; image++) {
        const KilnPanels panels = kiln_panels(&norm->groups, span->group, image, norm->relu);

        for (int i = 0; i < panels.n; i++)
            apply_grad(norm, &panels, i, &columns);
    }
}

static KilnStatus batch_norm_grad_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    kiln_panel_layouts(call, X, (const int[]) { DY, X, Y, MORE_DY }, 4,
                       (const int[]) { DX, MASKED }, 2);
    room_for_sums(call, &call->inputs[X]);
    return KILN_OK;
}

static void batch_norm_grad_run(KilnCall *call)
{
    static const KilnPanelArg args[] = {
        { KILN_NORM_DY, DY, false },
        { KILN_NORM_X, X, false },
        { KILN_NORM_Y, Y, false },
        { KILN_NORM_MORE_DY, MORE_DY, false },
        { KILN_NORM_DX, DX, true },
        { KILN_NORM_MASKED, MASKED, true },
        { 0 },
    };
    BatchNorm norm = norm_of(call, &call->inputs[X], args);

    run_passes(&norm, &(Passes) { backward_sums, backward_apply });
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_batch_norm,
      .prepare = batch_norm_prepare,
      .run = batch_norm_run,
      .bf16_inputs = 1u << 0 | 1u << 3,
      .bf16_outputs = 1u << 0 },
    { .op = &kiln_op_batch_norm_grad,
      .prepare = batch_norm_grad_prepare,
      .run = batch_norm_grad_run,
      .in_place = 1,
      .bf16_inputs = 1u << DY | 1u << X | 1u << Y | 1u << MORE_DY,
      .bf16_outputs = 1u << DX | 1u << MASKED },
    { .op = &kiln_op_batch_norm_eval,
      .prepare = batch_norm_eval_prepare,
      .run = batch_norm_eval_run,
      .in_place = 1,
      .bf16_inputs = 1u << 0 | 1u << 5,
      .bf16_outputs = 1u << 0 },
};

const KilnCpuTable kiln_cpu_normalization = { kernels, KILN_COUNT(kernels) };
