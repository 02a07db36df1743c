/* Parses expressions, with Python's precedence. */
#include "config/interpolate/expression.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "config/override/value.h"

typedef struct Parser {
    KilnArena *arena;
    const char *text;
    size_t at; /* of the token at hand */
    size_t length;
    int depth;
    KilnError *err;
} Parser;

/* ---- Messages ---------------------------------------------------------------------- */

/* The part of a long expression around the place. */
enum { SHOWN_BEFORE = 48, SHOWN = 88 };

static bool is_continued(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

KilnStatus kiln_expression_fail(const char *text, size_t at, KilnStatus status, KilnError *err,
                                const char *format, ...)
{
    size_t start = at > SHOWN_BEFORE ? at - SHOWN_BEFORE : 0, end = start;
    KilnText shown = { 0 }, caret = { 0 };
    char message[512];
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    while (is_continued(text[start]))
        start++;
    for (; text[end] != '\0'; end++) {
        if (end >= start + SHOWN && !is_continued(text[end]))
            break;
        kiln_text_char(&shown, (unsigned char)text[end] < ' ' ? ' ' : text[end]);
        if (end < at && !is_continued(text[end]))
            kiln_text_char(&caret, ' ');
    }
    kiln_error_set(err, status, "%s\n  %s%s%s\n  %s%s^", message, start > 0 ? "..." : "",
                   shown.data != NULL ? shown.data : "", text[end] != '\0' ? "..." : "",
                   start > 0 ? "   " : "", caret.data != NULL ? caret.data : "");
    kiln_text_release(&shown);
    kiln_text_release(&caret);
    return status;
}

static KilnStatus syntax(Parser *parser, const char *what)
{
    if (parser->text[parser->at] == '\0')
        return kiln_expression_fail(parser->text, parser->at, KILN_E_SYNTAX, parser->err,
                                    "%s, but the expression ends", what);
    return kiln_expression_fail(parser->text, parser->at, KILN_E_SYNTAX, parser->err, "%s", what);
}

/* ---- Tokens ------------------------------------------------------------------------ */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static void skip_blanks(Parser *parser)
{
    while (parser->text[parser->at] != '\0' && strchr(" \t\r\n", parser->text[parser->at]) != NULL)
        parser->at++;
}

static size_t word_length(const char *p)
{
    size_t n = 0;

    while (is_letter(p[n]) || (n > 0 && is_digit(p[n])))
        n++;
    return n;
}

/* The operator, of letters or not, when it is the next token; it is skipped. Longer
 * operators are asked for first. */
static bool take(Parser *parser, const char *sign)
{
    size_t n = strlen(sign);
    const char *p = parser->text + parser->at;

    if (strncmp(p, sign, n) != 0 || (is_letter(*sign) && word_length(p) != n))
        return false;
    parser->at += n;
    skip_blanks(parser);
    return true;
}

static const char *take_any(Parser *parser, const char *const *operators)
{
    for (; *operators != NULL; operators++)
        if (take(parser, *operators))
            return *operators;
    return NULL;
}

/* ---- Nodes ------------------------------------------------------------------------- */

static KilnStatus make(Parser *parser, KilnExprKind kind, size_t at, const char *text,
                       KilnExpr **ret)
{
    KilnExpr *expr = kiln_arena_alloc(parser->arena, sizeof(*expr));

    if (expr == NULL)
        return kiln_error_nomem(parser->err, sizeof(*expr));
    *expr = (KilnExpr) { .kind = kind, .at = at, .text = text };
    *ret = expr;
    return KILN_OK;
}

/* A node with two operands, which may be others' operands too (1 < x < 3). */
static KilnStatus make_binary(Parser *parser, size_t at, const char *sign, const KilnExpr *left,
                              KilnExpr *right, KilnExpr **ret)
{
    KilnExpr *copy = NULL, *expr = NULL;
    KilnStatus status = make(parser, KILN_EXPR_BINARY, at, sign, &expr);

    if (status >= 0)
        status = make(parser, left->kind, left->at, left->text, &copy);
    if (status < 0)
        return status;
    copy->first = left->first;
    copy->next = right;
    expr->first = copy;
    *ret = expr;
    return KILN_OK;
}

static KilnStatus parse_whole(Parser *parser, KilnExpr **ret);

/* ---- Atoms ------------------------------------------------------------------------- */

static size_t number_length(const char *p)
{
    size_t n = 0;

    while (is_digit(p[n]) || p[n] == '_' || p[n] == '.')
        n++;
    if (n > 0 && (p[n] == 'e' || p[n] == 'E')) {
        size_t sign = p[n + 1] == '+' || p[n + 1] == '-' ? 2 : 1;

        if (is_digit(p[n + sign]))
            for (n += sign; is_digit(p[n]);)
                n++;
    }
    return n;
}

static KilnStatus parse_number(Parser *parser, KilnExpr **ret)
{
    size_t start = parser->at, n = number_length(parser->text + start);
    const char *text = kiln_arena_strndup(parser->arena, parser->text + start, n);

    if (text == NULL)
        return kiln_error_nomem(parser->err, n);
    parser->at += n;
    if (is_letter(parser->text[parser->at]) || is_digit(parser->text[parser->at]))
        return syntax(parser, "a number ends here; expected an operator");
    skip_blanks(parser);
    return make(parser, KILN_EXPR_NUMBER, start, text, ret);
}

static KilnStatus parse_text(Parser *parser, KilnExpr **ret)
{
    size_t start = parser->at++;
    char quote = parser->text[start];
    KilnText text = { 0 };
    const char *copy;

    for (; parser->text[parser->at] != quote; parser->at++) {
        const char *p = parser->text + parser->at;

        if (*p == '\0') {
            kiln_text_release(&text);
            return kiln_expression_fail(parser->text, start, KILN_E_SYNTAX, parser->err,
                                        "the quote %c is not closed", quote);
        }
        if (*p == '\\' && (p[1] == quote || p[1] == '\\'))
            parser->at++;
        kiln_text_char(&text, parser->text[parser->at]);
    }
    parser->at++;
    skip_blanks(parser);
    copy = kiln_arena_strdup(parser->arena, text.data != NULL ? text.data : "");
    if (text.failed || copy == NULL) {
        kiln_text_release(&text);
        return kiln_error_nomem(parser->err, parser->length);
    }
    kiln_text_release(&text);
    return make(parser, KILN_EXPR_TEXT, start, copy, ret);
}

static KilnStatus parse_reference(Parser *parser, KilnExpr **ret)
{
    size_t start = parser->at, end = kiln_value_skip_interpolation(parser->text, start);

    if (end == 0)
        return syntax(parser, "'${' is not closed by '}'");
    parser->at = end;
    skip_blanks(parser);
    return make(parser, KILN_EXPR_REFERENCE, start, NULL, ret);
}

/* Arguments up to the closing bracket; the opening one is skipped. */
static KilnStatus parse_arguments(Parser *parser, KilnExpr *call)
{
    KilnExpr **end = &call->first;

    while (!take(parser, ")")) {
        KilnStatus status;

        if (call->first != NULL && !take(parser, ","))
            return syntax(parser, "expected ',' or ')'");
        status = parse_whole(parser, end);
        if (status < 0)
            return status;
        end = &(*end)->next;
    }
    return KILN_OK;
}

static KilnStatus parse_name(Parser *parser, KilnExpr **ret)
{
    static const struct {
        const char *name;
        KilnExprKind kind;
    } words[] = { { "true", KILN_EXPR_TRUE },   { "True", KILN_EXPR_TRUE },
                  { "false", KILN_EXPR_FALSE }, { "False", KILN_EXPR_FALSE },
                  { "null", KILN_EXPR_NULL },   { "None", KILN_EXPR_NULL } };
    size_t start = parser->at, n = word_length(parser->text + start);
    const char *name = kiln_arena_strndup(parser->arena, parser->text + start, n);
    KilnStatus status;

    if (name == NULL)
        return kiln_error_nomem(parser->err, n);
    for (size_t i = 0; i < KILN_COUNT(words); i++)
        if (take(parser, words[i].name))
            return make(parser, words[i].kind, start, name, ret);
    parser->at += n;
    skip_blanks(parser);
    if (!take(parser, "("))
        return kiln_expression_fail(parser->text, start, KILN_E_KEY, parser->err,
                                    "there is no name '%.64s'; a value of the config is written "
                                    "${%.64s}, text '%.64s'",
                                    name, name, name);
    status = make(parser, KILN_EXPR_CALL, start, name, ret);
    return status >= 0 ? parse_arguments(parser, *ret) : status;
}

static KilnStatus parse_atom(Parser *parser, KilnExpr **ret)
{
    const char *p = parser->text + parser->at;
    KilnStatus status;

    if (is_digit(*p) || (*p == '.' && is_digit(p[1])))
        return parse_number(parser, ret);
    if (*p == '\'' || *p == '"')
        return parse_text(parser, ret);
    if (*p == '$' && p[1] == '{')
        return parse_reference(parser, ret);
    if (is_letter(*p))
        return parse_name(parser, ret);
    if (!take(parser, "("))
        return syntax(parser, "expected a value: a number, 'text', ${key}, a function or (...)");
    status = parse_whole(parser, ret);
    if (status >= 0 && !take(parser, ")"))
        status = syntax(parser, "expected ')'");
    return status;
}

/* ---- Operators ----------------------------------------------------------------------- */

static KilnStatus too_deep(Parser *parser)
{
    return kiln_expression_fail(parser->text, parser->at, KILN_E_RANGE, parser->err,
                                "nested deeper than %d levels; give a part a key of its own",
                                KILN_EXPRESSION_DEPTH);
}

static KilnStatus parse_unary(Parser *parser, KilnExpr **ret);

static KilnStatus parse_operand(Parser *parser, KilnExpr **ret)
{
    KilnStatus status;

    if (++parser->depth > KILN_EXPRESSION_DEPTH)
        return too_deep(parser);
    status = parse_unary(parser, ret);
    parser->depth--;
    return status;
}

/* - and + bind weaker than ** on their right: -2 ** 2 is -4. */
static KilnStatus parse_unary(Parser *parser, KilnExpr **ret)
{
    static const char *const signs[] = { "-", "+", NULL };
    size_t start = parser->at;
    const char *sign = take_any(parser, signs);
    KilnExpr *operand = NULL;
    KilnStatus status;

    if (sign != NULL) {
        status = parse_operand(parser, &operand);
        if (status >= 0)
            status = make(parser, KILN_EXPR_UNARY, start, sign, ret);
        if (status >= 0)
            (*ret)->first = operand;
    } else {
        status = parse_atom(parser, ret);
        start = parser->at;
        if (status >= 0 && take(parser, "**")) {
            status = parse_operand(parser, &operand);
            if (status >= 0)
                status = make_binary(parser, start, "**", *ret, operand, ret);
        }
    }
    return status;
}

static bool starts_power(const Parser *parser)
{
    return strncmp(parser->text + parser->at, "**", 2) == 0;
}

static KilnStatus parse_product(Parser *parser, KilnExpr **ret)
{
    static const char *const operators[] = { "*", "//", "/", "%", NULL };
    KilnStatus status = parse_unary(parser, ret);

    while (status >= 0 && !starts_power(parser)) {
        size_t at = parser->at;
        const char *sign = take_any(parser, operators);
        KilnExpr *right = NULL;

        if (sign == NULL)
            break;
        status = parse_unary(parser, &right);
        if (status >= 0)
            status = make_binary(parser, at, sign, *ret, right, ret);
    }
    return status;
}

static KilnStatus parse_sum(Parser *parser, KilnExpr **ret)
{
    static const char *const operators[] = { "+", "-", NULL };
    KilnStatus status = parse_product(parser, ret);

    while (status >= 0) {
        size_t at = parser->at;
        const char *sign = take_any(parser, operators);
        KilnExpr *right = NULL;

        if (sign == NULL)
            break;
        status = parse_product(parser, &right);
        if (status >= 0)
            status = make_binary(parser, at, sign, *ret, right, ret);
    }
    return status;
}

/* a < b < c means a < b and b < c. */
static KilnStatus parse_comparison(Parser *parser, KilnExpr **ret)
{
    static const char *const operators[] = { "<=", ">=", "==", "!=", "<", ">", NULL };
    KilnExpr *left = NULL, *all = NULL;
    KilnStatus status = parse_sum(parser, &left);

    while (status >= 0) {
        size_t at = parser->at;
        const char *sign = take_any(parser, operators);
        KilnExpr *right = NULL, *pair = NULL;

        if (sign == NULL)
            break;
        status = parse_sum(parser, &right);
        if (status >= 0)
            status = make_binary(parser, at, sign, left, right, &pair);
        if (status >= 0 && all != NULL)
            status = make_binary(parser, at, "and", all, pair, &pair);
        all = pair;
        left = right;
    }
    *ret = all != NULL ? all : left;
    return status;
}

static KilnStatus parse_not(Parser *parser, KilnExpr **ret)
{
    size_t start = parser->at;
    KilnExpr *operand = NULL;
    KilnStatus status;

    if (!take(parser, "not"))
        return parse_comparison(parser, ret);
    if (++parser->depth > KILN_EXPRESSION_DEPTH)
        return too_deep(parser);
    status = parse_not(parser, &operand);
    parser->depth--;
    if (status >= 0)
        status = make(parser, KILN_EXPR_UNARY, start, "not", ret);
    if (status >= 0)
        (*ret)->first = operand;
    return status;
}

static KilnStatus parse_logic(Parser *parser, const char *sign, KilnExpr **ret)
{
    bool is_or = strcmp(sign, "or") == 0;
    KilnStatus status = is_or ? parse_logic(parser, "and", ret) : parse_not(parser, ret);

    while (status >= 0) {
        size_t at = parser->at;
        KilnExpr *right = NULL;

        if (!take(parser, sign))
            break;
        status = is_or ? parse_logic(parser, "and", &right) : parse_not(parser, &right);
        if (status >= 0)
            status = make_binary(parser, at, sign, *ret, right, ret);
    }
    return status;
}

static KilnStatus parse_condition(Parser *parser, KilnExpr *value, size_t at, KilnExpr **ret)
{
    KilnExpr *condition = NULL, *other = NULL;
    KilnStatus status = parse_logic(parser, "or", &condition);

    if (status >= 0 && !take(parser, "else"))
        status = syntax(parser, "expected 'else' (A if C else B)");
    if (status >= 0)
        status = parse_whole(parser, &other);
    if (status >= 0)
        status = make(parser, KILN_EXPR_IF, at, NULL, ret);
    if (status < 0)
        return status;
    (*ret)->first = value;
    value->next = condition;
    condition->next = other;
    return KILN_OK;
}

static KilnStatus parse_whole(Parser *parser, KilnExpr **ret)
{
    KilnExpr *value = NULL;
    KilnStatus status;
    size_t at;

    if (++parser->depth > KILN_EXPRESSION_DEPTH)
        return too_deep(parser);
    status = parse_logic(parser, "or", &value);
    at = parser->at;
    *ret = value;
    if (status >= 0 && take(parser, "if"))
        status = parse_condition(parser, value, at, ret);
    parser->depth--;
    return status;
}

KilnStatus kiln_expression_parse(KilnArena *arena, const char *text, KilnExpr **ret, KilnError *err)
{
    Parser parser = { .arena = arena, .text = text, .length = strlen(text), .err = err };
    KilnExpr *expr = NULL;
    KilnStatus status;

    if (parser.length > KILN_EXPRESSION_BYTES)
        return kiln_error_set(err, KILN_E_RANGE,
                              "longer than %d characters; give parts of it keys of their own",
                              KILN_EXPRESSION_BYTES);
    skip_blanks(&parser);
    status = parse_whole(&parser, &expr);
    if (status >= 0 && parser.text[parser.at] != '\0')
        status = syntax(&parser, "expected an operator: + - * / // % ** < <= > >= == != and or if");
    if (status >= 0)
        *ret = expr;
    return status;
}
