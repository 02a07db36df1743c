/* Reading PNG files of every kind.
 *
 * libpng reports errors by longjmp. Everything that must survive one lives in the Reader struct of
 * a caller that does not jump itself; the functions with setjmp in them change no local variable
 * after it. */
#include "image/decode/image_formats.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libdeflate.h>
#include <png.h>

#include "image/decode/png_rows.h"
#include "image/decode/row_sink.h"

#define HEADER_SIZE 33 /* signature and the IHDR chunk, which is always first */

typedef struct Reader {
    const KilnImageBytes *bytes;
    const KilnImagePart *part;
    size_t at; /* what libpng has read */
    png_structp png;
    png_infop info;
    png_byte *rows;                 /* one row, or all of them when interlaced */
    size_t row_bytes, stored_bytes; /* of a row: as it is read, and in the file */
    int64_t depth, samples;         /* samples a pixel: 1 to 4, the even ones with alpha */
    int passes;
    KilnRowSink sink;
    char message[256];
} Reader;

/* ---- The header ---------------------------------------------------------------- */

static uint32_t big_endian(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The orientation in a chunk eXIf before the pixels. */
static int find_orientation(const KilnImageBytes *bytes)
{
    size_t at = HEADER_SIZE;

    while (bytes->size - at >= 12) {
        const uint8_t *chunk = bytes->data + at;
        const size_t size = big_endian(chunk);

        if (size > bytes->size - at - 12 || memcmp(chunk + 4, "IDAT", 4) == 0)
            break;
        if (memcmp(chunk + 4, "eXIf", 4) == 0)
            return kiln_exif_orientation(chunk + 8, size);
        at += 12 + size;
    }
    return 1;
}

KilnStatus kiln_png_head(const KilnImageBytes *bytes, KilnImageHead *ret, KilnError *err)
{
    const uint8_t *head = bytes->data;

    if (bytes->size < HEADER_SIZE)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: damaged PNG: the file ends after %zu bytes, inside its header",
                              bytes->name, bytes->size);
    if (big_endian(head + 8) != 13 || memcmp(head + 12, "IHDR", 4) != 0)
        return kiln_error_set(err, KILN_E_FORMAT, "%s: damaged PNG: no IHDR chunk at its start",
                              bytes->name);
    if (libdeflate_crc32(0, head + 12, 17) != big_endian(head + 29))
        return kiln_error_set(err, KILN_E_FORMAT, "%s: damaged PNG: IHDR: CRC error", bytes->name);
    *ret = (KilnImageHead) { .format = KILN_FORMAT_PNG,
                             .height = big_endian(head + 20),
                             .width = big_endian(head + 16),
                             .channels = (head[25] & PNG_COLOR_MASK_COLOR) != 0 ? 3 : 1,
                             .orientation = find_orientation(bytes) };
    return KILN_OK;
}

/* ---- Reading -------------------------------------------------------------------- */

static void on_error(png_structp png, png_const_charp message)
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

    if (size > reader->bytes->size - reader->at)
        png_error(png, "the file ends before the image does");
    memcpy(data, reader->bytes->data + reader->at, size);
    reader->at += size;
}

/* Palette to RGB, 1 to 4 bits to 8, a transparent colour to alpha. */
static bool read_header(Reader *reader)
{
    if (setjmp(png_jmpbuf(reader->png)) != 0)
        return false;
    png_set_read_fn(reader->png, reader, on_read);
    png_set_user_limits(reader->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_read_info(reader->png, reader->info);
    reader->stored_bytes = png_get_rowbytes(reader->png, reader->info);
    png_set_expand(reader->png);
    reader->passes = png_set_interlace_handling(reader->png);
    png_read_update_info(reader->png, reader->info);
    reader->row_bytes = png_get_rowbytes(reader->png, reader->info);
    reader->depth = png_get_bit_depth(reader->png, reader->info);
    reader->samples = png_get_channels(reader->png, reader->info);
    return true;
}

/* Give row y of the image to the sink, if it is one of its rows. */
static void take_row(Reader *reader, int64_t y, const png_byte *row)
{
    const KilnRect *rows = &reader->sink.rows;
    const png_byte *from = row + rows->left * reader->samples * (reader->depth / 8);

    if (y < rows->top || y >= rows->top + rows->height)
        return;
    if (reader->depth == 16)
        kiln_row_sink_add16(&reader->sink, from, reader->samples);
    else
        kiln_row_sink_add(&reader->sink, from, reader->samples);
}

/* Rows below the part are not decoded, except of interlaced files; then the end is not checked. */
static bool read_rows(Reader *reader)
{
    const KilnRect *rows = &reader->sink.rows;
    const int64_t height = reader->part->head.height;
    const bool interlaced = reader->passes > 1;

    if (setjmp(png_jmpbuf(reader->png)) != 0)
        return false;
    for (int pass = 0; pass < reader->passes; pass++)
        for (int64_t y = 0; y < (interlaced ? height : rows->top + rows->height); y++) {
            png_byte *row = reader->rows + (interlaced ? (size_t)y * reader->row_bytes : 0);

            png_read_row(reader->png, row, NULL);
            if (pass == reader->passes - 1)
                take_row(reader, y, row);
        }
    if (rows->top + rows->height == height)
        png_read_end(reader->png, NULL);
    return true;
}

/* Deflate shrinks by less than 1040: a file that is too small for the size in
 * its header is refused before memory is taken for it. */
static KilnStatus check_plausible(const Reader *reader, KilnError *err)
{
    const KilnImageHead *head = &reader->part->head;

    if ((int64_t)reader->stored_bytes / 1040 * head->height > (int64_t)reader->bytes->size)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: damaged PNG: %zu bytes can't hold the %lld x %lld pixels that "
                              "its header announces",
                              reader->bytes->name, reader->bytes->size, (long long)head->height,
                              (long long)head->width);
    return KILN_OK;
}

/* Chunks one after the other up to IEND: what is cut off is found also where only the upper rows of
 * an image are decoded. */
static bool is_whole(const KilnImageBytes *bytes)
{
    for (size_t at = 8; bytes->size - at >= 12;) {
        const uint8_t *chunk = bytes->data + at;
        const size_t size = big_endian(chunk);

        if (size > bytes->size - at - 12)
            return false;
        if (memcmp(chunk + 4, "IEND", 4) == 0)
            return true;
        at += 12 + size;
    }
    return false;
}

static KilnStatus damaged(const Reader *reader, const char *why, KilnError *err)
{
    return kiln_error_set(err, KILN_E_FORMAT, "%s: damaged PNG: %s", reader->bytes->name, why);
}

static KilnStatus decode(Reader *reader, KilnImage *image, KilnError *err)
{
    const KilnImagePart *part = reader->part;
    const int64_t size[2] = { part->head.height, part->head.width };

    /* First: libpng allocates what a chunk says of its size. */
    if (!is_whole(reader->bytes))
        return damaged(reader, "the file ends before the image does", err);
    if (!read_header(reader))
        return damaged(reader, reader->message, err);
    KilnStatus status = check_plausible(reader, err);
    if (status < 0)
        return status;
    status = kiln_row_sink_init(&reader->sink, &part->window, size, 1, part->channels, image, err);
    if (status < 0)
        return status;
    const size_t kept = reader->passes > 1 ? (size_t)part->head.height : 1;
    reader->rows = malloc(reader->row_bytes * kept);
    if (reader->rows == NULL)
        return kiln_error_nomem(err, reader->row_bytes * kept);
    return read_rows(reader) ? KILN_OK : damaged(reader, reader->message, err);
}

/* Decode a common file without libpng. *ret_done: it is one, and whole. */
static KilnStatus decode_common(const KilnImageBytes *bytes, const KilnImagePart *part,
                                KilnImage *image, bool *ret_done, KilnError *err)
{
    const int64_t size[2] = { part->head.height, part->head.width };
    KilnRowSink sink;
    KilnPngRows rows = { 0 };
    KilnStatus status = kiln_row_sink_init(&sink, &part->window, size, 1, part->channels, image,
                                           err);

    *ret_done = status >= 0 &&
                kiln_png_rows_read(bytes, &part->head, sink.rows.top + sink.rows.height, &rows);
    for (int64_t i = 0; i < sink.rows.height && *ret_done; i++)
        kiln_row_sink_add(&sink,
                          rows.data + (size_t)(sink.rows.top + i) * rows.stride +
                              sink.rows.left * rows.samples,
                          rows.samples);
    kiln_png_rows_release(&rows);
    kiln_row_sink_release(&sink);
    return status;
}

KilnStatus kiln_png_decode(const KilnImageBytes *bytes, const KilnImagePart *part, KilnImage *image,
                           KilnError *err)
{
    Reader reader = { .bytes = bytes, .part = part };
    bool done = false;

    if (kiln_png_is_common(bytes, &part->head) && is_whole(bytes)) {
        KilnStatus status = decode_common(bytes, part, image, &done, err);

        if (done || status < 0)
            return status;
    }
    reader.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, on_error, on_warning);
    reader.info = reader.png != NULL ? png_create_info_struct(reader.png) : NULL;
    KilnStatus status = reader.info != NULL ? decode(&reader, image, err)
                                            : kiln_error_nomem(err, sizeof(reader));
    png_destroy_read_struct(&reader.png, &reader.info, NULL);
    free(reader.rows);
    kiln_row_sink_release(&reader.sink);
    return status;
}
