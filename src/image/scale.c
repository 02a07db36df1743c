/* Resizing images: separable bilinear, whose filter widens when shrinking so
 * that every source pixel counts (what Pillow and torchvision call antialias). */
#include "kiln/image.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The weights of one axis: output i is the sum of weight[i * taps + k] times
 * source first[i] + k, for k < count[i]. */
typedef struct Axis {
    int64_t *first, *count;
    float *weight;
    int64_t taps;
} Axis;

static void axis_release(Axis *axis)
{
    free(axis->first);
    free(axis->count);
    free(axis->weight);
}

/* A triangle of the width of two source pixels, or two output pixels when
 * shrinking, around the centre of each output pixel; cut off at the border. */
static KilnStatus axis_init(Axis *axis, int64_t from, int64_t to, KilnError *err)
{
    double scale = (double)from / (double)to;
    double support = scale > 1.0 ? scale : 1.0;
    size_t n = (size_t)to;

    *axis = (Axis) { .taps = 2 * (int64_t)ceil(support) + 1 };
    axis->first = malloc(n * sizeof(*axis->first));
    axis->count = malloc(n * sizeof(*axis->count));
    axis->weight = calloc(n * (size_t)axis->taps, sizeof(*axis->weight));
    if (axis->first == NULL || axis->count == NULL || axis->weight == NULL) {
        axis_release(axis);
        return kiln_error_nomem(err, n * (size_t)axis->taps * sizeof(*axis->weight));
    }
    for (int64_t i = 0; i < to; i++) {
        double centre = ((double)i + 0.5) * scale, sum = 0.0;
        int64_t low = (int64_t)(centre - support + 0.5), high = (int64_t)(centre + support + 0.5);
        float *weight = axis->weight + i * axis->taps;

        low = low < 0 ? 0 : low;
        high = high > from ? from : high;
        for (int64_t k = low; k < high; k++) {
            double distance = fabs((double)k + 0.5 - centre) / support;

            sum += distance < 1.0 ? 1.0 - distance : 0.0;
        }
        for (int64_t k = low; k < high; k++) {
            double distance = fabs((double)k + 0.5 - centre) / support;

            weight[k - low] = (float)((distance < 1.0 ? 1.0 - distance : 0.0) / sum);
        }
        axis->first[i] = low;
        axis->count[i] = high - low;
    }
    return KILN_OK;
}

static void scale_row(const Axis *axis, const float *from, int64_t channels, int64_t width,
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

static void scale_column(const Axis *axis, const float *rows, int64_t y, int64_t row_length,
                         float *to)
{
    const float *weight = axis->weight + y * axis->taps;

    memset(to, 0, (size_t)row_length * sizeof(*to));
    for (int64_t k = 0; k < axis->count[y]; k++) {
        const float *row = rows + (axis->first[y] + k) * row_length;

        for (int64_t i = 0; i < row_length; i++)
            to[i] += weight[k] * row[i];
    }
}

KilnStatus kiln_image_scale(const KilnImage *from, int64_t height, int64_t width, KilnImage *to,
                            KilnError *err)
{
    int64_t channels = from->channels, row_length = width * channels;
    Axis across = { 0 }, down = { 0 };
    KilnImage wide = { 0 };
    KilnStatus status;

    status = kiln_image_resize_buffer(to, height, width, channels, err);
    if (status >= 0)
        status = kiln_image_resize_buffer(&wide, from->height, width, channels, err);
    if (status >= 0)
        status = axis_init(&across, from->width, width, err);
    if (status >= 0) {
        status = axis_init(&down, from->height, height, err);
        if (status >= 0) {
            for (int64_t y = 0; y < from->height; y++)
                scale_row(&across, from->data + y * from->width * channels, channels, width,
                          wide.data + y * row_length);
            for (int64_t y = 0; y < height; y++)
                scale_column(&down, wide.data, y, row_length, to->data + y * row_length);
            axis_release(&down);
        }
        axis_release(&across);
    }
    kiln_image_release(&wide);
    return status;
}
