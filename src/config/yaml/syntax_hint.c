/* Recognizes common mistakes in YAML from the position where libyaml stopped and the lines around.
 */
#include "config/yaml/syntax_hint.h"

#include <string.h>

typedef struct Line {
    const char *start, *end;
    size_t number; /* from 0 */
} Line;

typedef struct Mistake {
    const yaml_parser_t *parser;
    const char *text;
    size_t size;
    Line here;  /* of the problem */
    Line above; /* the nearest that is not blank; start == NULL: none */
    KilnError *err;
    yaml_mark_t *mark;
} Mistake;

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

static bool is_blank(const Line *line)
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

/* Describe the mistake, which is at `at` in the line (NULL: where the parser stopped). Returns
 * true. */
KILN_PRINTF(4, 5)
static bool report(const Mistake *mistake, const Line *line, const char *at, const char *format,
                   ...)
{
    va_list args;

    va_start(args, format);
    kiln_error_vset(mistake->err, KILN_E_SYNTAX, format, args);
    va_end(args);
    if (at != NULL)
        *mistake->mark = (yaml_mark_t) { .line = line->number, .column = 0 };
    for (const char *p = line->start; at != NULL && p < at; p++)
        mistake->mark->column += ((unsigned char)*p & 0xc0) != 0x80;
    return true;
}

static bool contains(const char *text, const char *part)
{
    return text != NULL && strstr(text, part) != NULL;
}

/* The nearest line above that is not blank; start == NULL: there is none. */
static Line line_above(const Mistake *mistake)
{
    for (size_t i = mistake->here.number; i-- > 0;) {
        const Line line = line_at(mistake->text, mistake->size, i);

        if (!is_blank(&line))
            return line;
    }
    return (Line) { .start = NULL };
}

/* ---- Mistakes ------------------------------------------------------------------- */

static bool is_tab(const Mistake *mistake)
{
    const char *p = mistake->here.start;

    while (p < mistake->here.end && *p == ' ')
        p++;
    if (p == mistake->here.end || *p != '\t')
        return false;
    return report(mistake, &mistake->here, p,
                  "tabs are not allowed for indentation; write blanks, two for each level");
}

/* Plain text cannot begin with %, @ or a backquote. */
static bool is_reserved(const Mistake *mistake)
{
    const char *p = mistake->here.start + mistake->parser->problem_mark.column;

    if (!contains(mistake->parser->problem, "cannot start any token") || p >= mistake->here.end ||
        strchr("%@`", *p) == NULL)
        return false;
    return report(mistake, &mistake->here, NULL, "text that begins with %c must be quoted: '%c...'",
                  *p, *p);
}

/* A line indented deeper than a complete `key: value` above it, or between two levels. */
static bool is_indentation(const Mistake *mistake)
{
    size_t here = indent_of(&mistake->here), above;
    const char *colon;

    if (mistake->above.start == NULL ||
        (!contains(mistake->parser->problem, "mapping values are not allowed") &&
         !contains(mistake->parser->problem, "did not find expected")))
        return false;
    above = indent_of(&mistake->above);
    colon = find_colon(&mistake->above, mistake->above.start);
    bool deeper = here > above && colon != NULL && colon + 1 < mistake->above.end;
    if (!deeper && (here >= above || contains(mistake->parser->context, "flow")))
        return false;
    if (deeper)
        return report(mistake, &mistake->here, mistake->here.start + here,
                      "wrong indentation: %zu blanks, but line %zu above has %zu and a value of "
                      "its own; keys of one mapping begin in the same column",
                      here, mistake->above.number + 1, above);
    return report(mistake, &mistake->here, mistake->here.start + here,
                  "wrong indentation: %zu blanks, which is less than the %zu of line %zu, and "
                  "no mapping around it begins there; keys of one mapping begin in the same "
                  "column",
                  here, above, mistake->above.number + 1);
}

/* `name: a: b` */
static bool is_second_colon(const Mistake *mistake)
{
    const char *colon = find_colon(&mistake->here, mistake->here.start);

    if (!contains(mistake->parser->problem, "mapping values are not allowed") || colon == NULL ||
        find_colon(&mistake->here, colon + 1) == NULL)
        return false;
    return report(mistake, &mistake->here, find_colon(&mistake->here, colon + 1),
                  "a second ': ' in the line; text with ': ' in it must be quoted: %.*s: '...'",
                  (int)(colon - mistake->here.start), mistake->here.start);
}

/* `lr:0.3`, `lr 0.3`, `lr=0.3` */
static bool is_no_key(const Mistake *mistake)
{
    Line line;
    const char *start, *separator, *value;

    if (!contains(mistake->parser->problem, "could not find expected ':'"))
        return false;
    line = line_at(mistake->text, mistake->size, mistake->parser->context_mark.line);
    start = line.start + indent_of(&line);
    for (separator = start; separator < line.end && strchr(":= \t", *separator) == NULL;)
        separator++;
    for (value = separator; value < line.end && strchr(":= \t\r", *value) != NULL;)
        value++;
    if (value < line.end)
        return report(mistake, &line, start,
                      "expected `key: value`, a colon and a blank after the key: `%.*s: %.*s`",
                      (int)(separator - start), start, (int)(line.end - value), value);
    return report(mistake, &line, start,
                  "expected `key: value`, a colon and a blank after the key");
}

/* An unclosed quote or bracket: report where it opens, not the end of the file. */
static bool is_open(const Mistake *mistake)
{
    const yaml_parser_t *parser = mistake->parser;
    const char *p = mistake->here.start, *end = mistake->text + mistake->size;
    bool quote = contains(parser->context, "quoted");

    if (!quote && !contains(parser->context, "flow"))
        return false;
    while (p < end && strchr(" \t\r\n", *p) != NULL)
        p++;
    if (p < end)
        return false;
    *mistake->mark = parser->context_mark;
    return report(mistake, &mistake->here, NULL, "this %s is not closed",
                  quote                                        ? "quote"
                  : contains(parser->context, "flow sequence") ? "["
                                                               : "{");
}

/* {a: ${b}} is not YAML, nor is a: ${f: x}; quoted they are. */
static bool is_interpolation(const Mistake *mistake)
{
    const yaml_parser_t *parser = mistake->parser;
    const char *p = mistake->here.start;

    while (p + 1 < mistake->here.end && (p[0] != '$' || p[1] != '{'))
        p++;
    if (p + 1 >= mistake->here.end)
        return false;
    if (contains(parser->context, "flow"))
        return report(mistake, &mistake->here, NULL,
                      "inside [...] and {...} an interpolation must be quoted: '${a.b}'");
    if (contains(parser->problem, "mapping values"))
        return report(mistake, &mistake->here, NULL,
                      "an interpolation with ': ' in it must be quoted: '${eval: ...}'");
    return false;
}

void kiln_syntax_hint_describe(const yaml_parser_t *parser, const char *text, size_t size,
                               KilnError *ret, yaml_mark_t *ret_mark)
{
    Mistake mistake = { .parser = parser,
                        .text = text,
                        .size = size,
                        .here = line_at(text, size, parser->problem_mark.line),
                        .err = ret,
                        .mark = ret_mark };

    *ret_mark = parser->problem_mark;
    mistake.above = line_above(&mistake);
    if (is_tab(&mistake) || is_reserved(&mistake) || is_open(&mistake) ||
        is_interpolation(&mistake) || is_second_colon(&mistake) || is_no_key(&mistake) ||
        is_indentation(&mistake))
        return;
    if (parser->context != NULL)
        kiln_error_set(ret, KILN_E_SYNTAX, "not YAML: %s, %s that starts in line %zu",
                       parser->problem, parser->context, parser->context_mark.line + 1);
    else
        kiln_error_set(ret, KILN_E_SYNTAX, "not YAML: %s",
                       parser->problem != NULL ? parser->problem : "unreadable");
}
