/* PNG of 8-bit pixels, in memory and as a file. */
#include <limits.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>

#include "kiln/image.h"

static KilnStatus refused(const png_image *image, KilnError *err)
{
    return kiln_error_set(err, KILN_E_FORMAT, "an image can't be written as PNG: %s",
                          image->message);
}

KilnStatus kiln_png_encode(const uint8_t *pixels, int64_t height, int64_t width, int64_t channels,
                           uint8_t **ret, size_t *ret_size, KilnError *err)
{
    png_image image = { .version = PNG_IMAGE_VERSION };
    png_alloc_size_t size = 0;

    if (height < 1 || width < 1 || height > INT_MAX / 16 || width > INT_MAX / 16 ||
        (channels != 1 && channels != 3))
        return kiln_error_set(err, KILN_E_RANGE,
                              "an image of %lld × %lld pixels and %lld channels can't be written "
                              "as PNG: 1 or 3 channels are possible",
                              (long long)height, (long long)width, (long long)channels);
    image.height = (png_uint_32)height;
    image.width = (png_uint_32)width;
    image.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
    if (png_image_write_to_memory(&image, NULL, &size, 0, pixels, 0, NULL) == 0)
        return refused(&image, err);
    uint8_t *data = malloc(size);
    if (data == NULL)
        return kiln_error_nomem(err, size);
    if (png_image_write_to_memory(&image, data, &size, 0, pixels, 0, NULL) == 0) {
        free(data);
        return refused(&image, err);
    }
    *ret = data;
    *ret_size = size;
    return KILN_OK;
}

KilnStatus kiln_png_write(const char *path, const uint8_t *pixels, int64_t height, int64_t width,
                          int64_t channels, KilnError *err)
{
    uint8_t *png = NULL;
    size_t size = 0;
    KilnStatus status = kiln_png_encode(pixels, height, width, channels, &png, &size, err);

    if (status < 0)
        return status;
    FILE *file = fopen(path, "wbe");
    bool written = file != NULL && fwrite(png, 1, size, file) == size;
    if (file != NULL && fclose(file) != 0)
        written = false;
    if (!written)
        status = kiln_error_errno(err, path);
    free(png);
    return status;
}
