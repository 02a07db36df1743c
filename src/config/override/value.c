/* Parses values of the override grammar. */
#include "config/override/value.h"

#include <stdlib.h>
#include <string.h>

#include "config/interpolate/interpolate.h"
#include "config/yaml/scalar.h"
#include "config/sweep/sweep_value.h"

enum { MOST_LEVELS = 64 };

KilnStatus kiln_value_fail(const KilnValueParser *parser, size_t at, const char *format, ...)
{
    const KilnOrigin *origin = &parser->maker.origin;
    va_list args;

    va_start(args, format);
    kiln_error_vset(parser->err, KILN_E_SYNTAX, format, args);
    va_end(args);
    if (parser->err != NULL && parser->functions && origin->line == 0)
        parser->err->origin = (KilnOrigin) { .source = origin->source, .column = (int)at + 1 };
    if (parser->text[at] == '\0')
        return kiln_error_prefix(parser->err, "at the end: ");
    return kiln_error_prefix(parser->err, "column %zu: ", at + 1);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

void kiln_value_skip_blanks(KilnValueParser *parser)
{
    parser->at += strspn(parser->text + parser->at, " \t");
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

static KilnStatus add_interpolation(KilnValueParser *parser, Piece *piece)
{
    const KilnConfigNode *node = NULL;
    size_t start = parser->at;
    KilnStatus status;

    if (parser->resolution == NULL) {
        size_t end = kiln_value_skip_interpolation(parser->text, start);

        if (end == 0)
            return kiln_value_fail(parser, start, "'${' is not closed by '}'");
        if (end - start == strlen("${}"))
            return kiln_value_fail(parser, start, "${} names nothing; write ${key}");
        kiln_text_append_n(&piece->text, parser->text + start, end - start);
        piece->mixed = true;
        parser->at = end;
        return KILN_OK;
    }
    status = kiln_resolve_interpolation(parser, &node);
    if (status < 0)
        return status;
    if (kiln_node_is_scalar(node, KILN_SCALAR_MISSING))
        piece->missing = node;
    piece->only = piece->text.length == 0 && !piece->mixed ? node : NULL;
    piece->mixed = true;
    kiln_value_text(node, &piece->text);
    return KILN_OK;
}

/* Blanks at the end of an element or before a key's colon are not part of it. */
static bool only_blanks_left(const KilnValueParser *parser, bool key)
{
    const char *p = parser->text + parser->at;

    p += strspn(p, " \t");
    return is_end(*p) || (key && *p == ':');
}

static KilnStatus odd_character(KilnValueParser *parser)
{
    char c = parser->text[parser->at];

    if (c == '\'' || c == '"')
        return kiln_value_fail(parser, parser->at,
                               "a quote in the middle of a value; quote the whole value, or write "
                               "it without");
    if (c == '=')
        return kiln_value_fail(parser, parser->at,
                               "'=' in a value must be quoted ('a=b') or escaped (a\\=b)");
    return kiln_value_fail(parser, parser->at,
                           "'%c' is not allowed in an unquoted value; quote the value: "
                           "key='value' (and once more for the shell: \"key='value'\")",
                           c);
}

static KilnStatus read_pieces(KilnValueParser *parser, bool key, Piece *piece)
{
    KilnStatus status = KILN_OK;

    while (status >= 0) {
        const char *p = parser->text + parser->at;

        if (is_end(*p) || (key && *p == ':'))
            break;
        if (is_blank(*p) && only_blanks_left(parser, key)) {
            kiln_value_skip_blanks(parser);
            break;
        }
        if (*p == '$' && p[1] == '{' && !key) {
            status = add_interpolation(parser, piece);
            continue;
        }
        if (*p == '\\' && p[1] != '\0' && strchr("\\()[]{}:=, \t", p[1]) != NULL) {
            kiln_text_char(&piece->text, p[1]);
            piece->escaped = true;
            parser->at += 2;
        } else if (kiln_is_word(*p) || is_blank(*p) || strchr("/\\+.$%*@?|:", *p) != NULL ||
                   (unsigned char)*p >= 0x80) {
            kiln_text_char(&piece->text, *p);
            parser->at++;
        } else {
            return odd_character(parser);
        }
        piece->only = NULL;
    }
    return status;
}

/* The scalar that the pieces make. */
static KilnConfigNode *from_pieces(KilnValueParser *parser, Piece *piece)
{
    const char *text = kiln_text_to_arena(&piece->text, parser->maker.arena);
    KilnScalar type;

    if (text == NULL)
        return NULL;
    if (parser->resolution != NULL && piece->mixed)
        type = KILN_SCALAR_STR;
    else if (piece->escaped || piece->mixed)
        type = kiln_scalar_text(text);
    else
        type = kiln_scalar_value(parser->maker.arena, text, &text);
    return kiln_node_scalar(&parser->maker, type, text);
}

static KilnStatus read_unquoted(KilnValueParser *parser, bool key, KilnConfigNode **ret)
{
    Piece piece = { 0 };
    size_t start = parser->at;
    KilnStatus status = read_pieces(parser, key, &piece);
    const KilnConfigNode *whole = piece.missing != NULL ? piece.missing : piece.only;

    if (status >= 0 && whole == NULL && piece.text.length == 0 && !piece.mixed)
        status = kiln_value_fail(parser, start, "a value is missing here");
    if (status >= 0) /* an interpolation's value is shared, not copied: nobody changes it */
        *ret = whole != NULL ? (KilnConfigNode *)whole : from_pieces(parser, &piece);
    kiln_text_release(&piece.text);
    return status >= 0 && *ret == NULL ? kiln_error_nomem(parser->err, sizeof(**ret)) : status;
}

/* ---- Quoted text ------------------------------------------------------------- */

/* Backslashes escape only before the quote, and before ${ where it is resolved: two stand for
 * one, and an odd one makes the quote or the ${ plain text. */
static KilnStatus read_quoted_text(KilnValueParser *parser, char quote, KilnText *text,
                                   const KilnConfigNode **ret_missing)
{
    size_t start = parser->at++;

    for (;;) {
        const char *p = parser->text + parser->at;
        size_t n = strspn(p, "\\");
        bool at_quote = p[n] == quote;
        bool at_dollar = parser->resolution != NULL && p[n] == '$' && p[n + 1] == '{';

        if (p[n] == '\0')
            return kiln_value_fail(parser, start, "the quote %c is not closed", quote);
        kiln_text_append_n(text, p, at_quote || at_dollar ? n / 2 : n);
        parser->at += n;
        if (at_quote && n % 2 == 0) {
            parser->at++;
            return KILN_OK;
        }
        if (at_dollar && n % 2 == 0) {
            const KilnConfigNode *node = NULL;
            KilnStatus status = kiln_resolve_interpolation(parser, &node);

            if (status < 0)
                return status;
            if (kiln_node_is_scalar(node, KILN_SCALAR_MISSING))
                *ret_missing = node;
            kiln_value_text(node, text);
            continue;
        }
        kiln_text_char(text, p[n]);
        parser->at++;
    }
}

static KilnStatus read_quoted(KilnValueParser *parser, KilnConfigNode **ret)
{
    const KilnConfigNode *missing = NULL;
    KilnText text = { 0 };
    char quote = parser->text[parser->at], c;
    KilnStatus status = read_quoted_text(parser, quote, &text, &missing);
    KilnConfigNode *node = kiln_node_string(&parser->maker,
                                            kiln_text_to_arena(&text, parser->maker.arena));

    if (status < 0)
        return status;
    if (node == NULL)
        return kiln_error_nomem(parser->err, sizeof(*node));
    node->quote = quote;
    if (parser->resolution != NULL && node->scalar == KILN_SCALAR_INTERPOLATION)
        node->scalar = KILN_SCALAR_STR; /* resolved: a ${ that is left is text */
    kiln_value_skip_blanks(parser);
    c = parser->text[parser->at];
    if (c != '\0' && strchr(",]})", c) == NULL)
        return kiln_value_fail(parser, parser->at,
                               "'%c' after quoted text; put the quotes around the whole value", c);
    *ret = missing != NULL ? (KilnConfigNode *)missing : node;
    return KILN_OK;
}

/* ---- Lists, mappings, calls --------------------------------------------------- */

KilnEntry *kiln_value_append(KilnValueParser *parser, KilnConfigNode *node, const char *key,
                             KilnConfigNode *item)
{
    KilnConfigNode *parent = item != NULL ? item->parent : NULL;
    KilnEntry *entry = kiln_node_append(parser->maker.arena, node, key, parser->maker.origin, item);

    if (parent != NULL)
        item->parent = parent;
    return entry;
}

/* choice(1,2) and the like are whole values. */
static KilnStatus refuse_sweep(const KilnValueParser *parser, size_t at, char close,
                               const KilnConfigNode *item)
{
    if (close == ')' || kiln_sweep_value_of(parser, item) == NULL)
        return KILN_OK;
    if (close == '\0')
        return kiln_value_fail(parser, at,
                               "a function with several values among others; write them all with "
                               "commas, or all as its arguments");
    return kiln_value_fail(parser, at,
                           "several values are not allowed inside [...] or {...}; write the whole "
                           "lists: key=[1,x],[2,x]");
}

/* Length of the word before `sign`, which is at *ret_sign; 0: none. */
static size_t word_before(const KilnValueParser *parser, char sign, size_t *ret_sign)
{
    const char *p = parser->text + parser->at;
    size_t n = 0, end;

    while (kiln_is_word(p[n]))
        n++;
    end = n + strspn(p + n, " \t");
    *ret_sign = parser->at + end;
    return p[end] == sign ? n : 0;
}

/* The name of an argument name=value, in the arena; NULL: none. */
static const char *argument_name(KilnValueParser *parser)
{
    size_t sign, n = word_before(parser, '=', &sign);

    if (n == 0)
        return NULL;
    const char *name = kiln_arena_strndup(parser->maker.arena, parser->text + parser->at, n);
    parser->at = sign + 1;
    kiln_value_skip_blanks(parser);
    return name;
}

static KilnStatus read_pair(KilnValueParser *parser, KilnConfigNode *map)
{
    KilnConfigNode *key = NULL, *item = NULL;
    size_t start = parser->at;
    KilnEntry *entry;
    KilnStatus status;

    if (parser->text[start] == '\'' || parser->text[start] == '"')
        return kiln_value_fail(parser, start, "keys in {...} are written without quotes");
    status = read_unquoted(parser, true, &key);
    if (status < 0)
        return status;
    if (parser->text[parser->at] != ':')
        return kiln_value_fail(parser, parser->at,
                               "expected ':' after the key '%s'; text with braces is quoted twice, "
                               "for the shell and for kiln: 'key=\"{%s}\"'",
                               key->text, key->text);
    if (key->scalar == KILN_SCALAR_NULL)
        return kiln_value_fail(parser, start, "a key must not be null");
    parser->at++;
    kiln_value_skip_blanks(parser);
    start = parser->at;
    status = kiln_value_element(parser, &item);
    if (status >= 0)
        status = refuse_sweep(parser, start, '}', item);
    if (status < 0)
        return status;
    /* The last of two equal keys wins, as in Python's dict. */
    entry = kiln_node_entry(map, key->text);
    if (entry != NULL)
        kiln_node_remove(map, entry);
    entry = kiln_value_append(parser, map, key->text, item);
    if (entry != NULL)
        entry->key_typed = key->scalar != KILN_SCALAR_STR && key->scalar != KILN_SCALAR_MISSING;
    return KILN_OK;
}

static KilnStatus read_item(KilnValueParser *parser, char close, bool gaps, KilnConfigNode *list)
{
    const char *name = close == ')' ? argument_name(parser) : NULL;
    KilnConfigNode *item = NULL;
    size_t start = parser->at;
    char c = parser->text[start];

    if (gaps && (c == ',' || c == close))
        item = kiln_node_string(&parser->maker, "");
    KilnStatus status = item != NULL ? KILN_OK : kiln_value_element(parser, &item);
    if (status < 0)
        return status;
    kiln_value_append(parser, list, name, item);
    kiln_value_skip_blanks(parser);
    /* The whole value may be one sweep. */
    if (close == '\0' && list->count == 1 && parser->text[parser->at] != ',')
        return KILN_OK;
    return refuse_sweep(parser, start, close, item);
}

KilnStatus kiln_value_sequence(KilnValueParser *parser, char close, bool gaps, KilnConfigNode *node)
{
    bool map = node->kind == KILN_NODE_MAP;
    char c = ',';

    kiln_value_skip_blanks(parser);
    if (parser->text[parser->at] == close) {
        parser->at++;
        return KILN_OK;
    }
    while (c != close) {
        kiln_value_skip_blanks(parser);
        KilnStatus status = map ? read_pair(parser, node) : read_item(parser, close, gaps, node);

        if (status < 0)
            return status;
        kiln_value_skip_blanks(parser);
        c = parser->text[parser->at];
        if (map && c != ',' && c != close)
            return kiln_value_fail(parser, parser->at, "expected ',' or '}' in {...}");
        if (c == '\0' && close != '\0')
            return kiln_value_fail(parser, parser->at, "'%c' is missing at the end", close);
        if (c != ',' && c != close && close == '\0')
            return kiln_value_fail(parser, parser->at,
                                   "'%c' closes nothing; quote the value if it is text", c);
        if (c != ',' && c != close)
            return kiln_value_fail(parser, parser->at, "expected ',' or '%c', got '%c'", close, c);
        parser->at++;
    }
    return KILN_OK;
}

static KilnStatus read_call(KilnValueParser *parser, size_t length, size_t open,
                            KilnConfigNode **ret)
{
    const char *name = kiln_arena_strndup(parser->maker.arena, parser->text + parser->at, length);
    KilnConfigNode *arguments = kiln_node_new(&parser->maker, KILN_NODE_LIST);
    size_t at = parser->at;
    KilnStatus status;

    if (name == NULL || arguments == NULL)
        return kiln_error_nomem(parser->err, length);
    parser->at = open + 1;
    status = kiln_value_sequence(parser, ')', false, arguments);
    if (status < 0)
        return status;
    return kiln_function_call(parser, name, at, arguments, ret);
}

KilnStatus kiln_value_element(KilnValueParser *parser, KilnConfigNode **ret)
{
    char c = parser->text[parser->at];
    size_t open = 0, length = 0;
    KilnStatus status;

    if (parser->functions && parser->maker.origin.line == 0) /* of an argument */
        parser->maker.origin.column = (int)parser->at + 1;
    if (parser->depth >= MOST_LEVELS)
        return kiln_value_fail(parser, parser->at, "nested deeper than %d levels", MOST_LEVELS);
    if (c == '\'' || c == '"')
        return read_quoted(parser, ret);
    if (parser->functions && !kiln_is_digit(c) && c != '-')
        length = word_before(parser, '(', &open);
    if (length == 0 && c != '[' && c != '{')
        return read_unquoted(parser, false, ret);
    parser->depth++;
    if (length > 0) {
        status = read_call(parser, length, open, ret);
    } else {
        KilnConfigNode *node = kiln_node_new(&parser->maker,
                                             c == '[' ? KILN_NODE_LIST : KILN_NODE_MAP);

        parser->at++;
        if (node == NULL)
            status = kiln_error_nomem(parser->err, sizeof(*node));
        else
            status = kiln_value_sequence(parser, c == '[' ? ']' : '}', !parser->functions, node);
        *ret = node;
    }
    parser->depth--;
    if (status >= 0 && parser->maker.arena->failed)
        status = kiln_error_nomem(parser->err, sizeof(**ret));
    return status;
}
