/* Writes Arrow's columns as CSV. */
#include "data/records/arrow_csv.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/text.h"
#include "data/civil_date.h"

/* ---- Buffers --------------------------------------------------------------------------------- */

static int64_t int_at(const void *buffer, int64_t i, size_t bytes)
{
    int64_t wide;
    int32_t word;
    int16_t half;
    int8_t byte;

    switch (bytes) {
    case 1:
        memcpy(&byte, (const char *)buffer + i, sizeof(byte));
        return byte;
    case 2:
        memcpy(&half, (const char *)buffer + i * 2, sizeof(half));
        return half;
    case 4:
        memcpy(&word, (const char *)buffer + i * 4, sizeof(word));
        return word;
    default:
        memcpy(&wide, (const char *)buffer + i * 8, sizeof(wide));
        return wide;
    }
}

static bool bit_at(const void *buffer, int64_t i)
{
    return (((const uint8_t *)buffer)[i / 8] >> (i % 8) & 1) != 0;
}

/* Bytes of an integer by its format, lower case: c, s, i, l; 0: it is none. */
static size_t int_bytes(char format)
{
    switch (format) {
    case 'c':
    case 'C':
        return 1;
    case 's':
    case 'S':
        return 2;
    case 'i':
    case 'I':
        return 4;
    case 'l':
    case 'L':
        return 8;
    default:
        return 0;
    }
}

/* ---- Numbers --------------------------------------------------------------------------------- */

static void put_int(KilnText *text, char format, const void *buffer, int64_t i)
{
    const size_t bytes = int_bytes(format);
    const int64_t value = int_at(buffer, i, bytes);
    const bool is_unsigned = format >= 'A' && format <= 'Z';

    if (is_unsigned && bytes < 8)
        kiln_text_printf(text, "%" PRId64, value & ((INT64_C(1) << (bytes * 8)) - 1));
    else if (is_unsigned)
        kiln_text_printf(text, "%" PRIu64, (uint64_t)value);
    else
        kiln_text_printf(text, "%" PRId64, value);
}

/* NaN is what a missing number is in a file by pandas. */
static void put_double(KilnText *text, double value)
{
    char buf[40];

    if (isinf(value))
        kiln_text_append(text, value < 0.0 ? "-inf" : "inf");
    else if (!isnan(value))
        kiln_text_append(text, kiln_format_f64(value, buf, sizeof(buf)));
}

/* The shortest text that reads back as the same f32. */
static void put_float(KilnText *text, float value)
{
    char buf[40];

    if (!isfinite(value)) {
        put_double(text, (double)value);
        return;
    }
    for (int digits = fabsf(value) < FLT_MIN ? 1 : FLT_DIG; digits <= 9; digits++) {
        snprintf(buf, sizeof(buf), "%.*g", digits, (double)value);
        if (strtof(buf, NULL) == value)
            break;
    }
    kiln_text_append(text, buf);
}

/* A whole number of 128 bits, or less, over 10^scale. */
static void put_decimal(KilnText *text, const char *bytes, size_t size, int scale)
{
    uint64_t low = 0, high = 0;
    char digits[64];
    int n = 0;
    const bool negative = (bytes[size - 1] & 0x80) != 0;

    if (negative)
        high = low = UINT64_MAX;
    memcpy(&low, bytes, size < 8 ? size : 8);
    if (size > 8)
        memcpy(&high, bytes + 8, size - 8);
    if (negative) {
        low = ~low + 1;
        high = ~high + (low == 0);
    }
    /* by tens, from the last digit: in parts of 32 bits */
    while (high != 0 || low != 0 || n <= scale) {
        const uint64_t parts[] = { high >> 32, high & UINT32_MAX, low >> 32, low & UINT32_MAX };
        uint64_t quotients[4], rest = 0;

        for (int i = 0; i < 4; i++) {
            quotients[i] = (rest << 32 | parts[i]) / 10;
            rest = (rest << 32 | parts[i]) % 10;
        }
        high = quotients[0] << 32 | quotients[1];
        low = quotients[2] << 32 | quotients[3];
        digits[n++] = (char)('0' + rest);
    }
    if (negative)
        kiln_text_char(text, '-');
    while (n-- > 0) {
        kiln_text_char(text, digits[n]);
        if (n == scale && n > 0)
            kiln_text_char(text, '.');
    }
}

/* ---- Dates and times ------------------------------------------------------------------------- */

static void put_day(KilnText *text, int64_t days)
{
    const KilnCivilDate date = kiln_civil_date_of(days);

    kiln_text_printf(text, "%04" PRId64 "-%02d-%02d", date.year, date.month, date.day);
}

/* A second of the day, and a fraction in units of 1 / per_second. */
static void put_time(KilnText *text, int64_t second, int64_t fraction, int64_t per_second)
{
    kiln_text_printf(text, "%02" PRId64 ":%02" PRId64 ":%02" PRId64, second / 3600,
                     second / 60 % 60, second % 60);
    if (fraction != 0)
        kiln_text_printf(text, ".%0*" PRId64,
                         per_second == 1000      ? 3
                         : per_second == 1000000 ? 6
                                                 : 9,
                         fraction);
}

static int64_t per_second_of(char unit)
{
    return unit == 's' ? 1 : unit == 'm' ? 1000 : unit == 'u' ? 1000000 : 1000000000;
}

/* Rounded down, with what is left. */
static int64_t split(int64_t value, int64_t by, int64_t *ret_left)
{
    const int64_t quotient = value / by - (value % by < 0);

    *ret_left = value - quotient * by;
    return quotient;
}

static void put_instant(KilnText *text, int64_t value, int64_t per_second)
{
    int64_t fraction, second;
    const int64_t day = split(split(value, per_second, &fraction), 86400, &second);

    put_day(text, day);
    if (second == 0 && fraction == 0)
        return;
    kiln_text_char(text, 'T');
    put_time(text, second, fraction, per_second);
}

/* tdD, tdm: dates; tsX: times since 1970; ttX: times of the day. */
static void put_temporal(KilnText *text, const char *format, const void *buffer, int64_t i)
{
    const int64_t per_second = per_second_of(format[2]);
    int64_t fraction;

    if (format[1] == 'd' && format[2] == 'D') {
        put_day(text, int_at(buffer, i, 4));
    } else if (format[1] != 't') {
        put_instant(text, int_at(buffer, i, 8), per_second);
    } else {
        const size_t bytes = per_second <= 1000 ? 4 : 8;
        const int64_t second = split(int_at(buffer, i, bytes), per_second, &fraction);

        put_time(text, second, fraction, per_second);
    }
}

/* ---- Texts ----------------------------------------------------------------------------------- */

static bool needs_quotes(const char *data, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (data[i] == ',' || data[i] == '"' || data[i] == '\n' || data[i] == '\r')
            return true;
    return false;
}

static void put_field(KilnText *text, const char *data, size_t n)
{
    if (!needs_quotes(data, n)) {
        kiln_text_append_n(text, data, n);
        return;
    }
    kiln_text_char(text, '"');
    for (size_t i = 0; i < n; i++) {
        if (data[i] == '"')
            kiln_text_char(text, '"');
        kiln_text_char(text, data[i]);
    }
    kiln_text_char(text, '"');
}

static void put_string(KilnText *text, const struct ArrowArray *array, int64_t i, size_t bytes)
{
    const int64_t begin = int_at(array->buffers[1], i, bytes);
    const int64_t end = int_at(array->buffers[1], i + 1, bytes);

    if (end > begin)
        put_field(text, (const char *)array->buffers[2] + begin, (size_t)(end - begin));
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* Scale and bytes of "d:PRECISION,SCALE[,BITS]"; false: it is none, or of more than 128 bits. */
static bool read_decimal(const char *format, int *ret_scale, size_t *ret_bytes)
{
    char *end;

    if (strncmp(format, "d:", 2) != 0)
        return false;
    (void)strtol(format + 2, &end, 10);
    if (*end != ',')
        return false;
    const long scale = strtol(end + 1, &end, 10);
    const long bits = *end == ',' ? strtol(end + 1, &end, 10) : 128;
    *ret_scale = (int)scale;
    *ret_bytes = (size_t)bits / 8;
    return *end == '\0' && scale >= 0 && scale <= 38 && (bits == 32 || bits == 64 || bits == 128);
}

static bool is_temporal(const char *format)
{
    return format[0] == 't' &&
           ((format[1] == 'd' && strchr("Dm", format[2]) != NULL) ||
            (strchr("st", format[1]) != NULL && strchr("smun", format[2]) != NULL));
}

static bool is_known(const char *format)
{
    int scale;
    size_t bytes;

    if (format[0] == '\0' || format[1] == '\0')
        return format[0] != '\0' && strchr("nbfguU", format[0]) != NULL ? true
                                                                        : int_bytes(format[0]) > 0;
    return (format[0] == 't' && format[2] != '\0' && is_temporal(format)) ||
           read_decimal(format, &scale, &bytes);
}

static bool is_missing(const struct ArrowArray *array, int64_t i)
{
    return array->n_buffers > 0 && array->buffers[0] != NULL && array->null_count != 0 &&
           !bit_at(array->buffers[0], i);
}

static void put_value(KilnText *text, const struct ArrowSchema *schema,
                      const struct ArrowArray *array, int64_t row)
{
    const char *format = schema->format;
    const int64_t i = row + array->offset;
    size_t bytes;
    int scale;

    if (format[0] == 'n' || is_missing(array, i))
        return;
    const void *values = array->buffers[1];
    if (schema->dictionary != NULL)
        put_value(text, schema->dictionary, array->dictionary,
                  int_at(values, i, int_bytes(format[0])));
    else if (int_bytes(format[0]) > 0)
        put_int(text, format[0], values, i);
    else if (format[0] == 'b')
        kiln_text_append(text, bit_at(values, i) ? "true" : "false");
    else if (format[0] == 'f')
        put_float(text, ((const float *)values)[i]);
    else if (format[0] == 'g')
        put_double(text, ((const double *)values)[i]);
    else if (format[0] == 't')
        put_temporal(text, format, values, i);
    else if (read_decimal(format, &scale, &bytes))
        put_decimal(text, (const char *)values + (size_t)i * bytes, bytes, scale);
    else
        put_string(text, array, i, format[0] == 'u' ? 4 : 8);
}

/* ---- Columns --------------------------------------------------------------------------------- */

static const char *noun_of(const char *format)
{
    return strncmp(format, "+s", 2) == 0                              ? "structs"
           : strncmp(format, "+m", 2) == 0                            ? "maps"
           : format[0] == '+'                                         ? "lists"
           : format[0] == 'z' || format[0] == 'Z' || format[0] == 'w' ? "bytes"
           : strncmp(format, "tD", 2) == 0                            ? "durations"
           : format[0] == 'd' ? "decimals of more than 38 digits"
           : format[0] == 'e' ? "half-precision numbers"
                              : "values of another type";
}

static KilnStatus check_column(const struct ArrowSchema *column, KilnError *err)
{
    const struct ArrowSchema *values = column->dictionary != NULL ? column->dictionary : column;

    if (is_known(values->format) && values->dictionary == NULL)
        return KILN_OK;
    return kiln_error_set(
        err, KILN_E_FORMAT,
        "column \"%s\" has %s; a row has numbers, booleans, texts, dates and times: "
        "leave the column out of the file, or make such columns of it",
        column->name, noun_of(values->format));
}

KilnStatus kiln_arrow_csv_header(const struct ArrowSchema *schema, KilnText *text, KilnError *err)
{
    KilnStatus status = KILN_OK;

    if (schema->n_children == 0)
        return kiln_error_set(err, KILN_E_FORMAT, "has no columns");
    for (int64_t c = 0; c < schema->n_children && status >= 0; c++) {
        const struct ArrowSchema *column = schema->children[c];

        status = check_column(column, err);
        if (c > 0)
            kiln_text_char(text, ',');
        put_field(text, column->name, strlen(column->name));
    }
    kiln_text_char(text, '\n');
    return status;
}

void kiln_arrow_csv_row(const struct ArrowSchema *schema, const struct ArrowArray *batch,
                        int64_t row, KilnText *text)
{
    const size_t begin = text->length;

    for (int64_t c = 0; c < schema->n_children; c++) {
        if (c > 0)
            kiln_text_char(text, ',');
        put_value(text, schema->children[c], batch->children[c], row + batch->offset);
    }
    if (text->length == begin)
        kiln_text_append(text, "\"\""); /* an empty line would be no row */
    kiln_text_char(text, '\n');
}
