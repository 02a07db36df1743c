/* Raw samples that are lines of a text file: each is the text of one field. */
#include "data/raw/raw_input.h"

#include <stdlib.h>

#include "base/utf8.h"
#include "data/raw/line_index.h"

typedef struct TextLines {
    KilnLineIndex lines;
    const KilnRawField *field;
} TextLines;

static KilnStatus text_get(void *ctx, int64_t index, KilnRawSample *ret, KilnError *err)
{
    const TextLines *self = ctx;
    KilnRawValue *value = malloc(sizeof(*value));
    size_t length = 0;
    char *text = NULL;
    KilnStatus status = value != NULL
                            ? kiln_line_index_read(&self->lines, index, &text, &length, err)
                            : kiln_error_nomem(err, sizeof(*value));

    if (status >= 0 && kiln_utf8_check(text, length) < length)
        status = kiln_error_set(err, KILN_E_FORMAT, "%s: the line is not UTF-8; convert the file",
                                self->lines.lines[index].name);
    if (status < 0) {
        free(text);
        free(value);
        return status;
    }
    *value = (KilnRawValue) { .name = self->field->name, .type = KILN_RAW_TEXT, .text = text };
    *ret = (KilnRawSample) { .values = value, .n_values = 1 };
    return KILN_OK;
}

static void text_done(void *ctx, KilnRawSample *sample)
{
    (void)ctx;
    free((char *)sample->values[0].text);
    free((void *)sample->values);
}

static const char *text_name(void *ctx, int64_t index)
{
    return ((const TextLines *)ctx)->lines.lines[index].name;
}

static void text_release(void *ctx)
{
    TextLines *self = ctx;

    kiln_line_index_close(&self->lines);
    free(self);
}

KilnStatus kiln_raw_text_lines_open(const char *path, const KilnRawField *field,
                                    const KilnPoll *poll, KilnRawInput *ret, KilnError *err)
{
    TextLines *self = calloc(1, sizeof(*self));

    if (self == NULL)
        return kiln_error_nomem(err, sizeof(*self));
    self->field = field;
    KilnStatus status = kiln_line_index_open(&self->lines, path, poll, err);
    if (status < 0) {
        text_release(self);
        return status;
    }
    *ret = (KilnRawInput) {
        .set = { .count = (int64_t)self->lines.count,
                 .ctx = self,
                 .get = text_get,
                 .done = text_done,
                 .name = text_name },
        .release = text_release,
    };
    return KILN_OK;
}
