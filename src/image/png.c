/* Reading PNG files of every kind into floats, and writing 8-bit ones.
 *
 * libpng reports errors by longjmp. Everything that must survive one lives in
 * the Reader or Writer struct of a caller that does not jump itself; the
 * functions with setjmp in them change no local variable after it. */
#include "kiln/image.h"

#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <libdeflate.h>
#include <png.h>

#include "base/system/file.h"
#include "base/text.h"
#include "image/pixels.h"
#include "image/scale.h"

#define HEADER_SIZE 33 /* signature and the IHDR chunk, which is always first */

typedef struct Reader {
    const char *path; /* borrowed */
    const KilnPngForm *form;
    FILE *file;
    int64_t file_size;
    png_structp png;
    png_infop info;
    png_byte *rows; /* one row, or all of them when interlaced */
    float *line;    /* one row's samples as floats */
    size_t row_bytes;
    int64_t height, width, depth, samples; /* samples a pixel: 1 to 4, the even ones with alpha */
    int passes;
    bool scales;
    KilnScaler scaler;
    float *scaled; /* one row that goes to the scaler */
    char message[256];
} Reader;

/* ---- What a file is ------------------------------------------------------------ */

/* Says what the first bytes look like, for files that are no PNG. */
static KilnStatus refuse_signature(const char *path, const unsigned char *head, size_t size,
                                   KilnError *err)
{
    static const struct {
        const char *magic, *name;
    } formats[] = {
        { "\xff\xd8\xff", "a JPEG" }, { "GIF8", "a GIF" }, { "BM", "a BMP" },
        { "RIFF", "a WebP" },         { "II*", "a TIFF" }, { "MM", "a TIFF" },
    };
    char begin[17] = { 0 };

    if (size == 0)
        return kiln_error_set(err, KILN_E_FORMAT, "%s: the file is empty; expected a PNG image",
                              path);
    for (size_t i = 0; i < KILN_COUNT(formats); i++)
        if (size >= strlen(formats[i].magic) &&
            memcmp(head, formats[i].magic, strlen(formats[i].magic)) == 0)
            return kiln_error_set(err, KILN_E_FORMAT,
                                  "%s: looks like %s image; expected a PNG: convert it", path,
                                  formats[i].name);
    for (size_t i = 0; i < sizeof(begin) - 1 && i < size; i++)
        begin[i] = head[i] >= ' ' && head[i] < 127 ? (char)head[i] : '.';
    return kiln_error_set(err, KILN_E_FORMAT,
                          "%s: not a PNG image: it begins with \"%s\", expected the PNG signature",
                          path, begin);
}

static KilnStatus check_header(const char *path, const unsigned char *head, size_t size,
                               KilnError *err)
{
    if (size < 8 ? size == 0 || png_sig_cmp(head, 0, size) != 0 : png_sig_cmp(head, 0, 8) != 0)
        return refuse_signature(path, head, size, err);
    if (size < HEADER_SIZE)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: damaged PNG: the file ends after %zu bytes, inside its header",
                              path, size);
    return KILN_OK;
}

/* Open a regular file and check that it begins as a PNG; the position is after
 * the header afterwards. */
static KilnStatus open_png(const char *path, FILE **ret, int64_t *ret_size,
                           unsigned char head[HEADER_SIZE], KilnError *err)
{
    struct stat st;
    FILE *file;

    if (stat(path, &st) != 0)
        return kiln_error_errno(err, path);
    if (!S_ISREG(st.st_mode))
        return kiln_error_set(err, KILN_E_IO, "%s: is a %s, expected a PNG file", path,
                              S_ISDIR(st.st_mode) ? "folder" : "device or pipe");
    file = fopen(path, "rb");
    if (file == NULL)
        return kiln_error_errno(err, path);
    size_t got = fread(head, 1, HEADER_SIZE, file);
    KilnStatus status = ferror(file) ? kiln_error_errno(err, path)
                                     : check_header(path, head, got, err);
    if (status < 0) {
        fclose(file);
        return status;
    }
    *ret = file;
    *ret_size = (int64_t)st.st_size;
    return KILN_OK;
}

static KilnStatus check_size(const char *path, int64_t height, int64_t width, int64_t max_pixels,
                             KilnError *err)
{
    const int64_t most = max_pixels > 0 ? max_pixels : KILN_IMAGE_MAX_PIXELS;

    if (height < 1 || width < 1)
        return kiln_error_set(err, KILN_E_FORMAT, "%s: damaged PNG: an image of %lld x %lld pixels",
                              path, (long long)height, (long long)width);
    if (height > most / width)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: an image of %lld x %lld pixels; at most %lld in all are read%s",
                              path, (long long)height, (long long)width, (long long)most,
                              max_pixels > 0 ? " (datamodule.max_pixels)" : "");
    return KILN_OK;
}

static uint32_t big_endian(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

KilnStatus kiln_image_png_size(const char *path, int64_t max_pixels, int64_t ret[3], KilnError *err)
{
    unsigned char head[HEADER_SIZE];
    int64_t size;
    FILE *file = NULL;
    KilnStatus status = open_png(path, &file, &size, head, err);

    if (status < 0)
        return status;
    fclose(file);
    if (big_endian(head + 8) != 13 || memcmp(head + 12, "IHDR", 4) != 0)
        return kiln_error_set(err, KILN_E_FORMAT, "%s: damaged PNG: no IHDR chunk at its start",
                              path);
    if (libdeflate_crc32(0, head + 12, 17) != big_endian(head + 29))
        return kiln_error_set(err, KILN_E_FORMAT, "%s: damaged PNG: IHDR: CRC error", path);
    int64_t width = big_endian(head + 16), height = big_endian(head + 20);
    status = check_size(path, height, width, max_pixels, err);
    if (status < 0)
        return status;
    ret[0] = height;
    ret[1] = width;
    ret[2] = (head[25] & PNG_COLOR_MASK_COLOR) != 0 ? 3 : 1;
    return KILN_OK;
}

/* ---- Reading -------------------------------------------------------------------- */

static void on_read_error(png_structp png, png_const_charp message)
{
    Reader *reader = png_get_error_ptr(png);

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
    Reader *reader = png_get_io_ptr(png);

    if (fread(data, 1, size, reader->file) != size)
        png_error(png, ferror(reader->file) ? "reading it failed"
                                            : "the file ends before the image does");
}

static bool read_header(Reader *reader)
{
    if (setjmp(png_jmpbuf(reader->png)) != 0)
        return false;
    png_set_read_fn(reader->png, reader, on_read);
    png_set_user_limits(reader->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_read_info(reader->png, reader->info);
    reader->height = png_get_image_height(reader->png, reader->info);
    reader->width = png_get_image_width(reader->png, reader->info);
    reader->row_bytes = png_get_rowbytes(reader->png, reader->info);
    return true;
}

/* Palette to RGB, 1 to 4 bits to 8, a transparent colour to alpha. */
static bool set_conversions(Reader *reader)
{
    if (setjmp(png_jmpbuf(reader->png)) != 0)
        return false;
    png_set_expand(reader->png);
    reader->passes = png_set_interlace_handling(reader->png);
    png_read_update_info(reader->png, reader->info);
    reader->row_bytes = png_get_rowbytes(reader->png, reader->info);
    reader->depth = png_get_bit_depth(reader->png, reader->info);
    reader->samples = png_get_channels(reader->png, reader->info);
    return true;
}

/* One row's samples to 1 or 3 channels. */
static void convert_row(Reader *reader, const png_byte *row, int64_t channels, float *to)
{
    const int64_t count = reader->width * reader->samples;
    float *line = reader->line;

    if (reader->depth == 16)
        for (int64_t i = 0; i < count; i++)
            line[i] = (float)(row[2 * i] << 8 | row[2 * i + 1]) / 65535.0f;
    else
        for (int64_t i = 0; i < count; i++)
            line[i] = (float)row[i] / 255.0f;
    kiln_pixels_convert(line, reader->width, reader->samples, channels, to);
}

static bool read_rows(Reader *reader, KilnImage *image)
{
    bool interlaced = reader->passes > 1;

    if (setjmp(png_jmpbuf(reader->png)) != 0)
        return false;
    for (int pass = 0; pass < reader->passes; pass++)
        for (int64_t y = 0; y < reader->height; y++) {
            png_byte *row = reader->rows + (interlaced ? (size_t)y * reader->row_bytes : 0);

            png_read_row(reader->png, row, NULL);
            if (pass < reader->passes - 1)
                continue;
            convert_row(reader, row, image->channels,
                        reader->scales ? reader->scaled
                                       : image->data + y * reader->width * image->channels);
            if (reader->scales)
                kiln_scaler_add(&reader->scaler, reader->scaled);
        }
    png_read_end(reader->png, NULL);
    return true;
}

/* Deflate shrinks by less than 1040: a file that is too small for the size in
 * its header is refused before memory is taken for it. */
static KilnStatus check_plausible(const Reader *reader, KilnError *err)
{
    KilnStatus status = check_size(reader->path, reader->height, reader->width,
                                   reader->form->max_pixels, err);

    if (status < 0)
        return status;
    if ((int64_t)reader->row_bytes / 1040 * reader->height > reader->file_size)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: damaged PNG: %lld bytes can't hold the %lld x %lld pixels that "
                              "its header announces",
                              reader->path, (long long)reader->file_size, (long long)reader->height,
                              (long long)reader->width);
    return KILN_OK;
}

static KilnStatus damaged(const Reader *reader, KilnError *err)
{
    return kiln_error_set(err, KILN_E_FORMAT, "%s: damaged PNG: %s", reader->path, reader->message);
}

/* Memory for rows, and for the result. */
static KilnStatus make_room(Reader *reader, KilnImage *image, KilnError *err)
{
    const KilnPngForm *form = reader->form;
    const int64_t height = form->height > 0 ? form->height : reader->height;
    const int64_t width = form->width > 0 ? form->width : reader->width;
    const size_t kept = reader->passes > 1 ? (size_t)reader->height : 1;
    const size_t samples = (size_t)(reader->width * reader->samples);
    const size_t scaled = (size_t)(reader->width * form->channels);
    KilnStatus status = kiln_image_resize_buffer(image, height, width, form->channels, err);

    if (status < 0)
        return status;
    reader->scales = height != reader->height || width != reader->width;
    reader->rows = malloc(reader->row_bytes * kept);
    reader->line = malloc(samples * sizeof(*reader->line));
    reader->scaled = reader->scales ? malloc(scaled * sizeof(*reader->scaled)) : NULL;
    if (reader->rows == NULL || reader->line == NULL || (reader->scales && reader->scaled == NULL))
        return kiln_error_nomem(err, reader->row_bytes * kept);
    return reader->scales
               ? kiln_scaler_init(&reader->scaler, reader->height, reader->width, image, err)
               : KILN_OK;
}

static KilnStatus decode(Reader *reader, KilnImage *image, KilnError *err)
{
    KilnStatus status;

    if (!read_header(reader))
        return damaged(reader, err);
    status = check_plausible(reader, err);
    if (status < 0)
        return status;
    if (!set_conversions(reader))
        return damaged(reader, err);
    status = make_room(reader, image, err);
    if (status < 0)
        return status;
    return read_rows(reader, image) ? KILN_OK : damaged(reader, err);
}

/* Read the open file, which is closed. */
static KilnStatus read_open(Reader *reader, KilnImage *image, KilnError *err)
{
    rewind(reader->file);
    reader->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, reader, on_read_error, on_warning);
    reader->info = reader->png != NULL ? png_create_info_struct(reader->png) : NULL;
    KilnStatus status = reader->info != NULL ? decode(reader, image, err)
                                             : kiln_error_nomem(err, sizeof(*reader));
    png_destroy_read_struct(&reader->png, &reader->info, NULL);
    free(reader->rows);
    free(reader->line);
    free(reader->scaled);
    kiln_scaler_release(&reader->scaler);
    fclose(reader->file);
    return status;
}

static KilnStatus check_channels(const Reader *reader, KilnError *err)
{
    const int64_t channels = reader->form->channels;

    return channels == 1 || channels == 3
               ? KILN_OK
               : kiln_error_set(err, KILN_E_RANGE, "%s: asked for %lld channels, expected 1 or 3",
                                reader->path, (long long)channels);
}

KilnStatus kiln_image_read_png(const char *path, const KilnPngForm *form, KilnImage *image,
                               KilnError *err)
{
    Reader reader = { .path = path, .form = form };
    unsigned char head[HEADER_SIZE];
    KilnStatus status = check_channels(&reader, err);

    if (status >= 0)
        status = open_png(path, &reader.file, &reader.file_size, head, err);
    return status >= 0 ? read_open(&reader, image, err) : status;
}

KilnStatus kiln_image_read_png_bytes(const void *data, size_t size, const char *name,
                                     const KilnPngForm *form, KilnImage *image, KilnError *err)
{
    Reader reader = { .path = name, .form = form, .file_size = (int64_t)size };
    KilnStatus status = check_channels(&reader, err);

    if (status >= 0)
        status = check_header(name, data, size, err);
    if (status < 0)
        return status;
    reader.file = fmemopen((void *)data, size, "rb");
    return reader.file != NULL ? read_open(&reader, image, err) : kiln_error_nomem(err, size);
}

/* ---- Writing -------------------------------------------------------------------- */

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
