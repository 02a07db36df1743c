/* Reads images between their pixels. Threads split the samples; gradients of the image add to
 * pixels that many samples share, so there threads split images, blocks of channels, and bands of
 * rows. Each pixel is the sum over samples in their order, however it is split. */
#include "backend/cpu/cpu.h"

#include <math.h>
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

static Channels channels_of(const KilnArg *x)
{
    const int64_t *dim = x->shape.dim;

    return (
        Channels) { .data = x->data, .pixels = dim[1] * dim[2], .channels = dim[3], .to = dim[3] };
}

/* ---- Gradients of the image --------------------------------------------------------------- */

/* How a gradient is split: items are bands of blocks of images. */
typedef struct Split {
    KilnCall *call;
    const KilnArg *dx;
    int64_t blocks, bands, band_rows;
} Split;

static Split split_of(KilnCall *call)
{
    const KilnArg *dx = &call->outputs[0];
    const int64_t *dim = dx->shape.dim;
    Split split = { .call = call, .dx = dx, .blocks = (dim[3] + BLOCK - 1) / BLOCK };
    const int64_t items = dim[0] * split.blocks;
    const int64_t bands = (call->backend->threads + items - 1) / items;

    split.band_rows = bands < dim[1] ? (dim[1] + bands - 1) / bands : 1;
    split.bands = (dim[1] + split.band_rows - 1) / split.band_rows;
    return split;
}

static int64_t items_of(const Split *split)
{
    return split->dx->shape.dim[0] * split->blocks * split->bands;
}

/* One item: these channels of these pixels of an image. */
typedef struct Band {
    float *data; /* of the image */
    int64_t image, channels, from, to;
    int64_t row, row_end, pixel, pixel_end;
} Band;

static Band cleared_band(const Split *split, int64_t item)
{
    const int64_t *dim = split->dx->shape.dim;
    const int64_t block = item / split->bands % split->blocks;
    Band band = { .image = item / split->bands / split->blocks,
                  .channels = dim[3],
                  .from = block * BLOCK,
                  .to = (block + 1) * BLOCK < dim[3] ? (block + 1) * BLOCK : dim[3],
                  .row = item % split->bands * split->band_rows };

    band.row_end = band.row + split->band_rows < dim[1] ? band.row + split->band_rows : dim[1];
    band.pixel = band.row * dim[2];
    band.pixel_end = band.row_end * dim[2];
    band.data = (float *)split->dx->data + band.image * dim[1] * dim[2] * dim[3];
    for (int64_t pixel = band.pixel; pixel < band.pixel_end; pixel++)
        memset(band.data + pixel * band.channels + band.from, 0,
               (size_t)(band.to - band.from) * sizeof(float));
    return band;
}

/* Adds to a pixel, if it is in the band: -1 is in none. */
static void add_pixel(const Band *band, int64_t pixel, float weight, const float *dy)
{
    if (pixel < band->pixel || pixel >= band->pixel_end)
        return;

    float *to = band->data + pixel * band->channels;

#pragma omp simd
    for (int64_t c = band->from; c < band->to; c++)
        to[c] += weight * dy[c];
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

/* The corners of one point: found once, read by each block and band. */
typedef struct GridPoint {
    int32_t pixel[4];
    float weight[4];
} GridPoint;

static void grid_points_part(void *context, int64_t begin, int64_t end)
{
    const KilnCall *call = context;
    GridPoint *points = call->workspace;
    double slope[2];

    for (int64_t point = begin; point < end; point++) {
        const KilnCorners corners = grid_corners(
            call, &call->inputs[1], (const float *)call->inputs[2].data + 2 * point, slope);

        for (int i = 0; i < 4; i++) {
            points[point].pixel[i] = (int32_t)corners.pixel[i];
            points[point].weight[i] = (float)corners.weight[i];
        }
    }
}

static void grid_dx_part(void *context, int64_t begin, int64_t end)
{
    const Split *split = context;
    const KilnArg *dy = &split->call->inputs[0];
    const int64_t n = kiln_cpu_rows(dy) / split->dx->shape.dim[0];
    const GridPoint *points = split->call->workspace;

    for (int64_t item = begin; item < end; item++) {
        const Band band = cleared_band(split, item);

        for (int64_t point = band.image * n; point < (band.image + 1) * n; point++)
            for (int i = 0; i < 4; i++)
                add_pixel(&band, points[point].pixel[i], points[point].weight[i],
                          (const float *)dy->data + point * band.channels);
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

static KilnStatus grid_sample_grad_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    for (int i = 0; i < call->n_inputs; i++)
        call->inputs[i].layout = KILN_PLAIN;
    call->workspace_size = (size_t)kiln_cpu_rows(&call->inputs[0]) * sizeof(GridPoint);
    return KILN_OK;
}

static void grid_sample_grad_run(KilnCall *call)
{
    const int64_t points = kiln_cpu_rows(&call->inputs[0]);
    const int64_t *dim = call->inputs[1].shape.dim;
    const int threads = call->backend->threads;
    Split split = split_of(call);

    kiln_parallel(threads, points, 256, 1, grid_points_part, call);
    kiln_parallel(threads, items_of(&split), 4096 / (points / dim[0] + dim[1] * dim[2]) + 1, 1,
                  grid_dx_part, &split);
    kiln_parallel(threads, points, 2048 / (dim[3] + 16) + 1, 1, grid_dgrid_part, call);
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

/* Whether no sample of bin row y of the box is beside a row of the band. Positions beyond the image
 * by less than a pixel count as its edge. */
static bool misses(const KilnRoi *roi, int64_t y, const Band *band)
{
    const double top = roi->top + (double)y * roi->bin_height, bottom = top + roi->bin_height;

    return fmax(top, bottom) + 1.0 < (double)band->row ||
           fmin(top, bottom) - 1.0 > (double)(band->row_end - 1);
}

/* Adds the samples of one bin. */
static void add_bin(const KilnRoiAttrs *attrs, const KilnRoi *roi, int64_t y, int64_t x,
                    const Band *band, const float *dy)
{
    const int64_t samples = roi->rows * roi->columns;
    const float share = (float)(1.0 / (double)samples);

    for (int64_t i = 0; i < samples; i++) {
        const KilnCorners corners = kiln_roi_corners(attrs, roi, y, x, i / roi->columns,
                                                     i % roi->columns);

        for (int corner = 0; corner < 4; corner++)
            add_pixel(band, corners.pixel[corner], (float)corners.weight[corner] * share, dy);
    }
}

static void roi_dx_part(void *context, int64_t begin, int64_t end)
{
    const Split *split = context;
    const KilnRoiAttrs *attrs = split->call->attrs;
    const KilnArg *dy = &split->call->inputs[0];
    const int64_t columns = attrs->size[1], bins = attrs->size[0] * columns;

    for (int64_t item = begin; item < end; item++) {
        const Band band = cleared_band(split, item);

        for (int64_t box = 0; box < kiln_cpu_rows(dy) / bins; box++) {
            const KilnRoi roi = roi_at(split->call, box);

            for (int64_t bin = 0; bin < bins && roi.image == band.image; bin++)
                if (!misses(&roi, bin / columns, &band))
                    add_bin(attrs, &roi, bin / columns, bin % columns, &band,
                            (const float *)dy->data + (box * bins + bin) * band.channels);
        }
    }
}

static void roi_align_grad_run(KilnCall *call)
{
    Split split = split_of(call);

    kiln_parallel(call->backend->threads, items_of(&split), 1, 1, roi_dx_part, &split);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_grid_sample, .run = grid_sample_run },
    { .op = &kiln_op_grid_sample_grad,
      .prepare = grid_sample_grad_prepare,
      .run = grid_sample_grad_run },
    { .op = &kiln_op_roi_align, .run = roi_align_run },
    { .op = &kiln_op_roi_align_grad, .run = roi_align_grad_run },
};

const KilnCpuTable kiln_cpu_sample = { kernels, KILN_COUNT(kernels) };
