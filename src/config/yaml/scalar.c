/* Determines the types of plain scalars. */
#include "config/yaml/scalar.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/text.h"
#include "base/utf8.h"

static const char digits[] = "0123456789";
static const char digits_[] = "0123456789_";

static bool one_of(const char *text, const char *const *names)
{
    for (size_t i = 0; names[i] != NULL; i++)
        if (*text == *names[i] && strcmp(text, names[i]) == 0)
            return true;
    return false;
}

static const char *skip_sign(const char *p)
{
    return *p == '-' || *p == '+' ? p + 1 : p;
}

/* The end of ":30:59" in a sexagesimal number, or NULL when it is not one. */
static const char *skip_sixties(const char *p)
{
    if (*p != ':')
        return NULL;
    while (*p == ':') {
        size_t n = strspn(++p, digits);

        if (n == 0 || n > 2 || (n == 2 && *p > '5'))
            return NULL;
        p += n;
    }
    return p;
}

/* "e+10"; `sign`: the sign must be there. */
static bool is_exponent(const char *p, bool sign)
{
    if (*p != 'e' && *p != 'E')
        return false;
    p++;
    if (*p == '-' || *p == '+')
        p++;
    else if (sign)
        return false;
    return *p != '\0' && p[strspn(p, digits)] == '\0';
}

static bool is_float(const char *text)
{
    static const char *const special[] = { ".inf",  ".Inf",  ".INF",  "+.inf", "+.Inf",
                                           "+.INF", "-.inf", "-.Inf", "-.INF", ".nan",
                                           ".NaN",  ".NAN",  NULL };
    const char *p = skip_sign(text);
    size_t whole;

    if (one_of(text, special))
        return true;
    if (*text == '.') {
        if (strchr(digits, text[1]) == NULL || text[1] == '\0')
            return false;
        p = text + 1 + strspn(text + 1, digits_);
        return *p == '\0' || is_exponent(p, true);
    }
    if (*p == '_')
        return false;
    whole = strspn(p, digits_);
    if (whole == 0)
        return false;
    if (p[whole] == ':') {
        p = skip_sixties(p + whole);
        return p != NULL && *p == '.' && p[1 + strspn(p + 1, digits_)] == '\0';
    }
    if (p[whole] == '.') {
        p += whole + 1;
        p += strspn(p, digits_);
        return *p == '\0' || is_exponent(p, false);
    }
    return p[whole - 1] != '_' && is_exponent(p + whole, false);
}

/* `text` without underscores, and without a plus sign in front. */
static char *without_underscores(KilnArena *arena, const char *text)
{
    char *clean = kiln_arena_strdup(arena, *text == '+' ? text + 1 : text);
    size_t n = 0;

    for (size_t i = 0; clean != NULL && clean[i] != '\0'; i++)
        if (clean[i] != '_')
            clean[n++] = clean[i];
    if (clean != NULL)
        clean[n] = '\0';
    return clean;
}

/* Digits of another base to decimal text; NULL when they do not fit 64 bits. */
static const char *from_base(KilnArena *arena, bool negative, const char *p, int base)
{
    const char *clean = without_underscores(arena, p);

    errno = 0;
    const unsigned long long value = clean != NULL ? strtoull(clean, NULL, base) : 0;
    if (clean == NULL || errno == ERANGE)
        return NULL;
    return kiln_arena_printf(arena, "%s%llu", negative && value > 0 ? "-" : "", value);
}

/* 1:30 is 90; a part after a dot counts as it is. */
static const char *from_sixties(KilnArena *arena, const char *text, bool whole)
{
    char buf[KILN_F64_TEXT];
    double value = 0, part;
    const char *p = skip_sign(text);

    while (*p != '\0') {
        size_t n = strcspn(p, ":");
        char *clean = kiln_arena_strndup(arena, p, n);

        if (clean != NULL)
            clean = without_underscores(arena, clean);
        if (clean == NULL || kiln_parse_f64(clean, &part, NULL) < 0)
            return NULL;
        value = value * 60 + part;
        p += n + (p[n] == ':');
    }
    if (*text == '-')
        value = -value;
    if (whole)
        return value < 9e15 && value > -9e15 ? kiln_arena_printf(arena, "%.0f", value) : NULL;
    return kiln_arena_strdup(arena, kiln_format_f64(value, buf, sizeof(buf)));
}

/* Decimal digits in their shortest spelling: no + sign, no leading zeros. */
static const char *decimal(KilnArena *arena, const char *text)
{
    const char *clean = without_underscores(arena, text);

    return clean != NULL && strcmp(clean, "-0") == 0 ? "0" : clean;
}

/* Canonical text of an integer, or NULL when it is not one. */
static const char *integer(KilnArena *arena, const char *text)
{
    const char *p = skip_sign(text), *end;

    if (p[0] == '0' && p[1] == 'x' && p[2] != '\0' &&
        p[2 + strspn(p + 2, "0123456789abcdefABCDEF_")] == '\0')
        return from_base(arena, *text == '-', p + 2, 16);
    if (p[0] == '0' && p[1] == 'b' && p[2] != '\0' && p[2 + strspn(p + 2, "01_")] == '\0')
        return from_base(arena, *text == '-', p + 2, 2);
    if (p[0] == '0' && p[1] != '\0')
        return p[1 + strspn(p + 1, "01234567_")] == '\0' ? from_base(arena, *text == '-', p + 1, 8)
                                                         : NULL;
    if (*p < '0' || *p > '9')
        return NULL;
    end = p + strspn(p, digits_);
    if (*end == '\0')
        return decimal(arena, text);
    if (*p == '0' || (end = skip_sixties(end)) == NULL || *end != '\0')
        return NULL;
    return from_sixties(arena, text, true);
}

KilnScalar kiln_scalar_text(const char *text)
{
    if (strcmp(text, "???") == 0)
        return KILN_SCALAR_MISSING;
    return strstr(text, "${") != NULL ? KILN_SCALAR_INTERPOLATION : KILN_SCALAR_STR;
}

KilnScalar kiln_scalar_yaml(KilnArena *arena, const char *text, const char **ret_text)
{
    static const char *const null[] = { "", "~", "null", "Null", "NULL", NULL };
    static const char *const yes[] = { "yes",  "Yes", "YES", "true", "True",
                                       "TRUE", "on",  "On",  "ON",   NULL };
    static const char *const no[] = { "no",    "No",  "NO",  "false", "False",
                                      "FALSE", "off", "Off", "OFF",   NULL };
    *ret_text = text;
    if (one_of(text, null)) {
        *ret_text = "null";
        return KILN_SCALAR_NULL;
    }
    if (one_of(text, yes) || one_of(text, no)) {
        *ret_text = one_of(text, yes) ? "true" : "false";
        return KILN_SCALAR_BOOL;
    }
    /* Most text starts with a letter: no number. */
    if (strchr("0123456789+-.", *text) == NULL)
        return kiln_scalar_text(text);
    if (is_float(text)) {
        if (strchr(text, ':') != NULL)
            *ret_text = from_sixties(arena, text, false);
        else if (strpbrk(text, "_+") != NULL)
            *ret_text = without_underscores(arena, text);
        return KILN_SCALAR_FLOAT;
    }
    const char *number = integer(arena, text);
    if (number != NULL) {
        *ret_text = number;
        return KILN_SCALAR_INT;
    }
    return kiln_scalar_text(text);
}

/* Ignores the case of ASCII letters; independent of the locale. */
static bool same_word(const char *text, const char *word)
{
    for (; *text != '\0' && *word != '\0'; text++, word++) {
        char c = *text;

        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        if (c != *word)
            return false;
    }
    return *text == *word;
}

/* digit (_? digit)*; the end of it, or NULL. */
static const char *skip_digits(const char *p)
{
    if (*p < '0' || *p > '9')
        return NULL;
    while ((*p >= '0' && *p <= '9') || (*p == '_' && p[1] >= '0' && p[1] <= '9'))
        p++;
    return p;
}

/* The grammar's INT (`ret_float` false) or FLOAT. */
static bool is_number(const char *text, bool *ret_float)
{
    const char *start = skip_sign(text), *p = start, *end;

    *ret_float = false;
    if (*p == '0')
        p++; /* 017 is text */
    else if ((end = skip_digits(p)) != NULL)
        p = end;
    if (p > start && *p == '\0')
        return true;
    *ret_float = true;
    if (*p == '.') {
        end = skip_digits(p + 1);
        if (end == NULL && p == start)
            return false;
        p = end != NULL ? end : p + 1;
        if (*p == '\0')
            return true;
    }
    if (p == start || (*p != 'e' && *p != 'E'))
        return false;
    end = skip_digits(skip_sign(p + 1));
    return end != NULL && *end == '\0';
}

KilnScalar kiln_scalar_value(KilnArena *arena, const char *text, const char **ret_text)
{
    bool is_real;

    *ret_text = text;
    if (same_word(text, "null")) {
        *ret_text = "null";
        return KILN_SCALAR_NULL;
    }
    if (same_word(text, "true") || same_word(text, "false")) {
        *ret_text = same_word(text, "true") ? "true" : "false";
        return KILN_SCALAR_BOOL;
    }
    if (same_word(skip_sign(text), "inf")) {
        *ret_text = *text == '-' ? "-.inf" : ".inf";
        return KILN_SCALAR_FLOAT;
    }
    if (same_word(skip_sign(text), "nan")) {
        *ret_text = ".nan";
        return KILN_SCALAR_FLOAT;
    }
    if (!is_number(text, &is_real))
        return kiln_scalar_text(text);
    if (!is_real) {
        *ret_text = decimal(arena, text);
        return KILN_SCALAR_INT;
    }
    if (strpbrk(text, "_+") != NULL)
        *ret_text = without_underscores(arena, text);
    return KILN_SCALAR_FLOAT;
}

bool kiln_text_is_utf8(const char *text, size_t size)
{
    for (size_t at = 0, n; at < size; at += n) {
        uint32_t c;

        n = kiln_utf8_next(text + at, size - at, &c);
        if (c == 0 || (n == 1 && (unsigned char)text[at] >= 0x80))
            return false;
    }
    return true;
}
