/* Resizing images: separable filters, which widen when shrinking so that every source pixel counts
 * (what Pillow and torchvision call antialias). */
#include "image/scale.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "image/floats4.h"

KilnRect kiln_scaling_rect(const KilnScaling *scaling, int64_t height, int64_t width)
{
    const int64_t top = (int64_t)scaling->top, left = (int64_t)scaling->left;
    const int64_t bottom = (int64_t)ceil(scaling->top + scaling->height);
    const int64_t right = (int64_t)ceil(scaling->left + scaling->width);

    return (KilnRect) { .top = top,
                        .left = left,
                        .height = (bottom < height ? bottom : height) - top,
                        .width = (right < width ? right : width) - left };
}

/* ---- The weights of an axis ------------------------------------------------------------- */

static void axis_release(KilnScaleAxis *axis)
{
    free(axis->first);
    free(axis->count);
    free(axis->weight);
    *axis = (KilnScaleAxis) { 0 };
}

/* From the centre to where the filter ends, in source pixels where nothing shrinks. */
static double reach(KilnImageFilter filter)
{
    return filter == KILN_FILTER_BICUBIC ? 2.0 : 1.0;
}

/* The triangle, and Keys' cubic with a = -0.5 as Pillow has it. */
static double filter_at(KilnImageFilter filter, double distance)
{
    const double x = fabs(distance), a = -0.5;

    if (filter == KILN_FILTER_BILINEAR)
        return x < 1.0 ? 1.0 - x : 0.0;
    if (x < 1.0)
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    return x < 2.0 ? (((x - 5.0) * x + 8.0) * x - 4.0) * a : 0.0;
}

/* The pixel that covers the centre, of `limit`. */
static void set_nearest(KilnScaleAxis *axis, int64_t i, double start, double scale, int64_t limit)
{
    const int64_t at = (int64_t)(start + (double)i * scale);

    axis->first[i] = at < limit ? at : limit - 1;
    axis->count[i] = 1;
    axis->weight[i * axis->taps] = 1.0f;
}

/* Around the centre of an output pixel; cut off at the border. */
static void set_weights(KilnScaleAxis *axis, KilnImageFilter filter, int64_t i, double centre,
                        double scale, int64_t limit)
{
    const double stretch = scale > 1.0 ? scale : 1.0, support = stretch * reach(filter);
    int64_t low = (int64_t)(centre - support + 0.5), high = (int64_t)(centre + support + 0.5);
    float *weight = axis->weight + i * axis->taps;
    double sum = 0.0;

    low = low < 0 ? 0 : low;
    high = high > limit ? limit : high;
    for (int64_t k = low; k < high; k++)
        sum += filter_at(filter, ((double)k + 0.5 - centre) / stretch);
    for (int64_t k = low; k < high; k++)
        weight[k - low] = (float)(filter_at(filter, ((double)k + 0.5 - centre) / stretch) / sum);
    axis->first[i] = low;
    axis->count[i] = high - low;
}

/* `limit` source pixels, of which those from start to start + length become `to` pixels. */
static KilnStatus axis_init(KilnScaleAxis *axis, KilnImageFilter filter, double start,
                            double length, int64_t limit, int64_t to, KilnError *err)
{
    const double scale = length / (double)to;
    const double support = (scale > 1.0 ? scale : 1.0) * reach(filter);
    const size_t n = (size_t)to;

    *axis = (KilnScaleAxis) { .taps = 2 * (int64_t)ceil(support) + 1 };
    axis->first = malloc(n * sizeof(*axis->first));
    axis->count = malloc(n * sizeof(*axis->count));
    axis->weight = calloc(n * (size_t)axis->taps, sizeof(*axis->weight));
    if (axis->first == NULL || axis->count == NULL || axis->weight == NULL) {
        axis_release(axis);
        return kiln_error_nomem(err, n * (size_t)axis->taps * sizeof(*axis->weight));
    }
    for (int64_t i = 0; i < to; i++)
        if (filter == KILN_FILTER_NEAREST)
            set_nearest(axis, i, start, scale, limit);
        else
            set_weights(axis, filter, i, start + ((double)i + 0.5) * scale, scale, limit);
    return KILN_OK;
}

/* ---- Rows -------------------------------------------------------------------------------- */

/* Of RGB: four floats at once, the last of which belongs to the next pixel. */
static void scale_row3(const KilnScaleAxis *axis, const float *from, int64_t width, float *to)
{
    for (int64_t x = 0; x < width; x++) {
        const float *weight = axis->weight + x * axis->taps;
        const float *pixel = from + axis->first[x] * 3;
        KilnFloats4 sum = { 0 };

        for (int64_t k = 0; k < axis->count[x]; k++)
            sum += weight[k] * kiln_load4(pixel + 3 * k);
        kiln_store4(to + 3 * x, sum);
    }
}

static void scale_row(const KilnScaleAxis *axis, const float *from, int64_t channels, int64_t width,
                      float *to)
{
    for (int64_t x = 0; x < width; x++) {
        const float *weight = axis->weight + x * axis->taps;
        const float *pixel = from + axis->first[x] * channels;

        for (int64_t c = 0; c < channels; c++) {
            float sum = 0.0f;

            for (int64_t k = 0; k < axis->count[x]; k++)
                sum += weight[k] * pixel[k * channels + c];
            to[x * channels + c] = sum;
        }
    }
}

KilnStatus kiln_scaler_init(KilnScaler *scaler, const KilnScaling *scaling, const KilnRect *rect,
                            KilnImage *to, KilnError *err)
{
    const size_t length = (size_t)(to->width * to->channels);

    *scaler = (KilnScaler) { .to = to, .row = malloc((length + 1) * sizeof(*scaler->row)) };
    if (scaler->row == NULL)
        return kiln_error_nomem(err, length * sizeof(*scaler->row));
    memset(to->data, 0, (size_t)to->height * length * sizeof(*to->data));
    KilnStatus status = axis_init(&scaler->across, scaling->filter,
                                  scaling->left - (double)rect->left, scaling->width, rect->width,
                                  to->width, err);
    return status >= 0 ? axis_init(&scaler->down, scaling->filter, scaling->top - (double)rect->top,
                                   scaling->height, rect->height, to->height, err)
                       : status;
}

/* Sums grow in the order of the source's rows. */
void kiln_scaler_add(KilnScaler *scaler, const float *row)
{
    const KilnScaleAxis *down = &scaler->down;
    const KilnImage *to = scaler->to;
    const int64_t from = scaler->from++, length = to->width * to->channels;

    if (to->channels == 3)
        scale_row3(&scaler->across, row, to->width, scaler->row);
    else
        scale_row(&scaler->across, row, to->channels, to->width, scaler->row);
    for (int64_t y = scaler->open; y < to->height && down->first[y] <= from; y++) {
        const float weight = down->weight[y * down->taps + from - down->first[y]];
        float *sum = to->data + y * length;

        for (int64_t i = 0; i < length; i++)
            sum[i] += weight * scaler->row[i];
        if (from == down->first[y] + down->count[y] - 1)
            scaler->open = y + 1;
    }
}

void kiln_scaler_release(KilnScaler *scaler)
{
    axis_release(&scaler->across);
    axis_release(&scaler->down);
    free(scaler->row);
    *scaler = (KilnScaler) { 0 };
}

KilnStatus kiln_image_scale_part(const KilnImage *from, const KilnImageWindow *window,
                                 KilnImage *to, KilnError *err)
{
    const KilnScaling scaling = { .filter = window->filter,
                                  .top = (double)window->top,
                                  .left = (double)window->left,
                                  .height = (double)window->height,
                                  .width = (double)window->width };
    const KilnRect rect = kiln_scaling_rect(&scaling, from->height, from->width);
    const int64_t channels = from->channels, length = rect.width * channels;
    const bool scales = rect.height != window->to_height || rect.width != window->to_width;
    KilnScaler scaler = { 0 };
    float *line = malloc((size_t)(length + 1) * sizeof(*line));
    KilnStatus status = kiln_image_resize_buffer(to, window->to_height, window->to_width, channels,
                                                 err);

    if (status >= 0 && line == NULL)
        status = kiln_error_nomem(err, (size_t)length * sizeof(*line));
    if (status >= 0 && scales)
        status = kiln_scaler_init(&scaler, &scaling, &rect, to, err);
    for (int64_t y = 0; y < rect.height && status >= 0; y++) {
        const float *row = from->data + ((rect.top + y) * from->width + rect.left) * channels;

        memcpy(scales ? line : to->data + y * length, row, (size_t)length * sizeof(*row));
        if (scales)
            kiln_scaler_add(&scaler, line);
    }
    kiln_scaler_release(&scaler);
    free(line);
    return status;
}

KilnStatus kiln_image_scale(const KilnImage *from, int64_t height, int64_t width, KilnImage *to,
                            KilnError *err)
{
    return kiln_image_scale_part(
        from,
        &(KilnImageWindow) {
            .height = from->height, .width = from->width, .to_height = height, .to_width = width },
        to, err);
}

const KilnChoice kiln_image_filters[4] = { { "bilinear", KILN_FILTER_BILINEAR },
                                           { "bicubic", KILN_FILTER_BICUBIC },
                                           { "nearest", KILN_FILTER_NEAREST },
                                           { NULL, 0 } };
