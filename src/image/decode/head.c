/* Which format a file has, by its first bytes, and how large its image is. */
#include "image/decode/image_formats.h"

#include <string.h>

typedef struct Signature {
    const char *bytes;
    size_t size, at;
} Signature;

static bool begins(const KilnImageBytes *bytes, Signature signature)
{
    return bytes->size >= signature.at + signature.size &&
           memcmp(bytes->data + signature.at, signature.bytes, signature.size) == 0;
}

static const Signature png = { "\x89PNG\r\n\x1a\n", 8, 0 };
static const Signature jpeg = { "\xff\xd8", 2, 0 };
static const Signature riff = { "RIFF", 4, 0 }, webp = { "WEBP", 4, 8 };

/* Says what the first bytes look like. */
static KilnStatus refuse(const KilnImageBytes *bytes, KilnError *err)
{
    static const struct {
        Signature signature;
        const char *name;
    } others[] = {
        { { "GIF8", 4, 0 }, "a GIF" },         { { "BM", 2, 0 }, "a BMP" },
        { { "II*\0", 4, 0 }, "a TIFF" },       { { "MM\0*", 4, 0 }, "a TIFF" },
        { { "ftypavif", 8, 4 }, "an AVIF" },   { { "ftyphei", 7, 4 }, "a HEIC" },
        { { "\xff\x0a", 2, 0 }, "a JPEG XL" }, { { "jP  ", 4, 4 }, "a JPEG 2000" },
    };
    char begin[17] = { 0 };

    if (bytes->size == 0)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: the file is empty; expected a PNG, JPEG or WebP image",
                              bytes->name);
    for (size_t i = 0; i < KILN_COUNT(others); i++)
        if (begins(bytes, others[i].signature))
            return kiln_error_set(err, KILN_E_FORMAT,
                                  "%s: looks like %s image; expected a PNG, JPEG or WebP: convert "
                                  "it",
                                  bytes->name, others[i].name);
    for (size_t i = 0; i < sizeof(begin) - 1 && i < bytes->size; i++) {
        const char c = (char)bytes->data[i];

        begin[i] = c >= ' ' && c < 127 ? c : '.';
    }
    return kiln_error_set(err, KILN_E_FORMAT,
                          "%s: not an image: it begins with \"%s\", expected the signature of a "
                          "PNG, JPEG or WebP",
                          bytes->name, begin);
}

static KilnStatus check_size(const char *name, const KilnImageHead *head, int64_t max_pixels,
                             KilnError *err)
{
    static const char *const formats[] = { "PNG", "JPEG", "WebP" };
    const int64_t most = max_pixels > 0 ? max_pixels : KILN_IMAGE_MAX_PIXELS;

    if (head->height < 1 || head->width < 1)
        return kiln_error_set(err, KILN_E_FORMAT, "%s: damaged %s: an image of %lld x %lld pixels",
                              name, formats[head->format], (long long)head->height,
                              (long long)head->width);
    if (head->height > most / head->width)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: an image of %lld x %lld pixels; at most %lld in all are read%s",
                              name, (long long)head->height, (long long)head->width,
                              (long long)most, max_pixels > 0 ? " (datamodule.max_pixels)" : "");
    return KILN_OK;
}

KilnStatus kiln_image_head(const KilnImageBytes *bytes, int64_t max_pixels, KilnImageHead *ret,
                           KilnError *err)
{
    const bool cut_png = bytes->size > 0 && bytes->size < png.size &&
                         memcmp(bytes->data, png.bytes, bytes->size) == 0;
    KilnImageHead head = { 0 };
    KilnStatus status;

    if (cut_png || begins(bytes, png))
        status = kiln_png_head(bytes, &head, err);
    else if (begins(bytes, jpeg))
        status = kiln_jpeg_head(bytes, &head, err);
    else if (begins(bytes, riff) && begins(bytes, webp))
        status = kiln_webp_head(bytes, &head, err);
    else
        status = refuse(bytes, err);
    if (status >= 0)
        status = check_size(bytes->name, &head, max_pixels, err);
    if (status >= 0)
        *ret = head;
    return status;
}
