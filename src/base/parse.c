/* Strict parsing and exact printing of numbers. */
#include "base/parse.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_NUMBER = 400 };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Copy `text` without underscores that stand between two digits. False when
 * there is another underscore or it is too long. */
static bool without_underscores(const char *text, char *ret)
{
    size_t n = 0;

    for (size_t i = 0; text[i] != '\0'; i++) {
        if (text[i] == '_') {
            if (i == 0 || !is_digit(text[i - 1]) || !is_digit(text[i + 1]))
                return false;
            continue;
        }
        if (n == LONGEST_NUMBER)
            return false;
        ret[n++] = text[i];
    }
    ret[n] = '\0';
    return true;
}

KilnStatus kiln_parse_i64(const char *text, int64_t *ret, KilnError *err)
{
    char clean[LONGEST_NUMBER + 1];
    const char *p = clean;

    if (!without_underscores(text, clean))
        return kiln_error_set(err, KILN_E_TYPE, "'%s' is not an integer", text);
    if (*p == '-' || *p == '+')
        p++;
    if (!is_digit(*p) || p[strspn(p, "0123456789")] != '\0')
        return kiln_error_set(err, KILN_E_TYPE, "'%s' is not an integer", text);
    errno = 0;
    long long value = strtoll(clean, NULL, 10);
    if (errno == ERANGE)
        return kiln_error_set(err, KILN_E_RANGE, "'%s' does not fit 64 bits", text);
    *ret = value;
    return KILN_OK;
}

/* [sign] (digits [. digits] | . digits) [e [sign] digits], nothing else. */
static bool looks_decimal(const char *p)
{
    if (*p == '-' || *p == '+')
        p++;
    size_t whole = strspn(p, "0123456789"), part = 0;
    p += whole;
    if (*p == '.') {
        p++;
        part = strspn(p, "0123456789");
        p += part;
    }
    if (whole + part == 0)
        return false;
    if (*p == 'e' || *p == 'E') {
        p++;
        if (*p == '-' || *p == '+')
            p++;
        size_t digits = strspn(p, "0123456789");
        if (digits == 0)
            return false;
        p += digits;
    }
    return *p == '\0';
}

static bool special(const char *text, double *ret)
{
    double sign = 1.0;

    if (*text == '-' || *text == '+')
        sign = *text++ == '-' ? -1.0 : 1.0;
    if (*text == '.')
        text++;
    if (strcmp(text, "inf") == 0 || strcmp(text, "Inf") == 0 || strcmp(text, "INF") == 0)
        *ret = sign * (double)INFINITY;
    else if (strcmp(text, "nan") == 0 || strcmp(text, "NaN") == 0 || strcmp(text, "NAN") == 0)
        *ret = (double)NAN;
    else
        return false;
    return true;
}

KilnStatus kiln_parse_f64(const char *text, double *ret, KilnError *err)
{
    char clean[LONGEST_NUMBER + 1];
    double value;

    if (special(text, ret))
        return KILN_OK;
    if (!without_underscores(text, clean) || !looks_decimal(clean))
        return kiln_error_set(err, KILN_E_TYPE, "'%s' is not a number", text);
    errno = 0;
    value = strtod(clean, NULL);
    if (errno == ERANGE && isinf(value))
        return kiln_error_set(err, KILN_E_RANGE, "'%s' does not fit a double", text);
    *ret = value;
    return KILN_OK;
}

const char *kiln_format_f64(double value, char *buf, size_t size)
{
    if (isnan(value) || isinf(value)) {
        snprintf(buf, size, "%s", isnan(value) ? ".nan" : value > 0 ? ".inf" : "-.inf");
        return buf;
    }
    /* A text of up to 15 digits is what %.15g gives, which leaves zeros at the end out, unless the
     * number is so small that it has fewer. */
    for (int digits = fabs(value) < DBL_MIN ? 1 : DBL_DIG; digits <= 17; digits++) {
        snprintf(buf, size, "%.*g", digits, value);
        if (strtod(buf, NULL) == value)
            break;
    }
    /* Where %g turns to exponents early (1e+02), plain digits read better. */
    if (fabs(value) >= 1.0 && fabs(value) < 1e16 && strchr(buf, 'e') != NULL)
        snprintf(buf, size, "%.1f", value);
    if (strpbrk(buf, ".e") == NULL)
        snprintf(buf + strlen(buf), size - strlen(buf), ".0");
    return buf;
}

/* ---- Durations and sizes ------------------------------------------------------- */

typedef struct Unit {
    const char *name;
    double factor;
} Unit;

/* Length of the plain decimal number at the start of `text` and its value; 0: none. */
static size_t leading_number(const char *text, double *ret)
{
    size_t n = strspn(text, "0123456789.");
    char number[LONGEST_NUMBER + 1];

    if (n == 0 || n > LONGEST_NUMBER)
        return 0;
    memcpy(number, text, n);
    number[n] = '\0';
    return looks_decimal(number) && kiln_parse_f64(number, ret, NULL) >= 0 ? n : 0;
}

static const Unit *unit_find(const Unit *units, const char *text, size_t length)
{
    for (; units->name != NULL; units++)
        if (strlen(units->name) == length && strncmp(units->name, text, length) == 0)
            return units;
    return NULL;
}

/* [[days:]hours:]minutes:seconds, all but the first below the next unit. */
static bool clock_time(const char *text, double *ret)
{
    static const double units[] = { 1, 60, 3600, 86400 };
    double part[KILN_COUNT(units)], total = 0;
    size_t parts = 0;

    for (;; text++) {
        size_t n = parts < KILN_COUNT(units) ? leading_number(text, &part[parts]) : 0;
        bool last = text[n] == '\0';

        if (n == 0 || (!last && (text[n] != ':' || part[parts] != floor(part[parts]))))
            return false;
        parts++;
        text += n;
        if (last)
            break;
    }
    for (size_t i = 0; i < parts; i++) {
        size_t unit = parts - 1 - i;

        if (i > 0 && part[i] * units[unit] >= units[unit + 1])
            return false;
        total += part[i] * units[unit];
    }
    *ret = total;
    return parts > 1;
}

KilnStatus kiln_parse_duration(const char *text, double *ret, KilnError *err)
{
    static const Unit units[] = { { "d", 86400 }, { "h", 3600 },  { "m", 60 },
                                  { "min", 60 },  { "s", 1 },     { "sec", 1 },
                                  { "ms", 1e-3 }, { "us", 1e-6 }, { NULL, 0 } };
    double total = 0, last = (double)INFINITY;
    const char *p = text;

    if (clock_time(text, ret) || kiln_parse_f64(text, ret, NULL) >= 0)
        return KILN_OK;
    while (*p != '\0') {
        double number = 0;
        size_t n = leading_number(p, &number);
        size_t letters = strspn(p + n, "abcdefghijklmnopqrstuvwxyz");
        const Unit *unit = unit_find(units, p + n, letters);

        if (n == 0 || unit == NULL || !(unit->factor < last)) /* from large to small, each once */
            break;
        total += number * unit->factor;
        last = unit->factor;
        p += n + letters;
    }
    if (*p != '\0' || p == text)
        return kiln_error_set(
            err, KILN_E_TYPE,
            "'%s' is not a duration: write 90s, 15m, 1h30m, 2d, 00:15:00, 01:00:00:00 or a "
            "number of seconds",
            text);
    *ret = total;
    return KILN_OK;
}

KilnStatus kiln_parse_size(const char *text, int64_t *ret, KilnError *err)
{
    static const Unit units[] = {
        { "", 1 },       { "B", 1 },        { "K", 0x1p10 },   { "KiB", 0x1p10 },
        { "kB", 1e3 },   { "KB", 1e3 },     { "M", 0x1p20 },   { "MiB", 0x1p20 },
        { "MB", 1e6 },   { "G", 0x1p30 },   { "GiB", 0x1p30 }, { "GB", 1e9 },
        { "T", 0x1p40 }, { "TiB", 0x1p40 }, { "TB", 1e12 },    { NULL, 0 },
    };
    double number = 0;
    size_t n = leading_number(text, &number);
    const Unit *unit = unit_find(units, text + n, strlen(text + n));

    if (kiln_parse_i64(text, ret, NULL) >= 0)
        return KILN_OK;
    if (n == 0 || unit == NULL || number * unit->factor != floor(number * unit->factor))
        return kiln_error_set(err, KILN_E_TYPE,
                              "'%s' is not a size: write 512, 64KiB, 64MiB, 1.5GiB or 2GB", text);
    if (number * unit->factor >= 0x1p63)
        return kiln_error_set(err, KILN_E_RANGE, "'%s' does not fit 64 bits", text);
    *ret = (int64_t)(number * unit->factor);
    return KILN_OK;
}
