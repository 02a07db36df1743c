/* Writing 8-bit PNG files.
 *
 * libpng reports errors by longjmp: the function with setjmp in it changes no local variable after
 * it. */
#include "kiln/image.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <png.h>

#include "base/system/file.h"
#include "base/text.h"

typedef struct Writer {
    const KilnImage *image;
    png_structp png;
    png_infop info;
    png_byte *row;
    KilnText text; /* the file's bytes */
    char message[256];
} Writer;

static void on_write_error(png_structp png, png_const_charp message)
{
    Writer *writer = png_get_error_ptr(png);

    snprintf(writer->message, sizeof(writer->message), "%s", message);
    png_longjmp(png, 1);
}

static void on_write(png_structp png, png_bytep data, size_t size)
{
    Writer *writer = png_get_io_ptr(png);

    kiln_text_append_n(&writer->text, (const char *)data, size);
    if (writer->text.failed)
        png_error(png, "out of memory");
}

/* libpng's default prints. */
static void on_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

static void on_flush(png_structp png)
{
    (void)png;
}

static png_byte quantize(float value)
{
    /* Written so that NaN becomes 0. */
    return value > 0.0f ? (png_byte)((value < 1.0f ? value : 1.0f) * 255.0f + 0.5f) : 0;
}

static bool write_rows(Writer *writer)
{
    const KilnImage *image = writer->image;
    int64_t length = image->width * image->channels;

    if (setjmp(png_jmpbuf(writer->png)) != 0)
        return false;
    png_set_write_fn(writer->png, writer, on_write, on_flush);
    png_set_IHDR(writer->png, writer->info, (png_uint_32)image->width, (png_uint_32)image->height,
                 8, image->channels == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(writer->png, writer->info);
    for (int64_t y = 0; y < image->height; y++) {
        for (int64_t i = 0; i < length; i++)
            writer->row[i] = quantize(image->data[y * length + i]);
        png_write_row(writer->png, writer->row);
    }
    png_write_end(writer->png, writer->info);
    return true;
}

KilnStatus kiln_image_write_png(const char *path, const KilnImage *image, KilnError *err)
{
    Writer writer = { .image = image };
    KilnStatus status;

    if (image->height < 1 || image->width < 1 || image->height > INT32_MAX ||
        image->width > INT32_MAX || (image->channels != 1 && image->channels != 3))
        return kiln_error_set(
            err, KILN_E_SHAPE, "%s: an image of %lld x %lld x %lld; a PNG needs 1 or 3 channels",
            path, (long long)image->height, (long long)image->width, (long long)image->channels);
    writer.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &writer, on_write_error,
                                         on_warning);
    writer.info = writer.png != NULL ? png_create_info_struct(writer.png) : NULL;
    writer.row = malloc((size_t)(image->width * image->channels));
    if (writer.info == NULL || writer.row == NULL)
        status = kiln_error_nomem(err, (size_t)(image->width * image->channels));
    else if (!write_rows(&writer))
        status = kiln_error_set(err, KILN_E_IO, "%s: could not be encoded: %s", path,
                                writer.message);
    else
        status = kiln_file_write(path, writer.text.data, writer.text.length, err);
    png_destroy_write_struct(&writer.png, &writer.info);
    kiln_text_release(&writer.text);
    free(writer.row);
    return status;
}
