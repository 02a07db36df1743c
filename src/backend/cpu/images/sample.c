/* Reads images between their pixels. Threads split the samples; gradients of the image add to
 * pixels that many samples share, so there threads split images and blocks of channels. */
#include "backend/cpu/cpu.h"

#include <string.h>

enum { BLOCK = 16 };

/* An image, or its gradient, [N, H, W, C]; of a loop over channels, `from` to `to`. */
typedef struct Channels {
    float *data;
    int64_t pixels, channels, from, to;
} Channels;

/* y[c] += weights · the pixels of the corners. */
static void read_corners(const Channels *x, int64_t image, const KilnCorners *corners, float *y,
                         float factor)
{
    for (int i = 0; i < 4; i++) {
        const float weight = (float)corners->weight[i] * factor;
        const float *from = x->data + (image * x->pixels + corners->pixel[i]) * x->channels;

        if (corners->pixel[i] < 0)
            continue;
#pragma omp simd
        for (int64_t c = x->from; c < x->to; c++)
            y[c] += weight * from[c];
    }
}

static void add_corners(const Channels *dx, int64_t image, const KilnCorners *corners,
                        const float *dy, float factor)
{
    for (int i = 0; i < 4; i++) {
        const float weight = (float)corners->weight[i] * factor;
        float *to = dx->data + (image * dx->pixels + corners->pixel[i]) * dx->channels;

        if (corners->pixel[i] < 0)
            continue;
#pragma omp simd
        for (int64_t c = dx->from; c < dx->to; c++)
            to[c] += weight * dy[c];
    }
}

static Channels channels_of(const KilnArg *x)
{
    const int64_t *dim = x->shape.dim;

    return (
        Channels) { .data = x->data, .pixels = dim[1] * dim[2], .channels = dim[3], .to = dim[3] };
}

static int64_t blocks_of(int64_t channels)
{
    return (channels + BLOCK - 1) / BLOCK;
}

/* The channels of a block, cleared in one image. */
static Channels cleared_block(const KilnArg *dx, int64_t image, int64_t block)
{
    Channels channels = channels_of(dx);

    channels.from = block * BLOCK;
    if (channels.from + BLOCK < channels.channels)
        channels.to = channels.from + BLOCK;
    for (int64_t pixel = 0; pixel < channels.pixels; pixel++)
        memset(channels.data + (image * channels.pixels + pixel) * channels.channels +
                   channels.from,
               0, (size_t)(channels.to - channels.from) * sizeof(float));
    return channels;
}

/* ---- grid_sample ------------------------------------------------------------------------ */

static KilnCorners grid_corners(const KilnCall *call, const KilnArg *x, const float *point,
                                double slope[2])
{
    const int64_t *dim = x->shape.dim;
    const double column = kiln_grid_position(call->attrs, (double)point[0], dim[2], &slope[0]);
    const double row = kiln_grid_position(call->attrs, (double)point[1], dim[1], &slope[1]);

    return kiln_grid_corners(call->attrs, column, row, dim[1], dim[2]);
}

static void grid_sample_part(void *context, int64_t begin, int64_t end)
{
    const KilnCall *call = context;
    const KilnArg *x = &call->inputs[0];
    const Channels channels = channels_of(x);
    const int64_t points = kiln_cpu_rows(&call->outputs[0]) / x->shape.dim[0];
    const float *grid = call->inputs[1].data;
    double slope[2];

    for (int64_t point = begin; point < end; point++) {
        const KilnCorners corners = grid_corners(call, x, grid + 2 * point, slope);
        float *y = (float *)call->outputs[0].data + point * channels.channels;

        memset(y, 0, (size_t)channels.channels * sizeof(*y));
        read_corners(&channels, point / points, &corners, y, 1.0f);
    }
}

static void grid_sample_run(KilnCall *call)
{
    const KilnArg *y = &call->outputs[0];

    kiln_parallel(call->backend->threads, kiln_cpu_rows(y), 4096 / (kiln_cpu_columns(y) + 16) + 1,
                  1, grid_sample_part, call);
}

/* Items: blocks of channels of each image. */
static void grid_dx_part(void *context, int64_t begin, int64_t end)
{
    const KilnCall *call = context;
    const KilnArg *dy = &call->inputs[0], *x = &call->inputs[1];
    const int64_t blocks = blocks_of(x->shape.dim[3]);
    const int64_t points = kiln_cpu_rows(dy) / x->shape.dim[0];
    double slope[2];

    for (int64_t item = begin; item < end; item++) {
        const int64_t image = item / blocks;
        const Channels dx = cleared_block(&call->outputs[0], image, item % blocks);

        for (int64_t point = image * points; point < (image + 1) * points; point++) {
            const KilnCorners corners =
                grid_corners(call, x, (const float *)call->inputs[2].data + 2 * point, slope);

            add_corners(&dx, image, &corners, (const float *)dy->data + point * dx.channels, 1.0f);
        }
    }
}

static double dot(const float *a, const float *b, int64_t n)
{
    double sum = 0.0;

    for (int64_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

static void grid_dgrid_part(void *context, int64_t begin, int64_t end)
{
    const KilnCall *call = context;
    const KilnArg *dy = &call->inputs[0], *x = &call->inputs[1];
    const Channels channels = channels_of(x);
    const int64_t points = kiln_cpu_rows(dy) / x->shape.dim[0];
    float *dgrid = call->outputs[1].data;

    for (int64_t point = begin; point < end; point++) {
        double slope[2], by_column = 0.0, by_row = 0.0;
        const KilnCorners corners =
            grid_corners(call, x, (const float *)call->inputs[2].data + 2 * point, slope);

        for (int i = 0; i < 4; i++) {
            const int64_t pixel = point / points * channels.pixels + corners.pixel[i];

            if (corners.pixel[i] < 0)
                continue;
            const double share = dot((const float *)dy->data + point * channels.channels,
                                     channels.data + pixel * channels.channels, channels.channels);

            by_column += corners.dx[i] * share;
            by_row += corners.dy[i] * share;
        }
        dgrid[2 * point] = (float)(by_column * slope[0]);
        dgrid[2 * point + 1] = (float)(by_row * slope[1]);
    }
}

static void grid_sample_grad_run(KilnCall *call)
{
    const KilnArg *dy = &call->inputs[0], *x = &call->inputs[1];
    const int64_t *dim = x->shape.dim;
    const int threads = call->backend->threads;

    kiln_parallel(threads, dim[0] * blocks_of(dim[3]),
                  4096 / (kiln_cpu_rows(dy) / dim[0] + dim[1] * dim[2]) + 1, 1, grid_dx_part, call);
    kiln_parallel(threads, kiln_cpu_rows(dy), 2048 / (dim[3] + 16) + 1, 1, grid_dgrid_part, call);
}

/* ---- roi_align ---------------------------------------------------------------------------- */

static KilnRoi roi_at(const KilnCall *call, int64_t k)
{
    const float *from = (const float *)call->inputs[1].data + 5 * k;
    double box[5];

    for (int i = 0; i < 5; i++)
        box[i] = (double)from[i];
    return kiln_roi_of(call->attrs, box);
}

/* Bins [begin, end) of all boxes. */
static void roi_align_part(void *context, int64_t begin, int64_t end)
{
    const KilnCall *call = context;
    const KilnRoiAttrs *attrs = call->attrs;
    const Channels channels = channels_of(&call->inputs[0]);
    const int64_t columns = attrs->size[1], bins = attrs->size[0] * columns;

    for (int64_t place = begin; place < end; place++) {
        const KilnRoi roi = roi_at(call, place / bins);
        const int64_t samples = roi.image >= 0 ? roi.rows * roi.columns : 0;
        float *y = (float *)call->outputs[0].data + place * channels.channels;

        memset(y, 0, (size_t)channels.channels * sizeof(*y));
        for (int64_t i = 0; i < samples; i++) {
            const KilnCorners corners = kiln_roi_corners(attrs, &roi, place % bins / columns,
                                                         place % columns, i / roi.columns,
                                                         i % roi.columns);

            read_corners(&channels, roi.image, &corners, y, (float)(1.0 / (double)samples));
        }
    }
}

static void roi_align_run(KilnCall *call)
{
    const KilnArg *y = &call->outputs[0];

    kiln_parallel(call->backend->threads, kiln_cpu_rows(y), 1024 / (kiln_cpu_columns(y) + 16) + 1,
                  1, roi_align_part, call);
}

/* Items: blocks of channels of each image. */
static void roi_dx_part(void *context, int64_t begin, int64_t end)
{
    const KilnCall *call = context;
    const KilnRoiAttrs *attrs = call->attrs;
    const KilnArg *dy = &call->inputs[0];
    const int64_t blocks = blocks_of(kiln_cpu_columns(dy)), columns = attrs->size[1];
    const int64_t bins = attrs->size[0] * columns;

    for (int64_t item = begin; item < end; item++) {
        const Channels dx = cleared_block(&call->outputs[0], item / blocks, item % blocks);

        for (int64_t place = 0; place < kiln_cpu_rows(dy); place++) {
            const KilnRoi roi = roi_at(call, place / bins);
            const int64_t samples = roi.image == item / blocks ? roi.rows * roi.columns : 0;

            for (int64_t i = 0; i < samples; i++) {
                const KilnCorners corners = kiln_roi_corners(attrs, &roi, place % bins / columns,
                                                             place % columns, i / roi.columns,
                                                             i % roi.columns);

                add_corners(&dx, roi.image, &corners, (const float *)dy->data + place * dx.channels,
                            (float)(1.0 / (double)samples));
            }
        }
    }
}

static void roi_align_grad_run(KilnCall *call)
{
    const KilnArg *dx = &call->outputs[0];

    kiln_parallel(call->backend->threads, dx->shape.dim[0] * blocks_of(dx->shape.dim[3]), 1, 1,
                  roi_dx_part, call);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_grid_sample, .run = grid_sample_run },
    { .op = &kiln_op_grid_sample_grad, .run = grid_sample_grad_run },
    { .op = &kiln_op_roi_align, .run = roi_align_run },
    { .op = &kiln_op_roi_align_grad, .run = roi_align_grad_run },
};

const KilnCpuTable kiln_cpu_sample = { kernels, KILN_COUNT(kernels) };
