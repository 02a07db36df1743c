/* The picture of an explained image. */
#include <math.h>
#include <stdlib.h>

#include "cli/explain/explain_output.h"
#include "kiln/image.h"

enum { LEAST_SIDE = 224 };

/* The mean over the channels of each pixel, stretched to 0..1. */
static KilnStatus grey_of(const KilnAttribution *attribution, KilnImage *ret, KilnError *err)
{
    const KilnShape *shape = &attribution->feature->shape;
    const int64_t places = shape->dim[0] * shape->dim[1], channels = shape->dim[2];
    const float *input = attribution->input;
    float least = INFINITY, most = -INFINITY;

    if (kiln_image_resize_buffer(ret, shape->dim[0], shape->dim[1], 1, err) < 0)
        return err->status;
    for (int64_t i = 0; i < places; i++) {
        float sum = 0.0f;

        for (int64_t c = 0; c < channels; c++)
            sum += input[i * channels + c];
        ret->data[i] = sum;
        least = fminf(least, sum);
        most = fmaxf(most, sum);
    }
    for (int64_t i = 0; i < places; i++)
        ret->data[i] = most > least ? (ret->data[i] - least) / (most - least) : 0.5f;
    return KILN_OK;
}

static int compare(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

/* Sum the attributions over the channels, and divide them by the 99th percentile of their sizes, so
 * that single pixels do not hide the others. */
static KilnStatus heat_of(const KilnAttribution *attribution, KilnImage *ret, KilnError *err)
{
    const KilnShape *shape = &attribution->shape;
    const int64_t places = shape->dim[0] * shape->dim[1], channels = shape->dim[2];
    float *sizes = malloc((size_t)places * sizeof(*sizes));

    if (sizes == NULL)
        return kiln_error_nomem(err, (size_t)places * sizeof(*sizes));
    if (kiln_image_resize_buffer(ret, shape->dim[0], shape->dim[1], 1, err) < 0) {
        free(sizes);
        return err->status;
    }
    for (int64_t i = 0; i < places; i++) {
        ret->data[i] = 0.0f;
        for (int64_t c = 0; c < channels; c++)
            ret->data[i] += attribution->values[i * channels + c];
        sizes[i] = fabsf(ret->data[i]);
    }
    qsort(sizes, (size_t)places, sizeof(*sizes), compare);
    float scale = sizes[(places - 1) * 99 / 100];
    if (!(scale > 0.0f))
        scale = sizes[places - 1];
    for (int64_t i = 0; i < places && scale > 0.0f; i++)
        ret->data[i] = fmaxf(-1.0f, fminf(1.0f, ret->data[i] / scale));
    free(sizes);
    return KILN_OK;
}

/* Lay red (for) or blue (against) over grey. */
static void blend(const KilnImage *grey, const KilnImage *heat, KilnImage *ret)
{
    for (int64_t i = 0; i < grey->height * grey->width; i++) {
        const float strength = fabsf(heat->data[i]), base = 0.7f * grey->data[i] + 0.15f;
        const bool against = heat->data[i] < 0.0f;
        float *pixel = ret->data + 3 * i;

        pixel[0] = base * (1.0f - strength) + (against ? 0.1f : 0.9f) * strength;
        pixel[1] = base * (1.0f - strength) + 0.15f * strength;
        pixel[2] = base * (1.0f - strength) + (against ? 0.9f : 0.1f) * strength;
    }
}

static KilnStatus draw(const KilnAttribution *attribution, KilnImage images[5], const char *path,
                       KilnError *err)
{
    KilnImage *grey = &images[0], *heat = &images[1], *large = &images[2], *over = &images[3];
    KilnImage *picture = &images[4];
    const KilnShape *shape = &attribution->feature->shape;
    const int64_t shorter = shape->dim[0] < shape->dim[1] ? shape->dim[0] : shape->dim[1];
    const int64_t times = shorter < LEAST_SIDE ? (LEAST_SIDE + shorter - 1) / shorter : 1;
    const int64_t height = shape->dim[0] * times, width = shape->dim[1] * times;

    if (grey_of(attribution, grey, err) < 0 || heat_of(attribution, heat, err) < 0 ||
        kiln_image_scale(grey, height, width, large, err) < 0 ||
        kiln_image_scale(heat, height, width, over, err) < 0 ||
        kiln_image_resize_buffer(picture, height, width, 3, err) < 0)
        return err->status;
    blend(large, over, picture);
    return kiln_image_write_png(path, picture, err);
}

KilnStatus kiln_explained_picture(const KilnAttribution *image, const char *path, KilnError *err)
{
    KilnImage images[5] = { { 0 } };
    KilnStatus status = draw(image, images, path, err);

    for (size_t i = 0; i < KILN_COUNT(images); i++)
        kiln_image_release(&images[i]);
    return status;
}
