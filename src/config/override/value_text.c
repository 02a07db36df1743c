/* Writes values as text: as Python prints them, as arguments, and as JSON. */
#include <math.h>
#include <string.h>

#include "base/parse.h"
#include "base/utf8.h"
#include "config/yaml/scalar.h"
#include "config/override/value.h"

/* As Python's repr(), for text in lists and mappings. */
static void python_quoted(const char *p, KilnText *text)
{
    char quote = strchr(p, '\'') != NULL && strchr(p, '"') == NULL ? '"' : '\'';

    kiln_text_char(text, quote);
    for (; *p != '\0'; p++) {
        if (*p == '\\' || *p == quote)
            kiln_text_printf(text, "\\%c", *p);
        else if (*p == '\n')
            kiln_text_append(text, "\\n");
        else
            kiln_text_char(text, *p);
    }
    kiln_text_char(text, quote);
}

static void python_float(const char *written, KilnText *text)
{
    char buf[KILN_F64_TEXT];
    double value;

    if (kiln_parse_f64(written, &value, NULL) < 0)
        kiln_text_append(text, written);
    else if (isnan(value) || isinf(value))
        kiln_text_append(text, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    else
        kiln_text_append(text, kiln_format_f64(value, buf, sizeof(buf)));
}

static void python_scalar(const KilnConfigNode *node, bool nested, KilnText *text)
{
    switch (node->scalar) {
    case KILN_SCALAR_NULL:
        kiln_text_append(text, "None");
        return;
    case KILN_SCALAR_BOOL:
        kiln_text_append(text, strcmp(node->text, "true") == 0 ? "True" : "False");
        return;
    case KILN_SCALAR_FLOAT:
        python_float(node->text, text);
        return;
    case KILN_SCALAR_INT:
        kiln_text_append(text, node->text);
        return;
    case KILN_SCALAR_STR:
    case KILN_SCALAR_MISSING:
    case KILN_SCALAR_INTERPOLATION:
        break;
    }
    if (nested)
        python_quoted(node->text, text);
    else
        kiln_text_append(text, node->text);
}

/* How a notation writes values. */
typedef struct Notation {
    const char *comma, *colon;
    void (*key)(const KilnEntry *entry, KilnText *text);
    void (*scalar)(const KilnConfigNode *node, bool nested, KilnText *text);
} Notation;

static void write_node(const Notation *notation, const KilnConfigNode *node, bool nested,
                       KilnText *text)
{
    bool map = node->kind == KILN_NODE_MAP;

    if (node->kind == KILN_NODE_SCALAR) {
        notation->scalar(node, nested, text);
        return;
    }
    kiln_text_char(text, map ? '{' : '[');
    for (size_t i = 0; i < node->count; i++) {
        if (i > 0)
            kiln_text_append(text, notation->comma);
        if (map) {
            notation->key(&node->entries[i], text);
            kiln_text_append(text, notation->colon);
        }
        write_node(notation, node->entries[i].value, true, text);
    }
    kiln_text_char(text, map ? '}' : ']');
}

static void python_key(const KilnEntry *entry, KilnText *text)
{
    if (entry->key_typed)
        kiln_text_append(text, entry->key);
    else
        python_quoted(entry->key, text);
}

void kiln_value_text(const KilnConfigNode *node, KilnText *text)
{
    static const Notation python = { ", ", ": ", python_key, python_scalar };

    write_node(&python, node, false, text);
}

/* ---- Arguments ----------------------------------------------------- */

/* Doubles backslashes where they would escape: before a quote. */
static void write_quoted(const char *p, char quote, KilnText *text)
{
    kiln_text_char(text, quote);
    while (*p != '\0') {
        size_t n = strspn(p, "\\");

        kiln_text_append_n(text, p, n);
        p += n;
        if (*p == quote || *p == '\0')
            kiln_text_append_n(text, p - n, n);
        if (*p == quote)
            kiln_text_char(text, '\\');
        if (*p != '\0')
            kiln_text_char(text, *p++);
    }
    kiln_text_char(text, quote);
}

/* Can the text be written without quotes, with escapes? Hydra never checks, and then cannot
 * parse what it wrote. */
static bool can_be_escaped(const char *p)
{
    static const char fine[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "_-/+.$%*@?|\\()[]{}:=, \t";

    for (; *p != '\0'; p++)
        if ((unsigned char)*p < 0x80 && strchr(fine, *p) == NULL)
            return false;
    return true;
}

static void write_text(const char *p, bool nested, KilnText *text)
{
    if ((nested && *p == '\0') || !can_be_escaped(p)) {
        write_quoted(p, strchr(p, '\'') != NULL && strchr(p, '"') == NULL ? '"' : '\'', text);
        return;
    }
    for (; *p != '\0'; p++) {
        if (strchr("\\()[]{}:=, \t", *p) != NULL)
            kiln_text_char(text, '\\');
        kiln_text_char(text, *p);
    }
}

static void write_scalar(const KilnConfigNode *node, bool nested, KilnText *text)
{
    if (node->quote != '\0')
        write_quoted(node->text, node->quote, text);
    else if (node->scalar == KILN_SCALAR_NULL)
        kiln_text_append(text, "null");
    else if (node->scalar == KILN_SCALAR_BOOL || node->scalar == KILN_SCALAR_INT ||
             node->scalar == KILN_SCALAR_FLOAT)
        python_scalar(node, false, text);
    else
        write_text(node->text, nested, text);
}

/* The type of a key that is not text is recognized by its spelling. */
static void write_key(const KilnEntry *entry, KilnText *text)
{
    bool word = strcmp(entry->key, "true") == 0 || strcmp(entry->key, "false") == 0;

    if (entry->key_typed && word)
        kiln_text_append(text, *entry->key == 't' ? "True" : "False");
    else if (entry->key_typed && strpbrk(entry->key, ".eEnN") != NULL)
        python_float(entry->key, text);
    else if (entry->key_typed)
        kiln_text_append(text, entry->key);
    else
        write_text(entry->key, false, text);
}

void kiln_value_written(const KilnConfigNode *node, KilnText *text)
{
    static const Notation argument = { ",", ":", write_key, write_scalar };

    write_node(&argument, node, false, text);
}

/* ---- JSON ----------------------------------------------------------- */

static void write_code(uint32_t code, KilnText *text)
{
    static const char short_codes[] = "\b\t\n\f\r\"\\", letters[] = "btnfr\"\\";
    const char *found = code < 0x80 ? strchr(short_codes, (int)code) : NULL;

    if (found != NULL)
        kiln_text_printf(text, "\\%c", letters[found - short_codes]);
    else if (code >= ' ' && code < 0x7f)
        kiln_text_char(text, (char)code);
    else if (code < 0x10000)
        kiln_text_printf(text, "\\u%04x", code);
    else
        kiln_text_printf(text, "\\u%04x\\u%04x", 0xd800u + ((code - 0x10000u) >> 10),
                         0xdc00u + ((code - 0x10000u) & 0x3ffu));
}

static void json_text(const char *p, KilnText *text)
{
    const char *end = p + strlen(p);
    uint32_t code;

    kiln_text_char(text, '"');
    while (p < end) {
        p += kiln_utf8_next(p, (size_t)(end - p), &code);
        write_code(code, text);
    }
    kiln_text_char(text, '"');
}

static void json_scalar(const KilnConfigNode *node, bool nested, KilnText *text)
{
    double value = 0;

    (void)nested;
    if (node->scalar == KILN_SCALAR_FLOAT && kiln_parse_f64(node->text, &value, NULL) >= 0 &&
        !isfinite(value))
        kiln_text_append(text, isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
    else if (node->scalar == KILN_SCALAR_FLOAT)
        kiln_value_text(node, text);
    else if (node->scalar == KILN_SCALAR_NULL || node->scalar == KILN_SCALAR_BOOL ||
             node->scalar == KILN_SCALAR_INT)
        kiln_text_append(text, node->text);
    else
        json_text(node->text, text);
}

static void json_key(const KilnEntry *entry, KilnText *text)
{
    json_text(entry->key, text);
}

void kiln_value_json(const KilnConfigNode *node, KilnText *text)
{
    static const Notation json = { ", ", ": ", json_key, json_scalar };

    write_node(&json, node, false, text);
}
