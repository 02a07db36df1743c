/* From a text to a cell: missing values, numbers, dates. */
#include "data/table/cells.h"

#include <float.h>
#include <math.h>

#include "base/parse.h"
#include "base/text.h"

void kiln_cell_rules_init(KilnCellRules *rules, char decimal, const char *const *missing, size_t n)
{
    *rules = (KilnCellRules) { .decimal = decimal, .missing = missing, .n_missing = n };
    for (size_t i = 0; i < n; i++) {
        const char *at = missing[i], *end = at + strlen(at);
        double number;

        rules->first[(unsigned char)missing[i][0]] = true;
        if (kiln_number_at(&at, end, decimal, &number) && at == end)
            rules->numeric_missing = true;
    }
}

/* ---- Numbers --------------------------------------------------------------------------------- */

enum { MAX_DIGITS = 19, EXACT_POWER = 22, LONG_POWER = 27, LONGEST = 400 };

/* The slow and exact way. */
static bool parse_whole(const char *from, size_t n, char decimal, double *ret)
{
    char copy[LONGEST + 1];

    if (n > LONGEST)
        return false;
    memcpy(copy, from, n);
    copy[n] = '\0';
    char *point = decimal != '.' ? strchr(copy, decimal) : NULL;
    if (point != NULL)
        *point = '.';
    return kiln_parse_f64(copy, ret, NULL) >= 0 && isfinite(*ret);
}

#if LDBL_MANT_DIG == 64
static const long double powers[LONG_POWER + 1] = {
    1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,  1e7L,  1e8L,  1e9L,
    1e10L, 1e11L, 1e12L, 1e13L, 1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L,
    1e20L, 1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L,
};

/* digits * 10^exponent, where 64 bits are enough to know how it is rounded to 53: the digits and
 * the power are exact, so only a result next to the middle of two doubles is not known. */
static bool scale(uint64_t digits, int exponent, double *ret)
{
    if (exponent < -LONG_POWER || exponent > LONG_POWER)
        return false;
    const long double exact = (long double)digits;
    const long double value = exponent < 0 ? exact / powers[-exponent] : exact * powers[exponent];
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    if ((bits & 0x7ff) >= 0x3ff && (bits & 0x7ff) <= 0x401)
        return false;
    *ret = (double)value;
    return true;
}
#else
static const double powers[EXACT_POWER + 1] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
};

/* digits * 10^exponent where both are exact doubles (Clinger, "How to read floating point numbers
 * accurately", 1990). */
static bool scale(uint64_t digits, int exponent, double *ret)
{
    if (digits > UINT64_C(1) << DBL_MANT_DIG || exponent < -EXACT_POWER || exponent > EXACT_POWER)
        return false;
    *ret = exponent < 0 ? (double)digits / powers[-exponent] : (double)digits * powers[exponent];
    return true;
}
#endif

/* Append decimal digits to *value as long as there are some; returns how many. */
static int take_digits(const char **at, const char *end, uint64_t *value)
{
    const char *p = *at;
    uint64_t v = *value;

    while (p < end && (unsigned char)(*p - '0') < 10)
        v = v * 10 + (uint64_t)(*p++ - '0');
    const int n = (int)(p - *at < LONGEST ? p - *at : LONGEST + 1);
    *value = v;
    *at = p;
    return n;
}

/* "e-3" at *at, if it is there. */
static int take_exponent(const char **at, const char *end)
{
    const char *p = *at;
    uint64_t value = 0;

    if (p >= end || (*p != 'e' && *p != 'E'))
        return 0;
    p++;
    const bool negative = p < end && *p == '-';
    p += p < end && (*p == '-' || *p == '+');
    const int n = take_digits(&p, end, &value);
    if (n == 0)
        return 0;
    *at = p;
    const int exponent = n > 4 || value > 9999 ? 9999 : (int)value;
    return negative ? -exponent : exponent;
}

bool kiln_number_at(const char **at, const char *end, char decimal, double *ret)
{
    const char *p = *at;
    const bool negative = p < end && *p == '-';
    uint64_t value = 0;
    int after = 0;

    p += p < end && (*p == '-' || *p == '+');
    const char *digits = p;
    int n = take_digits(&p, end, &value);
    if (p < end && *p == decimal) {
        p++;
        after = take_digits(&p, end, &value);
        n += after;
    }
    if (n == 0)
        return false;
    for (const char *zero = digits; n > MAX_DIGITS && (*zero == '0' || *zero == decimal); zero++)
        n -= *zero == '0';
    const int exponent = take_exponent(&p, end) - after;
    if (value == 0 && n <= MAX_DIGITS)
        *ret = 0.0;
    else if (n > MAX_DIGITS || !scale(value, exponent, ret)) {
        if (!parse_whole(digits, (size_t)(p - digits), decimal, ret))
            return false;
    }
    if (negative)
        *ret = -*ret;
    *at = p;
    return true;
}

/* ---- Values ---------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_missing(const KilnCellRules *rules, KilnString text)
{
    if (text.length == 0)
        return true;
    if (!rules->first[(unsigned char)text.data[0]])
        return false;
    for (size_t i = 0; i < rules->n_missing; i++)
        if (strlen(rules->missing[i]) == text.length &&
            memcmp(rules->missing[i], text.data, text.length) == 0)
            return true;
    return false;
}

KilnCellValue kiln_cell_value(const KilnCellRules *rules, KilnString text, bool as_text)
{
    KilnCellValue ret = { .kind = KILN_VALUE_TEXT };

    while (text.length > 0 && is_blank(text.data[0])) {
        text.data++;
        text.length--;
    }
    while (text.length > 0 && is_blank(text.data[text.length - 1]))
        text.length--;
    ret.text = text;
    if (is_missing(rules, text)) {
        ret.kind = KILN_VALUE_MISSING;
        return ret;
    }
    const char *at = text.data, *end = at + text.length;
    if (!as_text && kiln_number_at(&at, end, rules->decimal, &ret.number) && at == end)
        ret.kind = KILN_VALUE_NUMBER;
    return ret;
}

/* ---- Dates ----------------------------------------------------------------------------------- */

const char *const kiln_date_parts[KILN_DATE_PARTS] = {
    "time", "year", "month", "day", "weekday", "hour",
};

/* Read n digits; -1: they are not there. */
static int digits_at(const char **at, const char *end, int n)
{
    int value = 0;

    if (end - *at < n)
        return -1;
    for (int i = 0; i < n; i++) {
        if (!kiln_is_digit((*at)[i]))
            return -1;
        value = value * 10 + ((*at)[i] - '0');
    }
    *at += n;
    return value;
}

/* Days since 1970-01-01 (Hinnant, "chrono-compatible low-level date algorithms"). */
static int64_t days_of(int64_t year, int month, int day)
{
    const int64_t y = year - (month <= 2), era = (y >= 0 ? y : y - 399) / 400;
    const int64_t of_era = y - era * 400;
    const int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static bool is_day(int year, int month, int day)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return month >= 1 && month <= 12 && day >= 1 &&
           day <= days[month - 1] + (month == 2 && leap ? 1 : 0);
}

/* "HH:MM", "HH:MM:SS", "HH:MM:SS.fff", then nothing, "Z" or "+HH:MM": *ret is the hour in UTC. */
static bool read_time(const char *at, const char *end, double *ret)
{
    const int hour = digits_at(&at, end, 2);
    int minute = -1, second = 0;
    double fraction = 0.0;

    if (at < end && *at == ':') {
        at++;
        minute = digits_at(&at, end, 2);
    }
    if (at < end && *at == ':') {
        at++;
        second = digits_at(&at, end, 2);
    }
    if (at < end && *at == '.' && second >= 0) {
        at++;
        for (double unit = 0.1; at < end && kiln_is_digit(*at); at++, unit /= 10.0)
            fraction += unit * (*at - '0');
    }
    if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60)
        return false;
    *ret = hour + minute / 60.0 + (second + fraction) / 3600.0;
    if (at < end && *at == 'Z' && at + 1 == end)
        return true;
    if (at < end && (*at == '+' || *at == '-')) {
        const double sign = *at++ == '+' ? -1.0 : 1.0;
        const int hours = digits_at(&at, end, 2);

        at += at < end && *at == ':';
        const int minutes = at < end ? digits_at(&at, end, 2) : 0;
        if (hours < 0 || minutes < 0)
            return false;
        *ret += sign * (hours + minutes / 60.0);
    }
    return at == end;
}

bool kiln_date_read(KilnString text, double ret[KILN_DATE_PARTS])
{
    const char *at = text.data, *end = at + text.length;
    const int year = digits_at(&at, end, 4);
    const char mark = at < end ? *at : '\0';
    double hour = 0.0;

    if (year < 0 || (mark != '-' && mark != '/'))
        return false;
    at++;
    const int month = digits_at(&at, end, 2);
    if (month < 0 || at >= end || *at++ != mark)
        return false;
    const int day = digits_at(&at, end, 2);
    if (day < 0 || !is_day(year, month, day))
        return false;
    if (at < end && (*at == 'T' || *at == ' ')) {
        if (!read_time(at + 1, end, &hour))
            return false;
    } else if (at < end) {
        return false;
    }
    const int64_t days = days_of(year, month, day);
    ret[KILN_DATE_TIME] = (double)days + hour / 24.0;
    ret[KILN_DATE_YEAR] = year;
    ret[KILN_DATE_MONTH] = month;
    ret[KILN_DATE_DAY] = day;
    ret[KILN_DATE_WEEKDAY] = (double)(((days + 3) % 7 + 7) % 7);
    ret[KILN_DATE_HOUR] = hour;
    return true;
}
