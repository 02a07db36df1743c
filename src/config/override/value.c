/* Parses values of the override grammar. */
#include "config/override/value.h"

#include <stdlib.h>
#include <string.h>

#include "config/yaml/scalar.h"
#include "config/sweep/sweep_value.h"

enum { MOST_LEVELS = 64 };

void kiln_value_point(const KilnValueText *value, size_t at, KilnError *err)
{
    const KilnOrigin *origin = &value->maker.origin;

    if (err == NULL || !value->functions || origin->line > 0)
        return;
    err->origin = (KilnOrigin) { .source = origin->source, .column = (int)at + 1 };
}

KilnStatus kiln_value_fail(const KilnValueText *value, size_t at, KilnError *err,
                           const char *format, ...)
{
    va_list args;

    va_start(args, format);
    kiln_error_vset(err, KILN_E_SYNTAX, format, args);
    va_end(args);
    kiln_value_point(value, at, err);
    if (value->text[at] == '\0')
        return kiln_error_prefix(err, "at the end: ");
    return kiln_error_prefix(err, "column %zu: ", at + 1);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

void kiln_value_skip_blanks(KilnValueText *value)
{
    while (is_blank(value->text[value->at]))
        value->at++;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

/* Ends an element: nothing, a comma, a closing bracket. */
static bool is_end(char c)
{
    return c == '\0' || c == ',' || c == ']' || c == '}' || c == ')';
}

size_t kiln_value_skip_interpolation(const char *text, size_t at)
{
    int depth = 0;
    char quote = '\0';

    for (; text[at] != '\0'; at++) {
        char c = text[at];

        if (c == '\\' && text[at + 1] != '\0')
            at++;
        else if (quote != '\0')
            quote = c == quote ? '\0' : quote;
        else if (c == '\'' || c == '"')
            quote = c;
        else if (c == '{')
            depth++;
        else if (c == '}' && --depth == 0)
            return at + 1;
    }
    return 0;
}

/* ---- Unquoted text ----------------------------------------------------------- */

typedef struct Piece {
    KilnText text;
    const KilnConfigNode *only;    /* an interpolation that is all so far */
    const KilnConfigNode *missing; /* an interpolation gave ??? */
    bool escaped, mixed;
} Piece;

static KilnStatus add_interpolation(KilnValueText *value, Piece *piece, KilnError *err)
{
    const KilnConfigNode *node = NULL;
    size_t start = value->at;
    KilnStatus status;

    if (value->interpolate == NULL) {
        size_t end = kiln_value_skip_interpolation(value->text, start);

        if (end == 0)
            return kiln_value_fail(value, start, err, "'${' is not closed by '}'");
        if (end - start == strlen("${}"))
            return kiln_value_fail(value, start, err, "${} names nothing; write ${key}");
        kiln_text_append_n(&piece->text, value->text + start, end - start);
        piece->mixed = true;
        value->at = end;
        return KILN_OK;
    }
    status = value->interpolate(value->ctx, value, &node, err);
    if (status < 0)
        return status;
    if (node->kind == KILN_NODE_SCALAR && node->scalar == KILN_SCALAR_MISSING)
        piece->missing = node;
    piece->only = piece->text.length == 0 && !piece->mixed ? node : NULL;
    piece->mixed = true;
    kiln_value_text(node, &piece->text);
    return KILN_OK;
}

/* Blanks at the end of an element, or in front of a key's colon, are not part of it. */
static bool only_blanks_left(const KilnValueText *value, bool key)
{
    size_t at = value->at;

    while (is_blank(value->text[at]))
        at++;
    return is_end(value->text[at]) || (key && value->text[at] == ':');
}

static KilnStatus odd_character(KilnValueText *value, KilnError *err)
{
    char c = value->text[value->at];

    if (c == '\'' || c == '"')
        return kiln_value_fail(value, value->at, err,
                               "a quote in the middle of a value; quote the whole value, or write "
                               "it without");
    if (c == '=')
        return kiln_value_fail(value, value->at, err,
                               "'=' in a value must be quoted ('a=b') or escaped (a\\=b)");
    return kiln_value_fail(value, value->at, err,
                           "'%c' can't stand in an unquoted value; quote the value: "
                           "key='value' (and once more for the shell: \"key='value'\")",
                           c);
}

static KilnStatus read_pieces(KilnValueText *value, bool key, Piece *piece, KilnError *err)
{
    KilnStatus status = KILN_OK;

    while (status >= 0) {
        const char *p = value->text + value->at;

        if (is_end(*p) || (key && *p == ':'))
            break;
        if (is_blank(*p) && only_blanks_left(value, key)) {
            kiln_value_skip_blanks(value);
            break;
        }
        if (*p == '$' && p[1] == '{' && !key) {
            status = add_interpolation(value, piece, err);
            continue;
        }
        if (*p == '\\' && p[1] != '\0' && strchr("\\()[]{}:=, \t", p[1]) != NULL) {
            kiln_text_char(&piece->text, p[1]);
            piece->escaped = true;
            value->at += 2;
        } else if (is_word(*p) || is_blank(*p) || strchr("/\\+.$%*@?|:", *p) != NULL ||
                   (unsigned char)*p >= 0x80) {
            kiln_text_char(&piece->text, *p);
            value->at++;
        } else {
            return odd_character(value, err);
        }
        piece->only = NULL;
    }
    return status;
}

/* The scalar that the pieces make. */
static KilnConfigNode *from_pieces(KilnValueText *value, const Piece *piece)
{
    const char *text = kiln_arena_strndup(
        value->maker.arena, piece->text.data != NULL ? piece->text.data : "", piece->text.length);
    KilnScalar type;

    if (text == NULL)
        return NULL;
    if (value->interpolate != NULL && piece->mixed)
        type = KILN_SCALAR_STR;
    else if (piece->escaped || piece->mixed)
        type = kiln_scalar_text(text);
    else
        type = kiln_scalar_value(value->maker.arena, text, &text);
    return kiln_node_scalar(&value->maker, type, text);
}

static KilnStatus read_unquoted(KilnValueText *value, bool key, KilnConfigNode **ret,
                                KilnError *err)
{
    Piece piece = { 0 };
    size_t start = value->at;
    KilnStatus status = read_pieces(value, key, &piece, err);
    const KilnConfigNode *whole = piece.missing != NULL ? piece.missing : piece.only;

    if (status >= 0 && piece.text.failed)
        status = kiln_error_nomem(err, 1);
    if (status >= 0 && whole == NULL && piece.text.length == 0 && !piece.mixed)
        status = kiln_value_fail(value, start, err, "a value is missing here");
    if (status >= 0) {
        /* An interpolation's value is shared, not copied: nobody changes it. */
        *ret = whole != NULL ? (KilnConfigNode *)whole : from_pieces(value, &piece);
        if (*ret == NULL)
            status = kiln_error_nomem(err, sizeof(**ret));
    }
    kiln_text_release(&piece.text);
    return status;
}

/* ---- Lists, mappings, calls --------------------------------------------------- */

static KilnStatus append(KilnValueText *value, KilnConfigNode *node, const char *key,
                         KilnConfigNode *child, KilnError *err)
{
    const KilnConfigNode *parent = child->parent;

    if (kiln_node_append(value->maker.arena, node, key, value->maker.origin, child) == NULL)
        return kiln_error_nomem(err, sizeof(KilnEntry));
    if (parent != NULL) /* a value of the tree stays where it is */
        child->parent = (KilnConfigNode *)parent;
    return KILN_OK;
}

/* choice(1,2) and the like are whole values. */
static KilnStatus refuse_sweep(const KilnValueText *value, size_t at, const KilnConfigNode *item,
                               KilnError *err)
{
    if (kiln_sweep_value_of(value, item) == NULL)
        return KILN_OK;
    return kiln_value_fail(value, at, err,
                           "several values can't stand inside [...] or {...}; write the whole "
                           "lists: key=[1,x],[2,x]");
}

/* name= in front of an argument; the name, in the arena, or NULL. */
static const char *argument_name(KilnValueText *value)
{
    size_t at = value->at, n = 0;

    while (is_word(value->text[at + n]))
        n++;
    for (at += n; is_blank(value->text[at]);)
        at++;
    if (n == 0 || value->text[at] != '=')
        return NULL;
    const char *name = kiln_arena_strndup(value->maker.arena, value->text + value->at, n);
    value->at = at + 1;
    kiln_value_skip_blanks(value);
    return name;
}

KilnStatus kiln_value_sequence(KilnValueText *value, char close, bool gaps, KilnConfigNode *list,
                               KilnError *err)
{
    kiln_value_skip_blanks(value);
    if (value->text[value->at] == close) {
        value->at++;
        return KILN_OK;
    }
    for (;;) {
        const char *name = close == ')' ? argument_name(value) : NULL;
        KilnConfigNode *item = NULL;
        size_t start = value->at;
        KilnStatus status;
        char c = value->text[start];

        if (gaps && (c == ',' || c == close))
            item = kiln_node_string(&value->maker, "");
        status = item != NULL ? KILN_OK : kiln_value_element(value, &item, err);
        if (status >= 0)
            status = append(value, list, name, item, err);
        if (status >= 0 && close != ')')
            status = refuse_sweep(value, start, item, err);
        if (status < 0)
            return status;
        kiln_value_skip_blanks(value);
        c = value->text[value->at];
        if (c == '\0')
            return kiln_value_fail(value, value->at, err, "'%c' is missing at the end", close);
        if (c != ',' && c != close)
            return kiln_value_fail(value, value->at, err, "expected ',' or '%c', got '%c'", close,
                                   c);
        value->at++;
        if (c == close)
            return KILN_OK;
        kiln_value_skip_blanks(value);
    }
}

static KilnStatus read_pair(KilnValueText *value, KilnConfigNode *map, KilnError *err)
{
    KilnConfigNode *key = NULL, *item = NULL;
    size_t start = value->at;
    KilnEntry *other;
    KilnStatus status;

    if (value->text[start] == '\'' || value->text[start] == '"')
        return kiln_value_fail(value, start, err, "keys in {...} are written without quotes");
    status = read_unquoted(value, true, &key, err);
    if (status < 0)
        return status;
    if (value->text[value->at] != ':')
        return kiln_value_fail(value, value->at, err,
                               "expected ':' after the key '%s'; text with braces is quoted twice, "
                               "for the shell and for kiln: 'key=\"{%s}\"'",
                               key->text, key->text);
    if (key->scalar == KILN_SCALAR_NULL)
        return kiln_value_fail(value, start, err, "a key must not be null");
    value->at++;
    kiln_value_skip_blanks(value);
    start = value->at;
    status = kiln_value_element(value, &item, err);
    if (status >= 0)
        status = refuse_sweep(value, start, item, err);
    if (status < 0)
        return status;
    /* The last of two equal keys wins, as in Python's dict. */
    other = kiln_node_entry(map, key->text);
    if (other != NULL)
        kiln_node_remove(map, other);
    status = append(value, map, key->text, item, err);
    if (status >= 0)
        map->entries[map->count - 1].key_typed = key->scalar != KILN_SCALAR_STR &&
                                                 key->scalar != KILN_SCALAR_MISSING;
    return status;
}

static KilnStatus read_map(KilnValueText *value, KilnConfigNode *map, KilnError *err)
{
    kiln_value_skip_blanks(value);
    if (value->text[value->at] == '}') {
        value->at++;
        return KILN_OK;
    }
    for (;;) {
        KilnStatus status = read_pair(value, map, err);
        char c;

        if (status < 0)
            return status;
        kiln_value_skip_blanks(value);
        c = value->text[value->at];
        if (c != ',' && c != '}')
            return kiln_value_fail(value, value->at, err, "expected ',' or '}' in {...}");
        value->at++;
        kiln_value_skip_blanks(value);
        if (c == '}')
            return KILN_OK;
    }
}

/* Length of the name of a call `name(`, or 0. */
static size_t call_name(const KilnValueText *value, size_t *ret_open)
{
    const char *p = value->text + value->at;
    size_t n = 0, open;

    if (!value->functions || (*p >= '0' && *p <= '9') || *p == '-')
        return 0;
    while (is_word(p[n]))
        n++;
    for (open = n; is_blank(p[open]);)
        open++;
    *ret_open = value->at + open;
    return p[open] == '(' ? n : 0;
}

static KilnStatus read_call(KilnValueText *value, size_t length, size_t open, KilnConfigNode **ret,
                            KilnError *err)
{
    const char *name = kiln_arena_strndup(value->maker.arena, value->text + value->at, length);
    KilnConfigNode *arguments = kiln_node_new(&value->maker, KILN_NODE_LIST);
    size_t at = value->at;
    KilnStatus status;

    if (name == NULL || arguments == NULL)
        return kiln_error_nomem(err, length);
    value->at = open + 1;
    status = kiln_value_sequence(value, ')', false, arguments, err);
    if (status < 0)
        return status;
    return kiln_function_call(value, name, at, arguments, ret, err);
}

KilnStatus kiln_value_element(KilnValueText *value, KilnConfigNode **ret, KilnError *err)
{
    char c = value->text[value->at];
    size_t open = 0, length;
    KilnStatus status;

    if (value->functions && value->maker.origin.line == 0) /* of an argument */
        value->maker.origin.column = (int)value->at + 1;
    if (value->depth >= MOST_LEVELS)
        return kiln_value_fail(value, value->at, err, "nested deeper than %d levels", MOST_LEVELS);
    if (c == '\'' || c == '"')
        return kiln_value_quoted(value, ret, err);
    length = call_name(value, &open);
    if (length == 0 && c != '[' && c != '{')
        return read_unquoted(value, false, ret, err);
    value->depth++;
    if (length > 0) {
        status = read_call(value, length, open, ret, err);
    } else {
        KilnConfigNode *node = kiln_node_new(&value->maker,
                                             c == '[' ? KILN_NODE_LIST : KILN_NODE_MAP);

        value->at++;
        if (node == NULL)
            status = kiln_error_nomem(err, sizeof(*node));
        else
            status = c == '[' ? kiln_value_sequence(value, ']', !value->functions, node, err)
                              : read_map(value, node, err);
        *ret = node;
    }
    value->depth--;
    return status;
}
