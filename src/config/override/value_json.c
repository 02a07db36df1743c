/* Values as JSON text. */
#include <math.h>
#include <string.h>

#include "base/parse.h"
#include "base/utf8.h"
#include "config/override/value.h"

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

static void write_text(const char *p, KilnText *text)
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

static void write_scalar(const KilnConfigNode *node, KilnText *text)
{
    double value = 0;

    if (node->scalar == KILN_SCALAR_FLOAT && kiln_parse_f64(node->text, &value, NULL) >= 0 &&
        !isfinite(value))
        kiln_text_append(text, isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
    else if (node->scalar == KILN_SCALAR_FLOAT)
        kiln_value_text(node, text);
    else if (node->scalar == KILN_SCALAR_NULL || node->scalar == KILN_SCALAR_BOOL ||
             node->scalar == KILN_SCALAR_INT)
        kiln_text_append(text, node->text);
    else
        write_text(node->text, text);
}

void kiln_value_json(const KilnConfigNode *node, KilnText *text)
{
    bool map = node->kind == KILN_NODE_MAP;

    if (node->kind == KILN_NODE_SCALAR) {
        write_scalar(node, text);
        return;
    }
    kiln_text_char(text, map ? '{' : '[');
    for (size_t i = 0; i < node->count; i++) {
        if (i > 0)
            kiln_text_append(text, ", ");
        if (map) {
            write_text(node->entries[i].key, text);
            kiln_text_append(text, ": ");
        }
        kiln_value_json(node->entries[i].value, text);
    }
    kiln_text_char(text, map ? '}' : ']');
}
