/* Formats file names with values in them: "{epoch:03d}-{val/loss:.2f}" (kiln/trainer.h). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "train/trainer.h"

enum { MAX_KEY = 256, MAX_WIDTH = 32 };

/* A parsed {KEY:FORMAT}. */
typedef struct Field {
    char key[MAX_KEY];
    bool zeros;
    int width, precision; /* precision -1: none */
    char conversion;      /* 'd', 'f', 'e', 'g'; '\0': none */
} Field;

/* ---- Parsing -------------------------------------------------------------------------- */

/* Read a number up to MAX_WIDTH; further digits stay in the text. */
static int read_number(const char **text)
{
    int value = 0;

    while (**text >= '0' && **text <= '9' && 10 * value + (**text - '0') <= MAX_WIDTH)
        value = 10 * value + (*(*text)++ - '0');
    return value;
}

static bool read_format(const char *text, const char *end, Field *field)
{
    if (*text == '0') {
        field->zeros = true;
        text++;
    }
    field->width = read_number(&text);
    if (*text == '.') {
        text++;
        if (*text < '0' || *text > '9')
            return false;
        field->precision = read_number(&text);
    }
    if (text < end && strchr("dfeg", *text) != NULL)
        field->conversion = *text++;
    return text == end && !(field->conversion == 'd' && field->precision >= 0);
}

/* Parse the field whose '{' is before `text`; returns the text after its '}', NULL when it is
 * malformed. */
static const char *read_field(const char *text, Field *ret)
{
    const char *end = strchr(text, '}');
    const char *colon = end != NULL ? memchr(text, ':', (size_t)(end - text)) : NULL;
    const char *stop = colon != NULL ? colon : end;

    *ret = (Field) { .precision = -1 };
    if (end == NULL || stop == text || stop - text >= MAX_KEY)
        return NULL;
    memcpy(ret->key, text, (size_t)(stop - text));
    if (colon != NULL && !read_format(colon + 1, end, ret))
        return NULL;
    return end + 1;
}

/* ---- Values ---------------------------------------------------------------------------- */

/* The integer value of a key; false for metrics. */
static bool whole_value(const KilnTrainer *trainer, const char *key, int64_t *ret)
{
    if (strcmp(key, "epoch") == 0)
        *ret = kiln_trainer_epoch(trainer);
    else if (strcmp(key, "step") == 0)
        *ret = kiln_trainer_global_step(trainer);
    else
        return false;
    return true;
}

/* The metric that a key names. */
static const char *metric_of(const KilnNameFormat *format, const char *key)
{
    return format->monitor != NULL && strcmp(key, "monitor") == 0 ? format->monitor : key;
}

static void append_whole(KilnText *text, const Field *field, int64_t value)
{
    kiln_text_printf(text, field->zeros ? "%0*lld" : "%*lld", field->width, (long long)value);
}

static void append_real(KilnText *text, const Field *field, double value)
{
    const int precision = field->precision >= 0 ? field->precision : 6;

    switch (field->conversion) {
    case 'f':
        kiln_text_printf(text, field->zeros ? "%0*.*f" : "%*.*f", field->width, precision, value);
        break;
    case 'e':
        kiln_text_printf(text, field->zeros ? "%0*.*e" : "%*.*e", field->width, precision, value);
        break;
    default:
        kiln_text_printf(text, field->zeros ? "%0*.*g" : "%*.*g", field->width, precision, value);
    }
}

static void append_value(const KilnTrainer *trainer, const KilnNameFormat *format,
                         const Field *field, KilnText *text)
{
    const char *metric = metric_of(format, field->key);
    double value = (double)NAN;
    int64_t whole;

    if (format->inserts)
        kiln_text_printf(text, "%s=", metric);
    if (!whole_value(trainer, field->key, &whole)) {
        (void)kiln_trainer_metric(trainer, metric, &value);
        append_real(text, field, value);
    } else if (field->conversion == '\0' || field->conversion == 'd') {
        append_whole(text, field, whole);
    } else {
        append_real(text, field, (double)whole);
    }
}

const char *kiln_trainer_format(const KilnTrainer *trainer, const KilnNameFormat *format, char *buf,
                                size_t size)
{
    const char *at = format->text;
    KilnText text = { 0 };

    while (*at != '\0') {
        Field field;
        const char *next = *at == '{' ? read_field(at + 1, &field) : NULL;

        if (next != NULL) {
            append_value(trainer, format, &field, &text);
            at = next;
        } else {
            kiln_text_append_n(&text, at++, 1);
        }
    }
    snprintf(buf, size, "%s", text.data != NULL ? text.data : "");
    for (char *c = buf; *c != '\0'; c++)
        *c = *c == '/' ? '_' : *c;
    kiln_text_release(&text);
    return buf;
}

/* ---- Checking --------------------------------------------------------------------------- */

static KilnStatus unknown_key(const KilnTrainer *trainer, const char *option,
                              const KilnNameFormat *format, const char *key, KilnError *err)
{
    static const char *const own[] = { "epoch", "step", "monitor" };
    const char *nearest = kiln_nearest(key, own, KILN_COUNT(own));

    if (strcmp(key, "monitor") == 0)
        return kiln_error_set(err, KILN_E_KEY, "%s=%s: {monitor} needs the option monitor", option,
                              format->text);
    if (nearest != NULL)
        return kiln_error_set(err, KILN_E_KEY, "%s=%s: there is no {%s}; did you mean {%s}?",
                              option, format->text, key, nearest);
    (void)kiln_trainer_unknown_metric(trainer, option, key, err);
    (void)kiln_error_prefix(err, "{%s} is neither epoch, step nor monitor: ", key);
    return KILN_E_KEY;
}

static KilnStatus check_field(const KilnTrainer *trainer, const char *option,
                              const KilnNameFormat *format, const Field *field, KilnError *err)
{
    int64_t whole;

    if (whole_value(trainer, field->key, &whole))
        return KILN_OK;
    if (!kiln_trainer_logs(trainer, metric_of(format, field->key)))
        return unknown_key(trainer, option, format, field->key, err);
    if (field->conversion == 'd')
        return kiln_error_set(err, KILN_E_RANGE,
                              "%s=%s: {%s:d} is for whole numbers, epoch and step; expected f, e "
                              "or g for a metric, as in {%s:.3f}",
                              option, format->text, field->key, field->key);
    return KILN_OK;
}

KilnStatus kiln_trainer_check_format(const KilnTrainer *trainer, const char *option,
                                     const KilnNameFormat *format, KilnError *err)
{
    const char *at = format->text;
    KilnStatus status = KILN_OK;

    while ((at = strchr(at, '{')) != NULL && status >= 0) {
        Field field;

        at = read_field(at + 1, &field);
        if (at == NULL)
            return kiln_error_set(err, KILN_E_RANGE,
                                  "%s=%s: each { begins a value such as {epoch:03d} or "
                                  "{val/loss:.3f}: expected a name, then optionally a colon, a "
                                  "width, a precision and one of d f e g",
                                  option, format->text);
        status = check_field(trainer, option, format, &field, err);
    }
    return status;
}
