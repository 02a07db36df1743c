/* Images of text lines (kiln/images/line_images.h). */
#include "kiln/images/line_images.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_WIDTH = 4 };

static const char characters_file[] = "characters.txt"; /* in a checkpoint */

/* ---- Characters ------------------------------------------------------------------------------ */

bool kiln_line_images_next(KilnString *rest, KilnString *ret)
{
    size_t n = 0;

    if (rest->length == 0)
        return false;
    (void)kiln_category_at(rest->data, rest->length, &n);
    *ret = (KilnString) { rest->data, n };
    *rest = (KilnString) { rest->data + n, rest->length - n };
    return true;
}

void kiln_line_images_init(KilnLineImages *lines, int64_t height, int64_t max_width)
{
    lines->height = height;
    lines->max_width = max_width;
    lines->characters.sorted = true;
    kiln_text_buckets_init(&lines->buckets, max_width);
}

KilnStatus kiln_line_images_open(KilnLineImages *lines, const KilnDataContext *context,
                                 KilnError *err)
{
    lines->collects = context->fitted == NULL;
    if (!lines->collects)
        return kiln_name_list_read(&lines->characters, context->fitted, characters_file, err);
    return context->stage != KILN_STAGE_PREDICT
               ? KILN_OK
               : kiln_error_set(err, KILN_E_MISSING,
                                "the checkpoint has no characters: it was not trained on images of "
                                "text lines");
}

KilnStatus kiln_line_images_collect(KilnLineImages *lines, KilnString text, KilnError *err)
{
    KilnStatus status = KILN_OK;
    KilnString character;

    while (lines->collects && status >= 0 && kiln_line_images_next(&text, &character))
        status = kiln_name_list_add(&lines->characters, character, err);
    return status;
}

KilnStatus kiln_line_images_ready(KilnLineImages *lines, KilnError *err)
{
    const KilnNameList *list = &lines->characters;

    lines->names = malloc((list->n + 1) * sizeof(*lines->names));
    if (lines->names == NULL)
        return kiln_error_nomem(err, (list->n + 1) * sizeof(*lines->names));
    lines->names[0] = "<blank>";
    for (size_t i = 0; i < list->n; i++)
        lines->names[i + 1] = list->names[i];
    return KILN_OK;
}

void kiln_line_images_release(KilnLineImages *lines)
{
    free(lines->names);
    lines->names = NULL;
    kiln_name_list_release(&lines->characters);
}

/* ---- Texts ----------------------------------------------------------------------------------- */

KilnStatus kiln_line_images_check(const KilnLineImages *lines, KilnString text, int64_t width,
                                  bool collecting, KilnError *err)
{
    const bool open = collecting && lines->collects;
    KilnString rest = text, character;
    int64_t n = 0;

    while (kiln_line_images_next(&rest, &character)) {
        n++;
        if ((unsigned char)character.data[0] < ' ')
            return kiln_error_set(err, KILN_E_TYPE,
                                  "the text has a control character (0x%02x): expected one line",
                                  (unsigned)(unsigned char)character.data[0]);
        if (!open && kiln_name_list_find(&lines->characters, character) < 0)
            return kiln_error_set(err, KILN_E_KEY,
                                  "the text has the character \"%.*s\", which no training line has",
                                  (int)character.length, character.data);
    }
    if (n == 0)
        return kiln_error_set(err, KILN_E_MISSING, "the text is empty");
    return n <= width ? KILN_OK
                      : kiln_error_set(err, KILN_E_RANGE,
                                       "the text has %lld characters, and its line is only %lld "
                                       "pixels wide when it is %lld high",
                                       (long long)n, (long long)width, (long long)lines->height);
}

int64_t kiln_line_images_count(KilnString text)
{
    KilnString character;
    int64_t n = 0;

    while (kiln_line_images_next(&text, &character))
        n++;
    return n;
}

KilnStatus kiln_line_images_write(const KilnLineImages *lines, const char *text, KilnSample *sample,
                                  KilnError *err)
{
    int32_t *classes = sample->data[KILN_LINE_CHARACTERS];
    char **to = (char **)sample->data[KILN_LINE_TEXT];
    KilnString rest = { text, strlen(text) }, character;

    while (classes != NULL && kiln_line_images_next(&rest, &character))
        *classes++ = (int32_t)(kiln_name_list_find(&lines->characters, character) + 1);
    if (to == NULL)
        return KILN_OK;
    *to = strdup(text);
    return *to != NULL ? KILN_OK : kiln_error_nomem(err, strlen(text));
}

/* ---- Images ---------------------------------------------------------------------------------- */

KilnStatus kiln_line_images_width(const KilnLineImages *lines, int64_t height, int64_t width,
                                  int64_t *ret, KilnError *err)
{
    const int64_t scaled = (int64_t)((double)width * (double)lines->height / (double)height + 0.5);

    if (scaled > lines->max_width)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "%lld x %lld pixels (height x width) are %lld columns when scaled to "
                              "%lld rows, expected at most %lld: cut the line into parts, or "
                              "train with a larger max_width",
                              (long long)height, (long long)width, (long long)scaled,
                              (long long)lines->height, (long long)lines->max_width);
    *ret = scaled < LEAST_WIDTH ? LEAST_WIDTH : scaled;
    return KILN_OK;
}

/* From rows to columns, and from light to ink. */
static void write_columns(const KilnImage *image, float *to)
{
    for (int64_t x = 0; x < image->width; x++)
        for (int64_t y = 0; y < image->height; y++)
            to[x * image->height + y] = 1.0f - image->data[y * image->width + x];
}

KilnStatus kiln_line_images_read(const KilnLineImages *lines, const KilnRawValue *value,
                                 int64_t max_pixels, int64_t width, float *ret, KilnError *err)
{
    const KilnPngForm form = {
        .channels = 1, .height = lines->height, .width = width, .max_pixels = max_pixels
    };
    KilnImage image = { 0 };
    const KilnStatus status = kiln_image_read_raw(value, &form, &image, err);

    if (status >= 0)
        write_columns(&image, ret);
    kiln_image_release(&image);
    return status;
}

/* ---- For KilnDataModuleOps ------------------------------------------------------------------- */

KilnStatus kiln_line_spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err)
{
    KilnLineImages *lines = kiln_state(self);

    (void)err;
    lines->features[KILN_LINE_PIXELS] =
        (KilnFeature) { .name = "line",
                        .content = KILN_SEQUENCE,
                        .dtype = KILN_F32,
                        .shape = KILN_SHAPE(lines->max_width, lines->height),
                        .varies = true };
    lines->features[KILN_LINE_CHARACTERS] =
        (KilnFeature) { .name = "characters",
                        .content = KILN_LABEL,
                        .dtype = KILN_I32,
                        .shape = KILN_SHAPE(lines->max_width),
                        .varies = true,
                        .n_ids = (int64_t)lines->characters.n + 1,
                        .id_names = lines->names };
    lines->features[KILN_LINE_TEXT] = (KilnFeature) { .name = "true_text", .content = KILN_TEXT };
    *ret = (KilnDataSpec) { .features = lines->features, .n_features = KILN_LINE_FEATURES };
    return KILN_OK;
}

size_t kiln_line_raw_fields(KilnInstance *self, const KilnRawField **ret)
{
    (void)self;
    *ret = &kiln_raw_image;
    return 1;
}

KilnStatus kiln_line_preprocess(KilnInstance *self, const KilnRawValue *values, KilnSample *sample,
                                KilnError *err)
{
    const KilnLineImages *lines = kiln_state(self);
    const KilnPngForm form = { .channels = 1 };
    KilnImage image = { 0 }, scaled = { 0 };
    int64_t width = 0;
    KilnStatus status = kiln_image_read_raw(&values[0], &form, &image, err);

    if (status >= 0)
        status = kiln_line_images_width(lines, image.height, image.width, &width, err);
    if (status >= 0)
        status = kiln_image_scale(&image, lines->height, width, &scaled, err);
    if (status >= 0) {
        write_columns(&scaled, sample->data[KILN_LINE_PIXELS]);
        sample->lengths[KILN_LINE_PIXELS] = width;
    }
    kiln_image_release(&image);
    kiln_image_release(&scaled);
    return status;
}

KilnStatus kiln_line_save_preprocessing(KilnInstance *self, const char *dir, KilnError *err)
{
    const KilnLineImages *lines = kiln_state(self);

    return kiln_name_list_write(&lines->characters, dir, characters_file, err);
}
