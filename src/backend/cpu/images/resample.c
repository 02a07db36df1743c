/* Resizes images. Threads split the rows of the output; the gradient gathers its contributions, so
 * it splits its output too. */
#include "backend/cpu/cpu.h"

#include <string.h>

/* The sources of each output row and column, computed before each run, which takes far longer. An
 * image in whole blocks of channels stays so: its blocks are images of few channels. */
static KilnStatus upsample_prepare(KilnCall *call, KilnError *err)
{
    const KilnUpsampleAttrs *attrs = call->attrs;
    KilnDnnl *dnnl = &kiln_cpu(call)->dnnl;
    KilnArg *x = &call->inputs[0], *y = &call->outputs[0];
    const int64_t block = y->fixed ? 0 : kiln_layout_whole_block(dnnl, x);
    KilnStatus status = kiln_layout_set_block(dnnl, x, block, err);

    if (status == KILN_OK)
        status = kiln_layout_set_block(dnnl, y, block, err);
    kiln_output_layout(dnnl, y, y->layout);
    call->workspace_size = (size_t)(attrs->out[0] + attrs->out[1]) * sizeof(KilnSamplePoint);
    return status;
}

/* Channels that are adjacent in memory. */
static int64_t channels_of(const KilnCall *call)
{
    const KilnArg *y = &call->outputs[0];
    const int64_t block = kiln_layout_block(&kiln_cpu(call)->dnnl, y->layout, &y->shape);

    return block > 0 ? block : y->shape.dim[3];
}

static void find_points(const KilnCall *call)
{
    const KilnUpsampleAttrs *attrs = call->attrs;
    KilnSamplePoint *points = call->workspace;

    for (int axis = 0; axis < 2; axis++)
        for (int64_t i = 0; i < attrs->out[axis]; i++)
            *points++ = kiln_sample_point(attrs->mode, attrs->in[axis], attrs->out[axis], i);
}

/* ---- upsample ---------------------------------------------------------------------- */

static void nearest_row(const KilnCall *call, float *y, const float *row, int64_t channels)
{
    const KilnUpsampleAttrs *attrs = call->attrs;
    const KilnSamplePoint *columns = (const KilnSamplePoint *)call->workspace + attrs->out[0];

    for (int64_t x = 0; x < attrs->out[1]; x++)
        memcpy(y + x * channels, row + columns[x].low * channels, (size_t)channels * sizeof(*y));
}

static void bilinear_row(const KilnCall *call, float *y, const float *low, const float *high,
                         float wy, int64_t channels)
{
    const KilnUpsampleAttrs *attrs = call->attrs;
    const KilnSamplePoint *columns = (const KilnSamplePoint *)call->workspace + attrs->out[0];

    for (int64_t x = 0; x < attrs->out[1]; x++) {
        const int64_t a = columns[x].low * channels, b = columns[x].high * channels;
        const float wx = (float)columns[x].weight;
        const float w00 = (1.0f - wy) * (1.0f - wx), w01 = (1.0f - wy) * wx;
        const float w10 = wy * (1.0f - wx), w11 = wy * wx;

#pragma omp simd
        for (int64_t c = 0; c < channels; c++)
            y[x * channels + c] = w00 * low[a + c] + w01 * low[b + c] + w10 * high[a + c] +
                                  w11 * high[b + c];
    }
}

static void upsample_part(void *context, int64_t begin, int64_t end)
{
    const KilnCall *call = context;
    const KilnUpsampleAttrs *attrs = call->attrs;
    const KilnSamplePoint *rows = call->workspace;
    const int64_t channels = channels_of(call), width = attrs->in[1] * channels;

    for (int64_t i = begin; i < end; i++) {
        const KilnSamplePoint point = rows[i % attrs->out[0]];
        const float *image = (const float *)call->inputs[0].data +
                             i / attrs->out[0] * attrs->in[0] * width;
        float *y = (float *)call->outputs[0].data + i * attrs->out[1] * channels;

        if (attrs->mode == KILN_UPSAMPLE_NEAREST)
            nearest_row(call, y, image + point.low * width, channels);
        else
            bilinear_row(call, y, image + point.low * width, image + point.high * width,
                         (float)point.weight, channels);
    }
}

/* Splits the rows of the output between the threads. */
static void run_rows(KilnCall *call, KilnRange range)
{
    const int64_t *dim = call->outputs[0].shape.dim, channels = channels_of(call);

    find_points(call);
    kiln_parallel(call->backend->threads, dim[0] * (dim[3] / channels) * dim[1],
                  16384 / (dim[2] * channels + 1) + 1, 1, range, call);
}

static void upsample_run(KilnCall *call)
{
    run_rows(call, upsample_part);
}

/* ---- upsample_grad ------------------------------------------------------------------ */

static void add_row(const KilnCall *call, float *dx, const float *dy, float wy, int64_t channels)
{
    const KilnUpsampleAttrs *attrs = call->attrs;
    const KilnSamplePoint *columns = (const KilnSamplePoint *)call->workspace + attrs->out[0];

    for (int64_t x = 0; x < attrs->out[1]; x++) {
        const float *from = dy + x * channels;
        float *low = dx + columns[x].low * channels, *high = dx + columns[x].high * channels;
        const float w = wy * (float)columns[x].weight, w0 = wy - w;

#pragma omp simd
        for (int64_t c = 0; c < channels; c++)
            low[c] += w0 * from[c];
        if (w == 0.0f)
            continue;
#pragma omp simd
        for (int64_t c = 0; c < channels; c++)
            high[c] += w * from[c];
    }
}

static void upsample_grad_part(void *context, int64_t begin, int64_t end)
{
    const KilnCall *call = context;
    const KilnUpsampleAttrs *attrs = call->attrs;
    const KilnSamplePoint *rows = call->workspace;
    const int64_t channels = channels_of(call), width = attrs->out[1] * channels;

    for (int64_t i = begin; i < end; i++) {
        const int64_t row = i % attrs->in[0];
        const float *image = (const float *)call->inputs[0].data +
                             i / attrs->in[0] * attrs->out[0] * width;
        float *dx = (float *)call->outputs[0].data + i * attrs->in[1] * channels;

        memset(dx, 0, (size_t)(attrs->in[1] * channels) * sizeof(*dx));
        for (int64_t o = 0; o < attrs->out[0]; o++) {
            float w = rows[o].low == row ? 1.0f - (float)rows[o].weight : 0.0f;

            w += rows[o].high == row ? (float)rows[o].weight : 0.0f;
            if (w != 0.0f)
                add_row(call, dx, image + o * width, w, channels);
        }
    }
}

static void upsample_grad_run(KilnCall *call)
{
    run_rows(call, upsample_grad_part);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_upsample, .prepare = upsample_prepare, .run = upsample_run },
    { .op = &kiln_op_upsample_grad, .prepare = upsample_prepare, .run = upsample_grad_run },
};

const KilnCpuTable kiln_cpu_resample = { kernels, KILN_COUNT(kernels) };
