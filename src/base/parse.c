/* Strict parsing and exact printing of numbers. */
#include "base/parse.h"

#include <errno.h>
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
    for (int digits = 1; digits <= 17; digits++) {
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
