/* Recognizes the usual slips in YAML from where libyaml stopped and from the lines around. */
#include "config/yaml/syntax_hint.h"

#include <string.h>

typedef struct Line {
    const char *start, *end;
    size_t number; /* from 0 */
} Line;

typedef struct Slip {
    const yaml_parser_t *parser;
    const char *text;
    size_t size;
    Line here;  /* of the problem */
    Line above; /* the nearest that says something; start == NULL: none */
    KilnError *err;
    yaml_mark_t *mark;
} Slip;

static Line line_at(const char *text, size_t size, size_t number)
{
    const char *end = text + size;
    Line line = { .start = text };

    while (line.number < number && line.start < end) {
        const char *stop = memchr(line.start, '\n', (size_t)(end - line.start));

        line.start = stop != NULL ? stop + 1 : end;
        line.number++;
    }
    line.end = memchr(line.start, '\n', (size_t)(end - line.start));
    if (line.end == NULL)
        line.end = end;
    return line;
}

static size_t indent_of(const Line *line)
{
    size_t n = 0;

    while (line->start + n < line->end && line->start[n] == ' ')
        n++;
    return n;
}

static bool says_nothing(const Line *line)
{
    const char *p = line->start;

    while (p < line->end && (*p == ' ' || *p == '\t' || *p == '\r'))
        p++;
    return p == line->end || *p == '#';
}

/* The ':' that ends a key at or after `p`; NULL: the line has none. */
static const char *find_colon(const Line *line, const char *p)
{
    for (; p < line->end; p++)
        if (*p == ':' && (p + 1 == line->end || p[1] == ' ' || p[1] == '\r'))
            return p;
    return NULL;
}

static void put_mark(const Slip *slip, const Line *line, const char *at)
{
    *slip->mark = (yaml_mark_t) { .line = line->number, .column = 0 };
    for (const char *p = line->start; p < at; p++)
        slip->mark->column += ((unsigned char)*p & 0xc0) != 0x80;
}

static bool says(const char *text, const char *part)
{
    return text != NULL && strstr(text, part) != NULL;
}

/* The nearest line above that says something; start == NULL: there is none. */
static Line line_above(const Slip *slip)
{
    Line line = slip->here;

    while (line.number > 0) {
        line.end = line.start - 1;
        for (line.start = line.end; line.start > slip->text && line.start[-1] != '\n';)
            line.start--;
        line.number--;
        if (!says_nothing(&line))
            return line;
    }
    return (Line) { .start = NULL };
}

/* ---- The slips ------------------------------------------------------------------- */

static bool is_tab(const Slip *slip)
{
    const char *p = slip->here.start;

    while (p < slip->here.end && *p == ' ')
        p++;
    if (p == slip->here.end || *p != '\t')
        return false;
    put_mark(slip, &slip->here, p);
    kiln_error_set(slip->err, KILN_E_SYNTAX,
                   "tabs are not allowed for indentation; write blanks, two for each level");
    return true;
}

/* `%d`, `@x` and `x` in backquotes begin no plain text. */
static bool is_reserved(const Slip *slip)
{
    const char *p = slip->here.start + slip->parser->problem_mark.column;

    if (!says(slip->parser->problem, "cannot start any token") || p >= slip->here.end ||
        strchr("%@`", *p) == NULL)
        return false;
    kiln_error_set(slip->err, KILN_E_SYNTAX, "text that begins with %c must be quoted: '%c...'", *p,
                   *p);
    return true;
}

/* A line that stands further in than a whole `key: value` above it, or between two levels. */
static bool is_indentation(const Slip *slip)
{
    size_t here = indent_of(&slip->here), above;
    const char *colon;

    if (slip->above.start == NULL ||
        (!says(slip->parser->problem, "mapping values are not allowed") &&
         !says(slip->parser->problem, "did not find expected")))
        return false;
    above = indent_of(&slip->above);
    colon = find_colon(&slip->above, slip->above.start);
    bool deeper = here > above && colon != NULL && colon + 1 < slip->above.end;
    if (!deeper && (here >= above || says(slip->parser->context, "flow")))
        return false;
    put_mark(slip, &slip->here, slip->here.start + here);
    if (deeper)
        kiln_error_set(slip->err, KILN_E_SYNTAX,
                       "wrong indentation: %zu blanks, but line %zu above has %zu and a value of "
                       "its own; keys of one mapping begin in the same column",
                       here, slip->above.number + 1, above);
    else
        kiln_error_set(slip->err, KILN_E_SYNTAX,
                       "wrong indentation: %zu blanks, which is less than the %zu of line %zu, and "
                       "no mapping around it begins there; keys of one mapping begin in the same "
                       "column",
                       here, above, slip->above.number + 1);
    return true;
}

/* `name: a: b` */
static bool is_second_colon(const Slip *slip)
{
    const char *colon = find_colon(&slip->here, slip->here.start);

    if (!says(slip->parser->problem, "mapping values are not allowed") || colon == NULL ||
        find_colon(&slip->here, colon + 1) == NULL)
        return false;
    put_mark(slip, &slip->here, find_colon(&slip->here, colon + 1));
    kiln_error_set(slip->err, KILN_E_SYNTAX,
                   "a second ': ' in the line; text with ': ' in it must be quoted: %.*s: '...'",
                   (int)(colon - slip->here.start), slip->here.start);
    return true;
}

/* `lr:0.3`, `lr 0.3`, `lr=0.3` */
static bool is_no_key(const Slip *slip)
{
    Line line;
    const char *start, *separator, *value;

    if (!says(slip->parser->problem, "could not find expected ':'"))
        return false;
    line = line_at(slip->text, slip->size, slip->parser->context_mark.line);
    start = line.start + indent_of(&line);
    for (separator = start; separator < line.end && strchr(":= \t", *separator) == NULL;)
        separator++;
    for (value = separator; value < line.end && strchr(":= \t\r", *value) != NULL;)
        value++;
    put_mark(slip, &line, start);
    if (value < line.end)
        kiln_error_set(slip->err, KILN_E_SYNTAX,
                       "expected `key: value`, a colon and a blank after the key: `%.*s: %.*s`",
                       (int)(separator - start), start, (int)(line.end - value), value);
    else
        kiln_error_set(slip->err, KILN_E_SYNTAX,
                       "expected `key: value`, a colon and a blank after the key");
    return true;
}

/* A quote or bracket that nothing closes: the problem is where it stands, not at the end of the
 * file. */
static bool is_open(const Slip *slip)
{
    const yaml_parser_t *parser = slip->parser;
    const char *p = slip->here.start, *end = slip->text + slip->size;
    bool quote = says(parser->context, "quoted");

    if (!quote && !says(parser->context, "flow"))
        return false;
    while (p < end && strchr(" \t\r\n", *p) != NULL)
        p++;
    if (p < end)
        return false;
    *slip->mark = parser->context_mark;
    kiln_error_set(slip->err, KILN_E_SYNTAX, "this %s is not closed",
                   quote                                    ? "quote"
                   : says(parser->context, "flow sequence") ? "["
                                                            : "{");
    return true;
}

/* {a: ${b}} is not YAML, nor is a: ${f: x}; quoted they are. */
static bool is_interpolation(const Slip *slip)
{
    const yaml_parser_t *parser = slip->parser;
    const char *p = slip->here.start;

    while (p + 1 < slip->here.end && (p[0] != '$' || p[1] != '{'))
        p++;
    if (p + 1 >= slip->here.end)
        return false;
    if (says(parser->context, "flow"))
        kiln_error_set(slip->err, KILN_E_SYNTAX,
                       "inside [...] and {...} an interpolation must be quoted: '${a.b}'");
    else if (says(parser->problem, "mapping values"))
        kiln_error_set(slip->err, KILN_E_SYNTAX,
                       "an interpolation with ': ' in it must be quoted: '${eval: ...}'");
    else
        return false;
    return true;
}

void kiln_syntax_hint_describe(const yaml_parser_t *parser, const char *text, size_t size,
                               KilnError *ret, yaml_mark_t *ret_mark)
{
    Slip slip = { .parser = parser,
                  .text = text,
                  .size = size,
                  .here = line_at(text, size, parser->problem_mark.line),
                  .err = ret,
                  .mark = ret_mark };

    *ret_mark = parser->problem_mark;
    slip.above = line_above(&slip);
    if (is_tab(&slip) || is_reserved(&slip) || is_open(&slip) || is_interpolation(&slip) ||
        is_second_colon(&slip) || is_no_key(&slip) || is_indentation(&slip))
        return;
    if (parser->context != NULL)
        kiln_error_set(ret, KILN_E_SYNTAX, "not YAML: %s, %s that starts in line %zu",
                       parser->problem, parser->context, parser->context_mark.line + 1);
    else
        kiln_error_set(ret, KILN_E_SYNTAX, "not YAML: %s",
                       parser->problem != NULL ? parser->problem : "unreadable");
}
