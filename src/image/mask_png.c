/* Reads the values of masks: the indices of a palette, or grey values, as the file has them. */
#include "kiln/images/image_masks.h"

#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct MaskReader {
    FILE *file;
    png_structp png;
    png_infop info;
    char message[128]; /* of libpng */
    int depth, color;
    png_uint_32 height, width;
    png_bytep values;
    png_bytep *rows;
} MaskReader;

static void on_error(png_structp png, png_const_charp message)
{
    MaskReader *reader = png_get_error_ptr(png);

    snprintf(reader->message, sizeof(reader->message), "%s", message);
    png_longjmp(png, 1);
}

/* libpng's default prints. */
static void on_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

static void on_read(png_structp png, png_bytep data, size_t size)
{
    MaskReader *reader = png_get_io_ptr(png);

    if (fread(data, 1, size, reader->file) != size)
        png_error(png, "the file ends before the image does");
}

static bool read_header(MaskReader *reader)
{
    if (setjmp(png_jmpbuf(reader->png)) != 0)
        return false;
    png_set_read_fn(reader->png, reader, on_read);
    png_set_user_limits(reader->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_read_info(reader->png, reader->info);
    reader->height = png_get_image_height(reader->png, reader->info);
    reader->width = png_get_image_width(reader->png, reader->info);
    reader->depth = png_get_bit_depth(reader->png, reader->info);
    reader->color = png_get_color_type(reader->png, reader->info);
    return true;
}

static bool read_values(MaskReader *reader)
{
    if (setjmp(png_jmpbuf(reader->png)) != 0)
        return false;
    png_set_packing(reader->png); /* 1, 2 and 4 bits: a byte each, not scaled */
    png_set_interlace_handling(reader->png);
    png_read_update_info(reader->png, reader->info);
    png_read_image(reader->png, reader->rows);
    return true;
}

static KilnStatus damaged(const MaskReader *reader, const char *path, KilnError *err)
{
    return kiln_error_set(err, KILN_E_FORMAT, "%s: damaged PNG: %s", path, reader->message);
}

static KilnStatus check_form(const MaskReader *reader, const char *path, int64_t max_pixels,
                             KilnError *err)
{
    const int64_t most = max_pixels > 0 ? max_pixels : KILN_IMAGE_MAX_PIXELS;

    if ((reader->color != PNG_COLOR_TYPE_PALETTE && reader->color != PNG_COLOR_TYPE_GRAY) ||
        reader->depth > 8)
        return kiln_error_set(
            err, KILN_E_FORMAT,
            "%s: a mask must be a PNG of a palette or of grey values with at "
            "most 8 bits, and this has %s of %d bits; store the number of the "
            "class in each pixel",
            path, (reader->color & PNG_COLOR_MASK_COLOR) != 0 ? "colours" : "greys", reader->depth);
    if (reader->height > most / reader->width)
        return kiln_error_set(
            err, KILN_E_FORMAT, "%s: an image of %lld x %lld pixels; at most %lld in all are read",
            path, (long long)reader->height, (long long)reader->width, (long long)most);
    return KILN_OK;
}

static KilnStatus read(MaskReader *reader, const char *path, int64_t max_pixels, KilnError *err)
{
    if (!read_header(reader))
        return damaged(reader, path, err);
    KilnStatus status = check_form(reader, path, max_pixels, err);
    if (status < 0)
        return status;
    const size_t pixels = (size_t)reader->height * reader->width;
    reader->values = malloc(pixels);
    reader->rows = malloc(reader->height * sizeof(*reader->rows));
    if (reader->values == NULL || reader->rows == NULL)
        return kiln_error_nomem(err, pixels);
    for (png_uint_32 y = 0; y < reader->height; y++)
        reader->rows[y] = reader->values + (size_t)y * reader->width;
    return read_values(reader) ? KILN_OK : damaged(reader, path, err);
}

static KilnStatus open_file(MaskReader *reader, const char *path, KilnError *err)
{
    png_byte signature[8];

    reader->file = fopen(path, "rb");
    if (reader->file == NULL)
        return kiln_error_errno(err, path);
    if (fread(signature, 1, sizeof(signature), reader->file) != sizeof(signature) ||
        png_sig_cmp(signature, 0, sizeof(signature)) != 0)
        return kiln_error_set(err, KILN_E_FORMAT, "%s: not a PNG file; a mask must be one", path);
    rewind(reader->file);
    reader->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, reader, on_error, on_warning);
    reader->info = reader->png != NULL ? png_create_info_struct(reader->png) : NULL;
    return reader->info != NULL ? KILN_OK : kiln_error_nomem(err, 0);
}

KilnStatus kiln_mask_read_png(const char *path, int64_t max_pixels, uint8_t **ret,
                              int64_t *ret_height, int64_t *ret_width, KilnError *err)
{
    MaskReader reader = { 0 };
    KilnStatus status = open_file(&reader, path, err);

    if (status >= 0)
        status = read(&reader, path, max_pixels, err);
    if (reader.png != NULL)
        png_destroy_read_struct(&reader.png, &reader.info, NULL);
    if (reader.file != NULL)
        fclose(reader.file);
    free(reader.rows);
    if (status < 0) {
        free(reader.values);
        return status;
    }
    *ret = reader.values;
    *ret_height = reader.height;
    *ret_width = reader.width;
    return KILN_OK;
}
