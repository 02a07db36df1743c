/* Resizing images: separable bilinear, whose filter widens when shrinking so
 * that every source pixel counts (what Pillow and torchvision call antialias). */
#include "image/scale.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void axis_release(KilnScaleAxis *axis)
{
    free(axis->first);
    free(axis->count);
    free(axis->weight);
    *axis = (KilnScaleAxis) { 0 };
}

/* A triangle of the width of two source pixels, or two output pixels when
 * shrinking, around the centre of each output pixel; cut off at the border. */
static KilnStatus axis_init(KilnScaleAxis *axis, int64_t from, int64_t to, KilnError *err)
{
    double scale = (double)from / (double)to;
    double support = scale > 1.0 ? scale : 1.0;
    size_t n = (size_t)to;

    *axis = (KilnScaleAxis) { .taps = 2 * (int64_t)ceil(support) + 1 };
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

KilnStatus kiln_scaler_init(KilnScaler *scaler, int64_t height, int64_t width, KilnImage *to,
                            KilnError *err)
{
    const size_t length = (size_t)(to->width * to->channels);

    *scaler = (KilnScaler) { .to = to, .row = malloc(length * sizeof(*scaler->row)) };
    if (scaler->row == NULL)
        return kiln_error_nomem(err, length * sizeof(*scaler->row));
    memset(to->data, 0, (size_t)to->height * length * sizeof(*to->data));
    KilnStatus status = axis_init(&scaler->across, width, to->width, err);
    return status >= 0 ? axis_init(&scaler->down, height, to->height, err) : status;
}

/* Sums grow in the order of the source's rows. */
void kiln_scaler_add(KilnScaler *scaler, const float *row)
{
    const KilnScaleAxis *down = &scaler->down;
    const KilnImage *to = scaler->to;
    const int64_t from = scaler->from++, length = to->width * to->channels;

    scale_row(&scaler->across, row, to->channels, to->width, scaler->row);
    while (scaler->open < to->height &&
           down->first[scaler->open] + down->count[scaler->open] <= from)
        scaler->open++;
    for (int64_t y = scaler->open; y < to->height && down->first[y] <= from; y++) {
        const float weight = down->weight[y * down->taps + from - down->first[y]];
        float *sum = to->data + y * length;

        for (int64_t i = 0; i < length; i++)
            sum[i] += weight * scaler->row[i];
    }
}

void kiln_scaler_release(KilnScaler *scaler)
{
    axis_release(&scaler->across);
    axis_release(&scaler->down);
    free(scaler->row);
    *scaler = (KilnScaler) { 0 };
}

KilnStatus kiln_image_scale(const KilnImage *from, int64_t height, int64_t width, KilnImage *to,
                            KilnError *err)
{
    KilnScaler scaler;
    KilnStatus status = kiln_image_resize_buffer(to, height, width, from->channels, err);

    if (status < 0)
        return status;
    status = kiln_scaler_init(&scaler, from->height, from->width, to, err);
    for (int64_t y = 0; y < from->height && status >= 0; y++)
        kiln_scaler_add(&scaler, from->data + y * from->width * from->channels);
    kiln_scaler_release(&scaler);
    return status;
}
