/* Finds the ends of tokens that messages underline. It guesses: the text may be invalid. */
#include "config/override/token.h"

#include <string.h>

typedef struct Scan {
    const char *text;
    size_t size;
} Scan;

static char at_of(const Scan *scan, size_t at)
{
    return at < scan->size ? scan->text[at] : '\0';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\0';
}

static bool is_any(char c, const char *of)
{
    return c != '\0' && strchr(of, c) != NULL;
}

/* The end of the quoted text at `at`; the end of the line when it is not closed. */
static size_t skip_quoted(const Scan *scan, size_t at)
{
    char quote = at_of(scan, at++);

    for (; at < scan->size; at++) {
        if (scan->text[at] == '\\' && quote == '"')
            at++;
        else if (scan->text[at] == quote)
            return at + 1;
    }
    return scan->size;
}

/* Moves past a character or a quoted text, and counts open brackets. */
static size_t skip_one(const Scan *scan, size_t at, int *depth)
{
    char c = scan->text[at];

    if (is_any(c, "\"'") && (at == 0 || is_any(scan->text[at - 1], " ,[{(:=")))
        return skip_quoted(scan, at);
    *depth += is_any(c, "[{(") ? 1 : is_any(c, "]})") ? -1 : 0;
    return at + 1;
}

/* The end of the brackets opened at `at`; 0 when they are not closed in the line. */
static size_t skip_brackets(const Scan *scan, size_t at)
{
    int depth = 0;

    while (at < scan->size) {
        at = skip_one(scan, at, &depth);
        if (depth == 0)
            return at;
    }
    return 0;
}

/* Is `at` inside brackets that were opened in this line? */
static bool in_brackets(const Scan *scan, size_t at)
{
    int depth = 0;

    for (size_t i = 0; i < at;)
        i = skip_one(scan, i, &depth);
    return depth > 0;
}

/* The end of unquoted text: one of `ends`, or ": " if `colon`; trailing blanks excluded. */
static size_t skip_plain(const Scan *scan, size_t at, const char *ends, bool colon)
{
    size_t start = at;

    while (at < scan->size && !is_any(scan->text[at], ends)) {
        size_t inner = scan->text[at] == '$' && at_of(scan, at + 1) == '{'
                           ? skip_brackets(scan, at + 1)
                           : 0;

        if (colon && scan->text[at] == ':' && is_blank(at_of(scan, at + 1)))
            break;
        if (scan->text[at] == '#' && at > start && is_blank(scan->text[at - 1]))
            break;
        at = inner > 0 ? inner : at + 1;
    }
    while (at > start + 1 && is_blank(scan->text[at - 1]))
        at--;
    return at > start ? at : start + 1;
}

size_t kiln_token_end(const char *text, size_t size, size_t at, bool argument)
{
    const Scan scan = { text, size };
    const char *equals = argument ? memchr(text, '=', size) : NULL;
    const bool value = equals != NULL && at >= (size_t)(equals - text);
    const char c = at_of(&scan, at);
    size_t end = at;

    if (is_blank(c) || (!argument && is_any(c, "-?") && is_blank(at_of(&scan, at + 1))))
        return at + 1;
    if (argument && !value)
        return skip_plain(&scan, at, "=@.", false);
    if (is_any(c, "\"'"))
        return skip_quoted(&scan, at);
    if (is_any(c, argument ? "[{(" : "[{")) {
        end = skip_brackets(&scan, at);
        return end > 0 ? end : at + 1;
    }
    if (!argument)
        return skip_plain(&scan, at, in_brackets(&scan, at) ? ",]}" : "", true);
    /* choice(1,2): with what is in the brackets. */
    while (end < size && !is_any(text[end], ",]}) ("))
        end++;
    if (at_of(&scan, end) == '(' && (end = skip_brackets(&scan, end)) > 0)
        return end;
    return skip_plain(&scan, at, in_brackets(&scan, at) ? ",]}):" : ",]})", false);
}
