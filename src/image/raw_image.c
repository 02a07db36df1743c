/* Images from raw values: files, their bytes, and arrays of pixels. */
#include "kiln/image.h"

#include <math.h>

#include "image/decode/row_sink.h"

static const char *const endings[] = { ".png", ".jpg", ".jpeg", ".webp", NULL };

const KilnRawField kiln_raw_image = {
    .name = "image",
    .types = KILN_RAW_PATH | KILN_RAW_BYTES | KILN_RAW_ARRAY,
    .help = "a PNG, JPEG or WebP file, or pixels [height, width, channels], u8 of 0 to 255 or f32 "
            "of 0 to 1",
    .endings = endings,
};

static KilnStatus check_array(const KilnRawValue *value, int64_t max_pixels, KilnError *err)
{
    const KilnShape *shape = &value->shape;
    const int64_t most = max_pixels > 0 ? max_pixels : KILN_IMAGE_MAX_PIXELS;
    char text[KILN_SHAPE_TEXT];

    kiln_shape_text(shape, text, sizeof(text));
    if ((value->dtype != KILN_U8 && value->dtype != KILN_F32) ||
        (shape->rank != 2 && shape->rank != 3) || (shape->rank == 3 && shape->dim[2] > 4) ||
        kiln_shape_count(shape) < 1)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "%s: an array %s %s is no image; expected [height, width, channels] "
                              "with 1 to 4 channels, u8 of 0 to 255 or f32 of 0 to 1",
                              value->name, kiln_dtype_name(value->dtype), text);
    if (shape->dim[0] > most / shape->dim[1])
        return kiln_error_set(
            err, KILN_E_FORMAT, "%s: an image of %lld x %lld pixels; at most %lld in all are read",
            value->name, (long long)shape->dim[0], (long long)shape->dim[1], (long long)most);
    return KILN_OK;
}

/* Whether row y of an array has numbers alone. */
static bool is_finite(const KilnRawValue *value, int64_t y, int64_t n)
{
    const float *row = (const float *)value->data + y * n;
    bool finite = true;

    for (int64_t i = 0; i < n; i++)
        finite = finite && isfinite(row[i]);
    return finite;
}

static KilnStatus read_rows(const KilnRawValue *value, KilnRowSink *sink, KilnError *err)
{
    const int64_t samples = value->shape.rank == 3 ? value->shape.dim[2] : 1;
    const int64_t n = value->shape.dim[1] * samples;

    for (int64_t y = 0; y < value->shape.dim[0]; y++) {
        if (value->dtype == KILN_F32 && !is_finite(value, y, n))
            return kiln_error_set(err, KILN_E_NUMERIC,
                                  "%s: row %lld of the image has a value that is not a finite "
                                  "number",
                                  value->name, (long long)y);
        if (value->dtype == KILN_U8)
            kiln_row_sink_add(sink, (const uint8_t *)value->data + y * n, samples);
        else
            kiln_row_sink_add_floats(sink, (const float *)value->data + y * n, samples);
    }
    return KILN_OK;
}

static KilnStatus read_array(const KilnRawValue *value, const KilnPngForm *form, KilnImage *image,
                             KilnError *err)
{
    const int64_t from[2] = { value->shape.dim[0], value->shape.dim[1] };
    const KilnImageWindow window = { .height = from[0],
                                     .width = from[1],
                                     .to_height = form->height > 0 ? form->height : from[0],
                                     .to_width = form->width > 0 ? form->width : from[1] };
    KilnRowSink sink;
    KilnStatus status = kiln_row_sink_init(&sink, &window, from, 1, form->channels, image, err);

    if (status >= 0)
        status = read_rows(value, &sink, err);
    kiln_row_sink_release(&sink);
    return status;
}

KilnStatus kiln_image_read_raw(const KilnRawValue *value, const KilnPngForm *form, KilnImage *image,
                               KilnError *err)
{
    if (value->type == KILN_RAW_PATH)
        return kiln_image_read(value->text, form, image, err);
    if (value->type == KILN_RAW_BYTES)
        return kiln_image_read_bytes(value->data, value->bytes, value->name, form, image, err);
    KilnStatus status = check_array(value, form->max_pixels, err);
    return status >= 0 ? read_array(value, form, image, err) : status;
}
