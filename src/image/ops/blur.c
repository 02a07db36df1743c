/* Blurring and sharpening. */
#include "kiln/images/image_ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A pixel's weight is 5, each neighbor's 1; the border stays as it is. */
KilnStatus kiln_image_adjust_sharpness(KilnImage *image, float factor, KilnImage *scratch,
                                       KilnError *err)
{
    const int64_t c = image->channels, length = image->width * c;
    const size_t count = (size_t)(image->height * length);
    KilnStatus status = kiln_image_resize_buffer(scratch, image->height, image->width, c, err);

    if (status < 0 || image->height <= 2 || image->width <= 2)
        return status;
    memcpy(scratch->data, image->data, count * sizeof(*image->data));
    for (int64_t y = 1; y < image->height - 1; y++)
        for (int64_t i = c; i < length - c; i++) {
            const float *p = scratch->data + y * length + i;
            float *to = image->data + y * length + i;
            const float around = p[-length - c] + p[-length] + p[-length + c] + p[-c] + p[c] +
                                 p[length - c] + p[length] + p[length + c];
            const float value = factor * *p + (1.0f - factor) * (around + 5.0f * *p) / 13.0f;

            *to = value > 0.0f ? (value < 1.0f ? value : 1.0f) : 0.0f;
        }
    return KILN_OK;
}

/* The weights of one axis. */
static float *make_kernel(int64_t size, double sigma)
{
    float *kernel = malloc((size_t)size * sizeof(*kernel));
    double sum = 0.0;

    for (int64_t i = 0; i < size && kernel != NULL; i++) {
        const double x = ((double)i - 0.5 * (double)(size - 1)) / sigma;

        kernel[i] = (float)exp(-0.5 * x * x);
        sum += (double)kernel[i];
    }
    for (int64_t i = 0; i < size && kernel != NULL; i++)
        kernel[i] = (float)((double)kernel[i] / sum);
    return kernel;
}

static int64_t reflect(int64_t i, int64_t n)
{
    return i < 0 ? -i : i >= n ? 2 * n - 2 - i : i;
}

/* Sum rows of `from`, or pixels of each row. */
static void blur_axis(const KilnImage *from, const float *kernel, int64_t size, bool down,
                      KilnImage *to)
{
    const int64_t c = from->channels, length = from->width * c, half = size / 2;

    memset(to->data, 0, (size_t)(from->height * length) * sizeof(*to->data));
    for (int64_t y = 0; y < from->height; y++)
        for (int64_t k = 0; k < size; k++) {
            float *sum = to->data + y * length;
            const float *row = from->data +
                               (down ? reflect(y + k - half, from->height) : y) * length;

            if (down) {
                for (int64_t i = 0; i < length; i++)
                    sum[i] += kernel[k] * row[i];
                continue;
            }
            for (int64_t x = 0; x < from->width; x++) {
                const float *pixel = row + reflect(x + k - half, from->width) * c;

                for (int64_t i = 0; i < c; i++)
                    sum[x * c + i] += kernel[k] * pixel[i];
            }
        }
}

KilnStatus kiln_image_gaussian_blur(KilnImage *image, int64_t size, double sigma,
                                    KilnImage *scratch, KilnError *err)
{
    if (image->height <= size / 2 || image->width <= size / 2)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "an image of %lld x %lld is too small to blur over %lld pixels",
                              (long long)image->height, (long long)image->width, (long long)size);
    float *kernel = make_kernel(size, sigma);
    KilnStatus status = kernel != NULL
                            ? kiln_image_resize_buffer(scratch, image->height, image->width,
                                                       image->channels, err)
                            : kiln_error_nomem(err, (size_t)size * sizeof(*kernel));

    if (status >= 0) {
        blur_axis(image, kernel, size, false, scratch);
        blur_axis(scratch, kernel, size, true, image);
    }
    free(kernel);
    return status;
}
