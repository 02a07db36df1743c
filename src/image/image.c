/* The storage of an image. */
#include "kiln/image.h"

#include <stdlib.h>

KilnStatus kiln_image_resize_buffer(KilnImage *image, int64_t height, int64_t width,
                                    int64_t channels, KilnError *err)
{
    const int64_t limit = INT64_C(1) << 32; /* floats; keeps the products below from overflowing */

    if (height < 1 || width < 1 || channels < 1 || height > limit || width > limit / height ||
        channels > limit / (height * width))
        return kiln_error_set(err, KILN_E_RANGE,
                              "an image of %lld x %lld pixels and %lld channels is not possible",
                              (long long)height, (long long)width, (long long)channels);
    size_t count = (size_t)(height * width * channels);
    if (count > image->capacity) {
        float *data = malloc(count * sizeof(*data));

        if (data == NULL)
            return kiln_error_nomem(err, count * sizeof(*data));
        free(image->data);
        image->data = data;
        image->capacity = count;
    }
    image->height = height;
    image->width = width;
    image->channels = channels;
    return KILN_OK;
}

void kiln_image_release(KilnImage *image)
{
    if (image == NULL)
        return;
    free(image->data);
    *image = (KilnImage) { 0 };
}
