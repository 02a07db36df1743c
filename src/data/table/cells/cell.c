/* From a text to a cell: missing values, dates. */
#include "data/table/cells/cells.h"

#include <math.h>

#include "base/text.h"
#include "data/civil_date.h"

void kiln_cell_rules_init(KilnCellRules *rules, char decimal, const char *const *missing, size_t n)
{
    *rules = (KilnCellRules) { .decimal = decimal, .missing = missing, .n_missing = n };
    for (size_t i = 0; i < n; i++) {
        const KilnString text = { missing[i], strlen(missing[i]) };
        double number;

        rules->first[(unsigned char)missing[i][0]] = true;
        if (kiln_number_is(text, decimal, &number))
            rules->numeric_missing = true;
    }
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
    if (!as_text && kiln_number_is(text, rules->decimal, &ret.number))
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
    /* In UTC it may be the day before or after. */
    const double later = floor(hour / 24.0);
    const int64_t days = kiln_civil_date_days((KilnCivilDate) { year, month, day }) +
                         (int64_t)later;
    const KilnCivilDate date = kiln_civil_date_of(days);
    hour -= later * 24.0;
    ret[KILN_DATE_TIME] = (double)days + hour / 24.0;
    ret[KILN_DATE_YEAR] = (double)date.year;
    ret[KILN_DATE_MONTH] = date.month;
    ret[KILN_DATE_DAY] = date.day;
    ret[KILN_DATE_WEEKDAY] = (double)(((days + 3) % 7 + 7) % 7);
    ret[KILN_DATE_HOUR] = hour;
    return true;
}
