/* Quoted text in values, and values as text. */
#include <math.h>
#include <string.h>

#include "base/parse.h"
#include "config/yaml/scalar.h"
#include "config/override/value.h"

static size_t backslashes(const char *p)
{
    return strspn(p, "\\");
}

static void append_backslashes(KilnText *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        kiln_text_char(text, '\\');
}

/* Backslashes count only in front of the quote, and of ${ where it is resolved:
 * two stand for one, an odd one makes the quote or the ${ text. */
static KilnStatus read_quoted(KilnValueText *value, char quote, KilnText *text,
                              const KilnConfigNode **ret_missing, KilnError *err)
{
    size_t start = value->at++;

    for (;;) {
        const char *p = value->text + value->at;
        size_t n = backslashes(p);
        bool at_quote = p[n] == quote;
        bool at_dollar = value->interpolate != NULL && p[n] == '$' && p[n + 1] == '{';

        if (p[n] == '\0')
            return kiln_value_fail(value, start, err, "the quote %c is not closed", quote);
        append_backslashes(text, at_quote || at_dollar ? n / 2 : n);
        value->at += n;
        if (at_quote && n % 2 == 0) {
            value->at++;
            return KILN_OK;
        }
        if (at_dollar && n % 2 == 0) {
            const KilnConfigNode *node = NULL;
            KilnStatus status = value->interpolate(value->ctx, value, &node, err);

            if (status < 0)
                return status;
            if (node->kind == KILN_NODE_SCALAR && node->scalar == KILN_SCALAR_MISSING)
                *ret_missing = node;
            kiln_value_text(node, text);
            continue;
        }
        kiln_text_char(text, p[n]);
        value->at++;
    }
}

KilnStatus kiln_value_quoted(KilnValueText *value, KilnConfigNode **ret, KilnError *err)
{
    const KilnConfigNode *missing = NULL;
    KilnText text = { 0 };
    KilnConfigNode *node;
    char quote = value->text[value->at], c;
    KilnStatus status = read_quoted(value, quote, &text, &missing, err);

    if (status < 0) {
        kiln_text_release(&text);
        return status;
    }
    node = text.failed ? NULL : kiln_node_string(&value->maker, text.data != NULL ? text.data : "");
    kiln_text_release(&text);
    if (node == NULL)
        return kiln_error_nomem(err, sizeof(*node));
    node->quote = quote;
    if (value->interpolate != NULL && node->scalar == KILN_SCALAR_INTERPOLATION)
        node->scalar = KILN_SCALAR_STR; /* resolved: a ${ that is left is text */
    kiln_value_skip_blanks(value);
    c = value->text[value->at];
    if (c != '\0' && strchr(",]})", c) == NULL)
        return kiln_value_fail(value, value->at, err,
                               "'%c' behind quoted text; put the quotes around the whole value", c);
    *ret = missing != NULL ? (KilnConfigNode *)missing : node;
    return KILN_OK;
}

/* Python's repr of text, for text in lists and mappings. */
static void quote_text(const char *p, KilnText *text)
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

static void float_text(const char *written, KilnText *text)
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

static void scalar_text(const KilnConfigNode *node, bool nested, KilnText *text)
{
    switch (node->scalar) {
    case KILN_SCALAR_NULL:
        kiln_text_append(text, "None");
        return;
    case KILN_SCALAR_BOOL:
        kiln_text_append(text, strcmp(node->text, "true") == 0 ? "True" : "False");
        return;
    case KILN_SCALAR_FLOAT:
        float_text(node->text, text);
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
        quote_text(node->text, text);
    else
        kiln_text_append(text, node->text);
}

static void nested_text(const KilnConfigNode *node, bool nested, KilnText *text)
{
    bool map = node->kind == KILN_NODE_MAP;

    if (node->kind == KILN_NODE_SCALAR) {
        scalar_text(node, nested, text);
        return;
    }
    kiln_text_char(text, map ? '{' : '[');
    for (size_t i = 0; i < node->count; i++) {
        if (i > 0)
            kiln_text_append(text, ", ");
        if (map && node->entries[i].key_typed)
            kiln_text_printf(text, "%s: ", node->entries[i].key);
        else if (map) {
            quote_text(node->entries[i].key, text);
            kiln_text_append(text, ": ");
        }
        nested_text(node->entries[i].value, true, text);
    }
    kiln_text_char(text, map ? '}' : ']');
}

void kiln_value_text(const KilnConfigNode *node, KilnText *text)
{
    nested_text(node, false, text);
}

/* ---- As arguments are written ----------------------------------------------------- */

/* Backslashes are doubled where they would count: in front of the quote. */
static void write_quoted(const char *p, char quote, KilnText *text)
{
    kiln_text_char(text, quote);
    while (*p != '\0') {
        size_t n = backslashes(p);

        p += n;
        append_backslashes(text, *p == quote || *p == '\0' ? 2 * n : n);
        if (*p == quote)
            kiln_text_char(text, '\\');
        if (*p != '\0')
            kiln_text_char(text, *p++);
    }
    kiln_text_char(text, quote);
}

/* Can it stand without quotes, by escapes at the most? Hydra never asks, and then
 * can't read what it wrote. */
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
        scalar_text(node, false, text);
    else
        write_text(node->text, nested, text);
}

/* A key that is no text has lost its type, and is told by its spelling. */
static void write_key(const KilnEntry *entry, KilnText *text)
{
    bool word = strcmp(entry->key, "true") == 0 || strcmp(entry->key, "false") == 0;

    if (entry->key_typed && word)
        kiln_text_append(text, *entry->key == 't' ? "True" : "False");
    else if (entry->key_typed && strpbrk(entry->key, ".eEnN") != NULL)
        float_text(entry->key, text);
    else if (entry->key_typed)
        kiln_text_append(text, entry->key);
    else
        write_text(entry->key, false, text);
}

static void write_nested(const KilnConfigNode *node, bool nested, KilnText *text)
{
    bool map = node->kind == KILN_NODE_MAP;

    if (node->kind == KILN_NODE_SCALAR) {
        write_scalar(node, nested, text);
        return;
    }
    kiln_text_char(text, map ? '{' : '[');
    for (size_t i = 0; i < node->count; i++) {
        if (i > 0)
            kiln_text_char(text, ',');
        if (map) {
            write_key(&node->entries[i], text);
            kiln_text_char(text, ':');
        }
        write_nested(node->entries[i].value, true, text);
    }
    kiln_text_char(text, map ? '}' : ']');
}

void kiln_value_written(const KilnConfigNode *node, KilnText *text)
{
    write_nested(node, false, text);
}
