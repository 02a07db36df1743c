/* Image files of any format to images: the file into memory, its header, the part that is wanted,
 * the decoder, and turning the result upright. */
#include "image/read.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/system/file.h"
#include "image/decode/image_formats.h"

enum { BEGINNING = 1 << 16 }; /* bytes with the header of almost any file */
#define MOST_BYTES ((size_t)1 << 31)

/* ---- Orientation ------------------------------------------------------------------------------
 */

/* What is upright is the stored image after that. */
typedef struct Turn {
    bool transposed, flips_rows, flips_columns; /* of the stored image */
} Turn;

static Turn turn_of(int orientation)
{
    const int o = orientation;

    return (Turn) { .transposed = o >= 5,
                    .flips_rows = o == 3 || o == 4 || o == 6 || o == 7,
                    .flips_columns = o == 2 || o == 3 || o == 7 || o == 8 };
}

/* A window of the upright image in stored pixels. */
static KilnImageWindow stored_window(const KilnImageHead *head, const KilnImageWindow *window)
{
    const Turn turn = turn_of(head->orientation);
    KilnImageWindow to = *window;

    if (turn.transposed)
        to = (KilnImageWindow) { .top = window->left,
                                 .left = window->top,
                                 .height = window->width,
                                 .width = window->height,
                                 .to_height = window->to_width,
                                 .to_width = window->to_height,
                                 .filter = window->filter };
    if (turn.flips_rows)
        to.top = head->height - to.top - to.height;
    if (turn.flips_columns)
        to.left = head->width - to.left - to.width;
    return to;
}

int64_t kiln_image_stored_pixel(int orientation, int64_t height, int64_t width, int64_t y,
                                int64_t x)
{
    const Turn turn = turn_of(orientation);
    const int64_t row = turn.transposed ? x : y, column = turn.transposed ? y : x;

    return (turn.flips_rows ? height - 1 - row : row) * width +
           (turn.flips_columns ? width - 1 - column : column);
}

/* Turn the decoded image upright. */
static KilnStatus turn_upright(int orientation, KilnImage *image, KilnError *err)
{
    const Turn turn = turn_of(orientation);
    const int64_t height = image->height, width = image->width, channels = image->channels;
    KilnImage to = { 0 };

    if (orientation == 1)
        return KILN_OK;
    KilnStatus status = kiln_image_resize_buffer(&to, turn.transposed ? width : height,
                                                 turn.transposed ? height : width, channels, err);
    if (status < 0)
        return status;
    float *pixel = to.data;
    for (int64_t y = 0; y < to.height; y++)
        for (int64_t x = 0; x < to.width; x++) {
            const int64_t at = kiln_image_stored_pixel(orientation, height, width, y, x);

            for (int64_t i = 0; i < channels; i++)
                *pixel++ = image->data[at * channels + i];
        }
    kiln_image_release(image);
    *image = to;
    return KILN_OK;
}

void kiln_image_upright_size(const KilnImageHead *head, int64_t channels, int64_t ret[3])
{
    const bool transposed = turn_of(head->orientation).transposed;

    ret[0] = transposed ? head->width : head->height;
    ret[1] = transposed ? head->height : head->width;
    ret[2] = channels;
}

/* ---- Reading ----------------------------------------------------------------------------------
 */

/* All of an image, scaled as a form says. */
static KilnStatus whole_window(void *ctx, const int64_t size[3], KilnImageWindow *ret,
                               KilnError *err)
{
    const KilnPngForm *form = ctx;

    (void)err;
    *ret = (KilnImageWindow) { .height = size[0],
                               .width = size[1],
                               .to_height = form->height > 0 ? form->height : size[0],
                               .to_width = form->width > 0 ? form->width : size[1] };
    return KILN_OK;
}

static KilnStatus read_part(const KilnImageBytes *bytes, const KilnPngForm *form,
                            const KilnImageSelect *select, KilnImage *image, KilnError *err)
{
    KilnImagePart part = { .channels = form->channels };
    KilnImageWindow window = { 0 };
    KilnStatus status = kiln_image_head(bytes, form->max_pixels, &part.head, err);
    int64_t size[3];

    if (status < 0)
        return status;
    kiln_image_upright_size(&part.head, form->channels, size);
    status = select->window(select->ctx, size, &window, err);
    if (status < 0)
        return status;
    part.window = stored_window(&part.head, &window);
    switch (part.head.format) {
    case KILN_FORMAT_PNG:
        status = kiln_png_decode(bytes, &part, image, err);
        break;
    case KILN_FORMAT_JPEG:
        status = kiln_jpeg_decode(bytes, &part, image, err);
        break;
    case KILN_FORMAT_WEBP:
        status = kiln_webp_decode(bytes, &part, image, err);
        break;
    }
    return status >= 0 ? turn_upright(part.head.orientation, image, err) : status;
}

static KilnStatus check_channels(const char *name, int64_t channels, KilnError *err)
{
    return channels == 1 || channels == 3
               ? KILN_OK
               : kiln_error_set(err, KILN_E_RANGE, "%s: asked for %lld channels, expected 1 or 3",
                                name, (long long)channels);
}

KilnStatus kiln_image_read_part(const KilnRawValue *value, const KilnPngForm *form,
                                const KilnImageSelect *select, KilnImage *image, KilnError *err)
{
    const bool is_path = value->type == KILN_RAW_PATH;
    const char *name = is_path ? value->text : value->name;
    char *data = NULL;
    size_t size = value->bytes;
    KilnStatus status = check_channels(name, form->channels, err);

    if (status >= 0 && is_path)
        status = kiln_file_read(name, MOST_BYTES, &data, &size, err);
    if (status >= 0)
        status = read_part(&(KilnImageBytes) { .name = name,
                                               .data = is_path ? (uint8_t *)data : value->data,
                                               .size = size },
                           form, select, image, err);
    free(data);
    return status;
}

static KilnStatus read_whole(const KilnRawValue *value, const KilnPngForm *form, KilnImage *image,
                             KilnError *err)
{
    KilnPngForm whole = *form;
    const KilnImageSelect select = { .window = whole_window, .ctx = &whole };

    return kiln_image_read_part(value, form, &select, image, err);
}

KilnStatus kiln_image_read(const char *path, const KilnPngForm *form, KilnImage *image,
                           KilnError *err)
{
    return read_whole(&(KilnRawValue) { .type = KILN_RAW_PATH, .text = path }, form, image, err);
}

KilnStatus kiln_image_read_bytes(const void *data, size_t size, const char *name,
                                 const KilnPngForm *form, KilnImage *image, KilnError *err)
{
    return read_whole(
        &(KilnRawValue) { .type = KILN_RAW_BYTES, .name = name, .data = data, .bytes = size }, form,
        image, err);
}

/* ---- The size ---------------------------------------------------------------------------------
 */

KilnStatus kiln_image_size_bytes(const void *data, size_t size, const char *name,
                                 int64_t max_pixels, int64_t ret[3], KilnError *err)
{
    const KilnImageBytes bytes = { .name = name, .data = data, .size = size };
    KilnImageHead head;
    KilnStatus status = kiln_image_head(&bytes, max_pixels, &head, err);

    if (status >= 0)
        kiln_image_upright_size(&head, head.channels, ret);
    return status;
}

/* Read the first bytes of a file to data[BEGINNING]; *ret_whole: these are all. */
static KilnStatus read_beginning(const char *path, uint8_t *data, size_t *ret_size, bool *ret_whole,
                                 KilnError *err)
{
    size_t size = 0;
    ssize_t got = 1;
    int fd;
    KilnStatus status = kiln_file_open_regular(path, &fd, err);

    if (status < 0)
        return status;
    while (got > 0 && size < BEGINNING) {
        do
            got = read(fd, data + size, BEGINNING - size);
        while (got < 0 && errno == EINTR);
        size += got > 0 ? (size_t)got : 0;
    }
    if (got < 0)
        status = kiln_error_errno(err, path);
    close(fd);
    *ret_size = size;
    *ret_whole = got == 0;
    return status;
}

KilnStatus kiln_image_file_head(const char *path, int64_t max_pixels, KilnImageHead *ret,
                                KilnError *err)
{
    uint8_t beginning[BEGINNING];
    char *data = NULL;
    size_t size = 0;
    bool whole = false;
    KilnStatus status = read_beginning(path, beginning, &size, &whole, err);

    if (status >= 0)
        status = kiln_image_head(&(KilnImageBytes) { path, beginning, size }, max_pixels, ret, err);
    if (status != KILN_E_FORMAT || whole)
        return status;
    /* Much may stand before a JPEG's frame: a preview, a color profile. */
    status = kiln_file_read(path, MOST_BYTES, &data, &size, err);
    if (status >= 0)
        status = kiln_image_head(&(KilnImageBytes) { path, (uint8_t *)data, size }, max_pixels, ret,
                                 err);
    free(data);
    return status;
}

KilnStatus kiln_image_size(const char *path, int64_t max_pixels, int64_t ret[3], KilnError *err)
{
    KilnImageHead head;
    KilnStatus status = kiln_image_file_head(path, max_pixels, &head, err);

    if (status >= 0)
        kiln_image_upright_size(&head, head.channels, ret);
    return status;
}

/* ---- Former names -----------------------------------------------------------------------------
 */

KilnStatus kiln_image_read_png(const char *path, const KilnPngForm *form, KilnImage *image,
                               KilnError *err)
{
    return kiln_image_read(path, form, image, err);
}

KilnStatus kiln_image_read_png_bytes(const void *data, size_t size, const char *name,
                                     const KilnPngForm *form, KilnImage *image, KilnError *err)
{
    return kiln_image_read_bytes(data, size, name, form, image, err);
}

KilnStatus kiln_image_png_size(const char *path, int64_t max_pixels, int64_t ret[3], KilnError *err)
{
    return kiln_image_size(path, max_pixels, ret, err);
}
