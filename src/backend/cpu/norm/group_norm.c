/* Group norm on the vector loops of batch normalization: sums a sample's channels, combines the
 * sums of a group's channels, and gives every channel its scale. */
#include <math.h>
#include <string.h>

#include "backend/cpu/norm/panels.h"
#include "base/min.h"

enum { MOST_PARTS = 32 }; /* of the samples, whose sums are combined in order */

typedef struct GroupNorm {
    const KilnCall *call;
    const KilnBatchNormLoops *loops;
    KilnGroups groups; /* blocks of channels in memory */
    KilnSets sets;     /* units with their own statistics */
    int64_t parts;     /* of the samples; a function of the shape alone */
    double n;          /* elements of a set */
} GroupNorm;

static GroupNorm group_norm_of(const KilnCall *call, const KilnArg *x)
{
    const KilnSets sets = kiln_sets(call->attrs, &x->shape);
    GroupNorm norm = {
        .call = call,
        .loops = kiln_cpu(call)->loops->batch_norm,
        .groups = kiln_groups(call, x, sets.pixels),
        .sets = sets,
        .n = (double)sets.pixels * (double)sets.run,
    };

    norm.parts = kiln_min_i64(x->shape.dim[0], MOST_PARTS);
    return norm;
}

/* Each part has two doubles per channel of the current sample, and two that accumulate the
 * gradients of weight and bias. */
static double *part_sums(const GroupNorm *norm, int64_t part)
{
    return (double *)norm->call->workspace + part * 4 * norm->groups.channels;
}

static void room_for_sums(KilnCall *call, const KilnArg *x)
{
    const GroupNorm norm = group_norm_of(call, x);

    call->workspace_size = (size_t)(norm.parts * 4 * norm.groups.channels) * sizeof(double);
}

/* Element i of [C], or the default if the input is absent. */
static float channel_of(const GroupNorm *norm, int input, int64_t i, float otherwise)
{
    const KilnArg *arg = &norm->call->inputs[input];

    return arg->absent ? otherwise : ((const float *)arg->data)[i];
}

static void share(GroupNorm *norm, KilnRange range)
{
    kiln_parallel(norm->call->backend->threads, norm->parts, 1, 1, range, norm);
}

/* The samples of a part. */
static int64_t first_sample(const GroupNorm *norm, int64_t part)
{
    return norm->sets.count / norm->sets.groups * part / norm->parts;
}

/* ---- Forward ---------------------------------------------------------------------- */

/* An element of every channel, to take differences from. */
static void near_mean(const GroupNorm *norm, int64_t g, int64_t sample, KilnNormColumns *columns)
{
    const KilnArg *x = &norm->call->inputs[0];
    const int64_t at = kiln_panels(&norm->groups, g, sample, false).at[0];

    memset(columns, 0, sizeof(*columns));
    for (int64_t c = 0; c < kiln_group_channels(&norm->groups, g); c++)
        columns->mean[c] = kiln_panel_element(x, at + c);
    kiln_columns_repeat(&norm->groups, columns);
}

/* For every channel of a sample, the sum and the sum of squares about that element. */
static void channel_moments(const GroupNorm *norm, int64_t sample, double *mean, double *square)
{
    const double pixels = (double)norm->sets.pixels;

    for (int64_t g = 0; g < norm->groups.count; g++) {
        const KilnPanels panels = kiln_panels(&norm->groups, g, sample, false);
        double sums[2][KILN_PANEL] = { { 0.0 } };
        KilnNormColumns columns;

        near_mean(norm, g, sample, &columns);
        for (int i = 0; i < panels.n; i++)
            norm->loops->sums(&panels.panel[i], kiln_panel_input(norm->call, 0, panels.at[i]),
                              &columns, sums[0], sums[1]);
        for (int64_t c = 0; c < kiln_group_channels(&norm->groups, g); c++) {
            const double d = kiln_panel_total(&norm->groups, sums[0], c) / pixels;
            const double q = kiln_panel_total(&norm->groups, sums[1], c);

            mean[g * norm->groups.size + c] = (double)columns.mean[c] + d;
            square[g * norm->groups.size + c] = q - d * d * pixels;
        }
    }
}

/* Statistics of a set from those of its channels (Chan et al. 1979). */
static void set_statistics(const GroupNorm *norm, int64_t set, const double *mean,
                           const double *square)
{
    const KilnSetNormAttrs *attrs = norm->call->attrs;
    const int64_t first = set % norm->sets.groups * norm->sets.run;
    double all = 0.0, about = 0.0;

    for (int64_t c = first; c < first + norm->sets.run; c++)
        all += mean[c] / (double)norm->sets.run;
    for (int64_t c = first; c < first + norm->sets.run; c++)
        about += square[c] + (mean[c] - all) * (mean[c] - all) * (double)norm->sets.pixels;

    const double var = about < 0.0 ? 0.0 : about / norm->n;

    ((float *)norm->call->outputs[1].data)[set] = (float)all;
    ((float *)norm->call->outputs[2].data)[set] = (float)(1.0 / sqrt(var + attrs->eps));
}

static void apply_sample(const GroupNorm *norm, int64_t sample)
{
    const float *mean = norm->call->outputs[1].data, *rstd = norm->call->outputs[2].data;

    for (int64_t g = 0; g < norm->groups.count; g++) {
        const KilnPanels panels = kiln_panels(&norm->groups, g, sample, false);
        KilnNormColumns columns = { .mean = { 0 } };

        for (int64_t c = 0; c < kiln_group_channels(&norm->groups, g); c++) {
            const int64_t channel = g * norm->groups.size + c;
            const int64_t set = sample * norm->sets.groups + channel / norm->sets.run;

            columns.mean[c] = mean[set];
            columns.scale[c] = channel_of(norm, 1, channel, 1.0f) * rstd[set];
            columns.bias[c] = channel_of(norm, 2, channel, 0.0f);
        }
        kiln_columns_repeat(&norm->groups, &columns);
        for (int i = 0; i < panels.n; i++)
            norm->loops->apply(&panels.panel[i], kiln_panel_output(norm->call, 0, panels.at[i]),
                               kiln_panel_input(norm->call, 0, panels.at[i]), NULL, &columns);
    }
}

static void forward_part(void *context, int64_t begin, int64_t end)
{
    const GroupNorm *norm = context;

    for (int64_t part = begin; part < end; part++) {
        double *mean = part_sums(norm, part), *square = mean + norm->groups.channels;

        for (int64_t n = first_sample(norm, part); n < first_sample(norm, part + 1); n++) {
            channel_moments(norm, n, mean, square);
            for (int64_t g = 0; g < norm->sets.groups; g++)
                set_statistics(norm, n * norm->sets.groups + g, mean, square);
            apply_sample(norm, n);
        }
    }
}

static KilnStatus group_norm_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    kiln_panel_layouts(call, 0, (const int[]) { 0 }, 1, (const int[]) { 0 }, 1);
    room_for_sums(call, &call->inputs[0]);
    return KILN_OK;
}

static void group_norm_run(KilnCall *call)
{
    static const KilnPanelArg args[] = { { KILN_NORM_X, 0, false },
                                         { KILN_NORM_Y, 0, true },
                                         { 0 } };
    GroupNorm norm = group_norm_of(call, &call->inputs[0]);

    norm.groups.bf16 = kiln_panel_to_bf16(call, args);
    share(&norm, forward_part);
}

/* ---- Backward --------------------------------------------------------------------- */

enum { DY, X, WEIGHT, MEAN, RSTD };

static KilnNormGrad grad_at(const GroupNorm *norm, int64_t at)
{
    return (KilnNormGrad) { .dy = kiln_panel_input(norm->call, DY, at),
                            .x = kiln_panel_input(norm->call, X, at) };
}

/* The mean of each channel's set. */
static void set_means(const GroupNorm *norm, int64_t g, int64_t sample, KilnNormColumns *columns)
{
    const float *mean = norm->call->inputs[MEAN].data;

    memset(columns, 0, sizeof(*columns));
    for (int64_t c = 0; c < kiln_group_channels(&norm->groups, g); c++)
        columns->mean[c] =
            mean[sample * norm->sets.groups + (g * norm->groups.size + c) / norm->sets.run];
}

/* The sums over a sample's channels of dy and of dy * (x - mean). */
static void channel_grads(const GroupNorm *norm, int64_t sample, double *sum, double *dot)
{
    for (int64_t g = 0; g < norm->groups.count; g++) {
        const KilnPanels panels = kiln_panels(&norm->groups, g, sample, false);
        double sums[2][KILN_PANEL] = { { 0.0 } };
        KilnNormColumns columns;

        set_means(norm, g, sample, &columns);
        kiln_columns_repeat(&norm->groups, &columns);
        for (int i = 0; i < panels.n; i++) {
            const KilnNormGrad grad = grad_at(norm, panels.at[i]);

            norm->loops->grad_sums(&panels.panel[i], &grad, &columns, sums[0], sums[1]);
        }
        for (int64_t c = 0; c < kiln_group_channels(&norm->groups, g); c++) {
            sum[g * norm->groups.size + c] = kiln_panel_total(&norm->groups, sums[0], c);
            dot[g * norm->groups.size + c] = kiln_panel_total(&norm->groups, sums[1], c);
        }
    }
}

/* With h = (x - mean) * rstd and g = dy * weight: dx = rstd * (g - mean(g) - h * mean(g * h)),
 * expressed as coefficients per channel. */
static void channel_numbers(const GroupNorm *norm, int64_t sample, int64_t channel,
                            const double *sum, const double *dot, KilnNormColumns *columns,
                            int64_t c)
{
    const int64_t set = sample * norm->sets.groups + channel / norm->sets.run;
    const int64_t first = channel / norm->sets.run * norm->sets.run;
    const double rstd = (double)((const float *)norm->call->inputs[RSTD].data)[set];
    double mean_g = 0.0, mean_gd = 0.0;

    for (int64_t k = first; k < first + norm->sets.run; k++) {
        const double weight = (double)channel_of(norm, WEIGHT, k, 1.0f);

        mean_g += weight * sum[k] / norm->n;
        mean_gd += weight * dot[k] / norm->n;
    }
    columns->scale[c] = (float)(rstd * (double)channel_of(norm, WEIGHT, channel, 1.0f));
    columns->mean_dy[c] = (float)(rstd * mean_g);
    columns->slope[c] = (float)(rstd * rstd * rstd * mean_gd);
}

static void apply_grads(const GroupNorm *norm, int64_t sample, const double *sum, const double *dot)
{
    for (int64_t g = 0; g < norm->groups.count; g++) {
        const KilnPanels panels = kiln_panels(&norm->groups, g, sample, false);
        KilnNormColumns columns;

        set_means(norm, g, sample, &columns);
        for (int64_t c = 0; c < kiln_group_channels(&norm->groups, g); c++)
            channel_numbers(norm, sample, g * norm->groups.size + c, sum, dot, &columns, c);
        kiln_columns_repeat(&norm->groups, &columns);
        for (int i = 0; i < panels.n; i++) {
            const KilnNormGrad grad = grad_at(norm, panels.at[i]);

            norm->loops->grad_apply(
                &panels.panel[i], kiln_panel_output(norm->call, 0, panels.at[i]), &grad, &columns);
        }
    }
}

static void backward_part(void *context, int64_t begin, int64_t end)
{
    const GroupNorm *norm = context;
    const int64_t channels = norm->groups.channels;
    const float *rstd = norm->call->inputs[RSTD].data;

    for (int64_t part = begin; part < end; part++) {
        double *sum = part_sums(norm, part), *dot = sum + channels;
        double *dweight = dot + channels, *dbias = dweight + channels;

        memset(dweight, 0, (size_t)channels * 2 * sizeof(*dweight));
        for (int64_t n = first_sample(norm, part); n < first_sample(norm, part + 1); n++) {
            channel_grads(norm, n, sum, dot);
            apply_grads(norm, n, sum, dot);
            for (int64_t c = 0; c < channels; c++) {
                dweight[c] += dot[c] * (double)rstd[n * norm->sets.groups + c / norm->sets.run];
                dbias[c] += sum[c];
            }
        }
    }
}

static KilnStatus group_norm_grad_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    kiln_panel_layouts(call, X, (const int[]) { DY, X }, 2, (const int[]) { 0 }, 1);
    room_for_sums(call, &call->inputs[X]);
    return KILN_OK;
}

static void group_norm_grad_run(KilnCall *call)
{
    static const KilnPanelArg args[] = {
        { KILN_NORM_DY, DY, false }, { KILN_NORM_X, X, false }, { KILN_NORM_DX, 0, true }, { 0 }
    };
    GroupNorm norm = group_norm_of(call, &call->inputs[X]);
    const int64_t channels = norm.groups.channels;

    norm.groups.bf16 = kiln_panel_to_bf16(call, args);
    share(&norm, backward_part);
    for (int i = 0; i < 2; i++)
        for (int64_t c = 0; c < channels; c++) {
            double sum = 0.0;

            for (int64_t part = 0; part < norm.parts; part++)
                sum += part_sums(&norm, part)[(2 + i) * channels + c];
            ((float *)call->outputs[1 + i].data)[c] = (float)sum;
        }
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_group_norm,
      .prepare = group_norm_prepare,
      .run = group_norm_run,
      .bf16_inputs = 1u << 0,
      .bf16_outputs = 1u << 0 },
    { .op = &kiln_op_group_norm_grad,
      .prepare = group_norm_grad_prepare,
      .run = group_norm_grad_run,
      .in_place = 1,
      .bf16_inputs = 1u << DY | 1u << X,
      .bf16_outputs = 1u << 0 },
};

const KilnCpuTable kiln_cpu_group_norm = { kernels, KILN_COUNT(kernels) };
