/* Reading WebP files, lossy and lossless; an optional library. */
#include "image/decode/image_formats.h"

#include <stdlib.h>
#include <string.h>

#include "image/decode/row_sink.h"

#ifdef KILN_WITH_WEBP
#include <webp/decode.h>

/* The orientation in the chunk EXIF of a RIFF file. */
static int find_orientation(const KilnImageBytes *bytes)
{
    size_t at = 12;

    while (bytes->size >= 8 && at <= bytes->size - 8) {
        const uint8_t *chunk = bytes->data + at;
        const size_t size = (size_t)chunk[4] | (size_t)chunk[5] << 8 | (size_t)chunk[6] << 16 |
                            (size_t)chunk[7] << 24;
        const size_t skipped = memcmp(chunk, "EXIF", 4) == 0 && size >= 6 &&
                                       size <= bytes->size - at - 8 &&
                                       memcmp(chunk + 8, "Exif\0\0", 6) == 0
                                   ? 6
                                   : 0;

        if (size > bytes->size - at - 8)
            break;
        if (memcmp(chunk, "EXIF", 4) == 0)
            return kiln_exif_orientation(chunk + 8 + skipped, size - skipped);
        at += 8 + size + (size & 1);
    }
    return 1;
}

KilnStatus kiln_webp_head(const KilnImageBytes *bytes, KilnImageHead *ret, KilnError *err)
{
    WebPBitstreamFeatures found;

    if (WebPGetFeatures(bytes->data, bytes->size, &found) != VP8_STATUS_OK)
        return kiln_error_set(err, KILN_E_FORMAT, "%s: damaged WebP: no valid header", bytes->name);
    if (found.has_animation)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: a WebP animation; expected a single image: convert it",
                              bytes->name);
    *ret = (KilnImageHead) { .format = KILN_FORMAT_WEBP,
                             .height = found.height,
                             .width = found.width,
                             .channels = 3,
                             .orientation = find_orientation(bytes) };
    return KILN_OK;
}

/* The whole image as RGB or RGBA, 8 bits each. */
static KilnStatus decode(const KilnImageBytes *bytes, const KilnImageHead *head, int64_t samples,
                         uint8_t *pixels, KilnError *err)
{
    const int64_t stride = head->width * samples;
    WebPDecoderConfig config;

    if (!WebPInitDecoderConfig(&config))
        return kiln_error_set(err, KILN_E_INTERNAL, "libwebp is of another version");
    config.output.colorspace = samples == 4 ? MODE_RGBA : MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = pixels;
    config.output.u.RGBA.stride = (int)stride;
    config.output.u.RGBA.size = (size_t)(stride * head->height);
    const VP8StatusCode code = WebPDecode(bytes->data, bytes->size, &config);
    WebPFreeDecBuffer(&config.output);
    if (code == VP8_STATUS_OUT_OF_MEMORY)
        return kiln_error_nomem(err, (size_t)(stride * head->height));
    return code == VP8_STATUS_OK
               ? KILN_OK
               : kiln_error_set(err, KILN_E_FORMAT, "%s: damaged WebP: %s", bytes->name,
                                code == VP8_STATUS_NOT_ENOUGH_DATA || code == VP8_STATUS_SUSPENDED
                                    ? "the file ends before the image does"
                                    : "invalid data");
}

KilnStatus kiln_webp_decode(const KilnImageBytes *bytes, const KilnImagePart *part,
                            KilnImage *image, KilnError *err)
{
    const int64_t size[2] = { part->head.height, part->head.width };
    WebPBitstreamFeatures found = { 0 };
    KilnRowSink sink;
    KilnStatus status = kiln_row_sink_init(&sink, &part->window, size, 1, part->channels, image,
                                           err);
    const int64_t samples = WebPGetFeatures(bytes->data, bytes->size, &found) == VP8_STATUS_OK &&
                                    found.has_alpha
                                ? 4
                                : 3;
    const int64_t stride = size[1] * samples;
    uint8_t *pixels = status >= 0 ? malloc((size_t)(stride * size[0])) : NULL;

    if (status >= 0)
        status = pixels != NULL ? decode(bytes, &part->head, samples, pixels, err)
                                : kiln_error_nomem(err, (size_t)(stride * size[0]));
    for (int64_t y = 0; y < sink.rows.height && status >= 0; y++)
        kiln_row_sink_add(&sink, pixels + (sink.rows.top + y) * stride + sink.rows.left * samples,
                          samples);
    free(pixels);
    kiln_row_sink_release(&sink);
    return status;
}

KilnStatus kiln_webp_supported(KilnError *err)
{
    (void)err;
    return KILN_OK;
}

#else

KilnStatus kiln_webp_supported(KilnError *err)
{
    return kiln_error_set(err, KILN_E_MISSING,
                          "this kiln was built without libwebp: install libwebp-dev and build "
                          "again");
}

KilnStatus kiln_webp_head(const KilnImageBytes *bytes, KilnImageHead *ret, KilnError *err)
{
    (void)ret;
    return kiln_error_set(err, KILN_E_FORMAT,
                          "%s: a WebP image, and this kiln was built without libwebp: install "
                          "libwebp-dev and build again, or convert the file",
                          bytes->name);
}

KilnStatus kiln_webp_decode(const KilnImageBytes *bytes, const KilnImagePart *part,
                            KilnImage *image, KilnError *err)
{
    KilnImageHead head;

    (void)part;
    (void)image;
    return kiln_webp_head(bytes, &head, err);
}

#endif
