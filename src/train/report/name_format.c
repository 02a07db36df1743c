/* Names of files with values in them: "{epoch:03d}-{val/loss:.2f}". */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "train/trainer.h"

enum { LONGEST_KEY = 256, MOST_DIGITS = 32 };

/* {KEY:FORMAT}, taken apart. */
typedef struct Place {
    char key[LONGEST_KEY];
    bool zeros;
    int width, precision; /* precision -1: none was given */
    char kind;            /* 'd', 'f', 'e', 'g'; '\0': none was given */
} Place;

/* ---- Reading -------------------------------------------------------------------------- */

/* At most MOST_DIGITS; more is left in the text. */
static int read_number(const char **text)
{
    int value = 0;

    while (**text >= '0' && **text <= '9' && 10 * value + (**text - '0') <= MOST_DIGITS)
        value = 10 * value + (*(*text)++ - '0');
    return value;
}

static bool read_format(const char *text, const char *end, Place *place)
{
    if (*text == '0') {
        place->zeros = true;
        text++;
    }
    place->width = read_number(&text);
    if (*text == '.') {
        text++;
        if (*text < '0' || *text > '9')
            return false;
        place->precision = read_number(&text);
    }
    if (text < end && strchr("dfeg", *text) != NULL)
        place->kind = *text++;
    return text == end && !(place->kind == 'd' && place->precision >= 0);
}

/* Read the place that begins behind a '{' and go behind its '}'; NULL when it is not whole. */
static const char *read_place(const char *text, Place *ret)
{
    const char *end = strchr(text, '}');
    const char *colon = end != NULL ? memchr(text, ':', (size_t)(end - text)) : NULL;
    const char *stop = colon != NULL ? colon : end;

    *ret = (Place) { .precision = -1 };
    if (end == NULL || stop == text || stop - text >= LONGEST_KEY)
        return NULL;
    memcpy(ret->key, text, (size_t)(stop - text));
    if (colon != NULL && !read_format(colon + 1, end, ret))
        return NULL;
    return end + 1;
}

/* ---- Values ---------------------------------------------------------------------------- */

/* The whole number that a key stands for; false for metrics. */
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

/* The metric behind a key. */
static const char *metric_of(const KilnNameFormat *format, const char *key)
{
    return format->monitor != NULL && strcmp(key, "monitor") == 0 ? format->monitor : key;
}

static void append_whole(KilnText *text, const Place *place, int64_t value)
{
    kiln_text_printf(text, place->zeros ? "%0*lld" : "%*lld", place->width, (long long)value);
}

static void append_real(KilnText *text, const Place *place, double value)
{
    const int precision = place->precision >= 0 ? place->precision : 6;

    switch (place->kind) {
    case 'f':
        kiln_text_printf(text, place->zeros ? "%0*.*f" : "%*.*f", place->width, precision, value);
        break;
    case 'e':
        kiln_text_printf(text, place->zeros ? "%0*.*e" : "%*.*e", place->width, precision, value);
        break;
    default:
        kiln_text_printf(text, place->zeros ? "%0*.*g" : "%*.*g", place->width, precision, value);
    }
}

static void append_value(const KilnTrainer *trainer, const KilnNameFormat *format,
                         const Place *place, KilnText *text)
{
    const char *metric = metric_of(format, place->key);
    double value = (double)NAN;
    int64_t whole;

    if (format->inserts)
        kiln_text_printf(text, "%s=", metric);
    if (!whole_value(trainer, place->key, &whole)) {
        (void)kiln_trainer_metric(trainer, metric, &value);
        append_real(text, place, value);
    } else if (place->kind == '\0' || place->kind == 'd') {
        append_whole(text, place, whole);
    } else {
        append_real(text, place, (double)whole);
    }
}

const char *kiln_trainer_format(const KilnTrainer *trainer, const KilnNameFormat *format, char *buf,
                                size_t size)
{
    const char *at = format->text;
    KilnText text = { 0 };

    while (*at != '\0') {
        Place place;
        const char *next = *at == '{' ? read_place(at + 1, &place) : NULL;

        if (next != NULL) {
            append_value(trainer, format, &place, &text);
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

static KilnStatus check_place(const KilnTrainer *trainer, const char *option,
                              const KilnNameFormat *format, const Place *place, KilnError *err)
{
    int64_t whole;

    if (whole_value(trainer, place->key, &whole))
        return KILN_OK;
    if (!kiln_trainer_logs(trainer, metric_of(format, place->key)))
        return unknown_key(trainer, option, format, place->key, err);
    if (place->kind == 'd')
        return kiln_error_set(err, KILN_E_RANGE,
                              "%s=%s: {%s:d} is for whole numbers, epoch and step; a metric takes "
                              "f, e or g, {%s:.3f} say",
                              option, format->text, place->key, place->key);
    return KILN_OK;
}

KilnStatus kiln_trainer_check_format(const KilnTrainer *trainer, const char *option,
                                     const KilnNameFormat *format, KilnError *err)
{
    const char *at = format->text;
    KilnStatus status = KILN_OK;

    while ((at = strchr(at, '{')) != NULL && status >= 0) {
        Place place;

        at = read_place(at + 1, &place);
        if (at == NULL)
            return kiln_error_set(err, KILN_E_RANGE,
                                  "%s=%s: each { begins a value, {epoch:03d} or {val/loss:.3f} "
                                  "say: a name, then perhaps a colon, a width, a precision and "
                                  "one of d f e g",
                                  option, format->text);
        status = check_place(trainer, option, format, &place, err);
    }
    return status;
}
