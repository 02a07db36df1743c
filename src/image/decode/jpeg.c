/* Reading JPEG files: baseline and progressive, with Huffman or arithmetic coding, grey, YCbCr,
 * RGB, CMYK and YCCK.
 *
 * libjpeg reports errors by longjmp. Everything that must survive one lives in the Reader struct of
 * a caller that does not jump itself; the functions with setjmp in them change no local variable
 * after it. */
#include "image/decode/image_formats.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h> /* first: the next one depends on it */

#include <jerror.h>

#include "image/decode/row_sink.h"

typedef struct Reader {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf jump;
    const KilnImageBytes *bytes;
    const KilnImagePart *part;
    KilnRowSink sink;
    JDIMENSION first, columns; /* of the image that libjpeg decodes */
    uint8_t *row;
    char message[JMSG_LENGTH_MAX];
} Reader;

/* ---- The header ------------------------------------------------------------------------------ */

static size_t big_endian16(const uint8_t *p)
{
    return (size_t)p[0] << 8 | p[1];
}

static bool is_frame(uint8_t marker)
{
    return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

/* Lossless, hierarchical and 12-bit files are another matter than photos. */
static KilnStatus check_frame(const KilnImageBytes *bytes, uint8_t marker, const uint8_t *frame,
                              KilnError *err)
{
    if (marker == 0xc3 || (marker >= 0xc5 && marker <= 0xc7) || marker >= 0xcb)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: a lossless or hierarchical JPEG (SOF%d); baseline and "
                              "progressive ones are read: convert it",
                              bytes->name, marker - 0xc0);
    if (frame[0] != 8)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: a JPEG of %d bits per sample; those of 8 are read: convert it",
                              bytes->name, frame[0]);
    return KILN_OK;
}

KilnStatus kiln_jpeg_head(const KilnImageBytes *bytes, KilnImageHead *ret, KilnError *err)
{
    const uint8_t *data = bytes->data;
    size_t at = 2;

    *ret = (KilnImageHead) { .format = KILN_FORMAT_JPEG, .orientation = 1 };
    while (at + 4 <= bytes->size && data[at] == 0xff) {
        const uint8_t marker = data[at + 1], *body = data + at + 4;

        if (marker == 0xff || marker == 0x01 || (marker >= 0xd0 && marker <= 0xd7)) {
            at += marker == 0xff ? 1 : 2; /* fill bytes, and markers without a length */
            continue;
        }
        const size_t length = big_endian16(data + at + 2);
        if (length < 2 || length > bytes->size - at - 2 || marker == 0xda || marker == 0xd9)
            break;
        if (marker == 0xe1 && length >= 8 && memcmp(body, "Exif\0\0", 6) == 0)
            ret->orientation = kiln_exif_orientation(body + 6, length - 8);
        if (is_frame(marker) && length >= 8) {
            ret->height = (int64_t)big_endian16(body + 1);
            ret->width = (int64_t)big_endian16(body + 3);
            ret->channels = body[5] == 1 ? 1 : 3;
            return check_frame(bytes, marker, body, err);
        }
        at += 2 + length;
    }
    return kiln_error_set(err, KILN_E_FORMAT, "%s: damaged JPEG: no frame header", bytes->name);
}

/* ---- libjpeg's callbacks --------------------------------------------------------------------- */

static void on_error(j_common_ptr jpeg)
{
    Reader *reader = jpeg->client_data;

    jpeg->err->format_message(jpeg, reader->message);
    longjmp(reader->jump, 1);
}

/* Whether a warning means that pixels are lost. Others are harmless: stray bytes between segments,
 * Adobe's marker of an unknown kind. */
static bool is_loss(int code)
{
#ifdef D_ARITH_CODING_SUPPORTED
    if (code == JWRN_ARITH_BAD_CODE)
        return true;
#endif
    return code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE ||
           code == JWRN_MUST_RESYNC || code == JWRN_NOT_SEQUENTIAL;
}

static void on_message(j_common_ptr jpeg, int level)
{
    if (level < 0 && is_loss(jpeg->err->msg_code))
        on_error(jpeg);
}

/* A small file may repeat its scans very often. */
static void on_progress(j_common_ptr jpeg)
{
    enum { MOST_SCANS = 500 };
    Reader *reader = jpeg->client_data;

    if (jpeg->is_decompressor && ((j_decompress_ptr)jpeg)->input_scan_number > MOST_SCANS) {
        snprintf(reader->message, sizeof(reader->message), "more than %d scans", MOST_SCANS);
        longjmp(reader->jump, 1);
    }
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* How much smaller it is decoded (1, 2, 4 or 8): every pixel of the result is then still made of
 * two or more in each direction, as in Pillow's thumbnails. */
static int64_t shrink_for(const KilnImageWindow *window)
{
    int64_t shrink = 1;

    while (window->filter != KILN_FILTER_NEAREST && shrink < 8 &&
           window->height >= 4 * shrink * window->to_height &&
           window->width >= 4 * shrink * window->to_width)
        shrink *= 2;
    return shrink;
}

static bool read_header(Reader *reader)
{
    struct jpeg_decompress_struct *jpeg = &reader->jpeg;

    if (setjmp(reader->jump) != 0)
        return false;
    jpeg_create_decompress(jpeg);
    jpeg->progress = &reader->progress;
    jpeg_mem_src(jpeg, reader->bytes->data, reader->bytes->size);
    jpeg_read_header(jpeg, TRUE);
    return true;
}

/* Nothing may follow the pixels but the end marker; where it is missing the file was cut off. What
 * looks like one inside of the pixels is escaped. */
static bool has_end(const Reader *reader)
{
    const uint8_t *data = reader->bytes->data, *scan = reader->jpeg.src->next_input_byte;

    for (size_t at = reader->bytes->size; at >= 2 && data + at - 2 >= scan; at--)
        if (data[at - 2] == 0xff && data[at - 1] == JPEG_EOI)
            return true;
    return false;
}

/* Huffman codes need a bit at least for each block of 64 pixels. */
static KilnStatus check_plausible(const Reader *reader, KilnError *err)
{
    const KilnImageHead *head = &reader->part->head;
    const struct jpeg_decompress_struct *jpeg = &reader->jpeg;

    if (jpeg->image_height != head->height || jpeg->image_width != head->width)
        return kiln_error_set(err, KILN_E_FORMAT, "%s: damaged JPEG: two frame headers",
                              reader->bytes->name);
    if (!jpeg->arith_code && head->height * head->width / 512 > (int64_t)reader->bytes->size)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: damaged JPEG: %zu bytes can't hold the %lld x %lld pixels that "
                              "its header announces",
                              reader->bytes->name, reader->bytes->size, (long long)head->height,
                              (long long)head->width);
    return KILN_OK;
}

static bool start(Reader *reader, int64_t shrink)
{
    struct jpeg_decompress_struct *jpeg = &reader->jpeg;

    if (setjmp(reader->jump) != 0)
        return false;
    const bool grey = jpeg->jpeg_color_space == JCS_GRAYSCALE ||
                      (jpeg->jpeg_color_space == JCS_YCbCr && reader->part->channels == 1);
    const bool inks = jpeg->jpeg_color_space == JCS_CMYK || jpeg->jpeg_color_space == JCS_YCCK;
    jpeg->out_color_space = grey ? JCS_GRAYSCALE : inks ? JCS_CMYK : JCS_RGB;
    jpeg->scale_num = 1;
    jpeg->scale_denom = (unsigned)shrink;
    jpeg_start_decompress(jpeg);
    return true;
}

/* Only the blocks of the wanted columns, and one more on either side, whose colours the smoothing
 * of the colour channels needs. */
static void select_columns(Reader *reader)
{
    struct jpeg_decompress_struct *jpeg = &reader->jpeg;
    enum { MARGIN = 64 };
    const int64_t left = reader->sink.rows.left, right = left + reader->sink.rows.width;
    const int64_t last = right + MARGIN;

    reader->first = left > MARGIN ? (JDIMENSION)(left - MARGIN) : 0;
    reader->columns = last < jpeg->output_width ? (JDIMENSION)last - reader->first
                                                : jpeg->output_width - reader->first;
    if (reader->columns < jpeg->output_width)
        jpeg_crop_scanline(jpeg, &reader->first, &reader->columns);
}

/* Inks as Adobe stores them, inverted, which every program takes all such files for: Pillow too. */
static void inks_to_rgb(uint8_t *row, int64_t width)
{
    for (int64_t x = 0; x < width; x++)
        for (int c = 0; c < 3; c++)
            row[3 * x + c] = (uint8_t)((row[4 * x + c] * row[4 * x + 3] + 127) / 255);
}

/* The rows below the part are not decoded. */
static bool read_rows(Reader *reader)
{
    struct jpeg_decompress_struct *jpeg = &reader->jpeg;
    const KilnRect *rows = &reader->sink.rows;
    const bool inks = jpeg->out_color_space == JCS_CMYK;

    if (setjmp(reader->jump) != 0)
        return false;
    select_columns(reader);
    if (rows->top > 0)
        jpeg_skip_scanlines(jpeg, (JDIMENSION)rows->top);
    for (int64_t y = 0; y < rows->height; y++) {
        jpeg_read_scanlines(jpeg, &reader->row, 1);
        uint8_t *from = reader->row + (rows->left - reader->first) * jpeg->output_components;
        if (inks)
            inks_to_rgb(from, rows->width);
        kiln_row_sink_add(&reader->sink, from, inks ? 3 : jpeg->output_components);
    }
    return true;
}

static KilnStatus damaged(const Reader *reader, const char *why, KilnError *err)
{
    return kiln_error_set(err, KILN_E_FORMAT, "%s: damaged JPEG: %s", reader->bytes->name, why);
}

static KilnStatus decode(Reader *reader, KilnImage *image, KilnError *err)
{
    const KilnImagePart *part = reader->part;
    const int64_t shrink = shrink_for(&part->window);

    if (!read_header(reader))
        return damaged(reader, reader->message, err);
    KilnStatus status = check_plausible(reader, err);
    if (status < 0)
        return status;
    if (!has_end(reader))
        return damaged(reader, "the file ends before the image does", err);
    if (!start(reader, shrink))
        return damaged(reader, reader->message, err);
    const int64_t size[2] = { reader->jpeg.output_height, reader->jpeg.output_width };
    status = kiln_row_sink_init(&reader->sink, &part->window, size, shrink, part->channels, image,
                                err);
    if (status < 0)
        return status;
    reader->row = malloc((size_t)size[1] * 4);
    if (reader->row == NULL)
        return kiln_error_nomem(err, (size_t)size[1] * 4);
    return read_rows(reader) ? KILN_OK : damaged(reader, reader->message, err);
}

KilnStatus kiln_jpeg_decode(const KilnImageBytes *bytes, const KilnImagePart *part,
                            KilnImage *image, KilnError *err)
{
    Reader reader = { .bytes = bytes, .part = part };

    reader.jpeg.err = jpeg_std_error(&reader.errors);
    reader.jpeg.client_data = &reader;
    reader.errors.error_exit = on_error;
    reader.errors.emit_message = on_message;
    reader.progress.progress_monitor = on_progress;
    KilnStatus status = decode(&reader, image, err);
    jpeg_destroy_decompress(&reader.jpeg);
    free(reader.row);
    kiln_row_sink_release(&reader.sink);
    return status;
}
