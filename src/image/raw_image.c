/* Images from raw values: PNG files, their bytes, and arrays of pixels. */
#include "kiln/image.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "image/pixels.h"
#include "image/scale.h"

static const char *const endings[] = { ".png", NULL };

const KilnRawField kiln_raw_image = {
    .name = "image",
    .types = KILN_RAW_PATH | KILN_RAW_BYTES | KILN_RAW_ARRAY,
    .help = "a PNG file, or pixels [height, width, channels], u8 of 0 to 255 or f32 of 0 to 1",
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

/* Row y of an array as floats; false: one is not finite. */
static bool take_row(const KilnRawValue *value, int64_t y, int64_t n, float *line)
{
    bool finite = true;

    if (value->dtype == KILN_U8) {
        const uint8_t *row = (const uint8_t *)value->data + y * n;

        for (int64_t i = 0; i < n; i++)
            line[i] = (float)row[i] / 255.0f;
        return true;
    }
    memcpy(line, (const float *)value->data + y * n, (size_t)n * sizeof(*line));
    for (int64_t i = 0; i < n; i++)
        finite = finite && isfinite(line[i]);
    return finite;
}

/* What reading an array works with. */
typedef struct Rows {
    float *line, *converted;
    bool scales;
    KilnScaler scaler;
} Rows;

static KilnStatus read_rows(const KilnRawValue *value, Rows *rows, KilnImage *image, KilnError *err)
{
    const int64_t width = value->shape.dim[1];
    const int64_t samples = value->shape.rank == 3 ? value->shape.dim[2] : 1;

    for (int64_t y = 0; y < value->shape.dim[0]; y++) {
        float *to = rows->scales ? rows->converted : image->data + y * width * image->channels;

        if (!take_row(value, y, width * samples, rows->line))
            return kiln_error_set(err, KILN_E_NUMERIC,
                                  "%s: row %lld of the image has a value that is not a finite "
                                  "number",
                                  value->name, (long long)y);
        kiln_pixels_convert(rows->line, width, samples, image->channels, to);
        if (rows->scales)
            kiln_scaler_add(&rows->scaler, to);
    }
    return KILN_OK;
}

static KilnStatus read_array(const KilnRawValue *value, const KilnPngForm *form, KilnImage *image,
                             KilnError *err)
{
    const int64_t from[2] = { value->shape.dim[0], value->shape.dim[1] };
    const int64_t height = form->height > 0 ? form->height : from[0];
    const int64_t width = form->width > 0 ? form->width : from[1];
    Rows rows = { .scales = height != from[0] || width != from[1] };
    KilnStatus status = kiln_image_resize_buffer(image, height, width, form->channels, err);

    if (status < 0)
        return status;
    rows.line = malloc((size_t)from[1] * 4 * sizeof(*rows.line));
    rows.converted = malloc((size_t)from[1] * 3 * sizeof(*rows.converted));
    if (rows.line == NULL || rows.converted == NULL)
        status = kiln_error_nomem(err, (size_t)from[1] * 4 * sizeof(*rows.line));
    if (status >= 0 && rows.scales)
        status = kiln_scaler_init(&rows.scaler, from[0], from[1], image, err);
    if (status >= 0)
        status = read_rows(value, &rows, image, err);
    kiln_scaler_release(&rows.scaler);
    free(rows.line);
    free(rows.converted);
    return status;
}

KilnStatus kiln_image_read_raw(const KilnRawValue *value, const KilnPngForm *form, KilnImage *image,
                               KilnError *err)
{
    if (value->type == KILN_RAW_PATH)
        return kiln_image_read_png(value->text, form, image, err);
    if (value->type == KILN_RAW_BYTES)
        return kiln_image_read_png_bytes(value->data, value->bytes, value->name, form, image, err);
    KilnStatus status = check_array(value, form->max_pixels, err);
    return status >= 0 ? read_array(value, form, image, err) : status;
}
