/* Parses expressions, with Python's precedence. */
#include "config/interpolate/expression.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/parse.h"
#include "base/text.h"
#include "config/override/value.h"

typedef struct Parser {
    KilnExprSource source;
    KilnArena *arena;
    const char *text;
    size_t at; /* of the next token */
    int depth;
} Parser;

static KilnStatus parse(Parser *parser, int precedence, KilnExpr **ret);

/* ---- Messages ---------------------------------------------------------------------- */

/* How much of a long expression a message shows. */
enum { SHOWN_BEFORE = 48, SHOWN = 88 };

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80; /* of a UTF-8 character */
}

KilnStatus kiln_expression_fail(const KilnExprSource *source, size_t at, KilnStatus status,
                                const char *format, ...)
{
    const char *text = source->text;
    size_t start = at > SHOWN_BEFORE ? at - SHOWN_BEFORE : 0, end = start;
    KilnText shown = { 0 }, caret = { 0 };
    char message[512];
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    while (is_continuation(text[start]))
        start++;
    for (; text[end] != '\0'; end++) {
        if (end >= start + SHOWN && !is_continuation(text[end]))
            break;
        kiln_text_char(&shown, (unsigned char)text[end] < ' ' ? ' ' : text[end]);
        if (end < at && !is_continuation(text[end]))
            kiln_text_char(&caret, ' ');
    }
    kiln_error_set(source->err, status, "%s\n  %s%s%s\n  %s%s^", message, start > 0 ? "..." : "",
                   shown.data != NULL ? shown.data : "", text[end] != '\0' ? "..." : "",
                   start > 0 ? "   " : "", caret.data != NULL ? caret.data : "");
    kiln_text_release(&shown);
    kiln_text_release(&caret);
    return status;
}

static KilnStatus syntax_error(const Parser *parser, const char *what)
{
    return kiln_expression_fail(&parser->source, parser->at, KILN_E_SYNTAX, "%s%s", what,
                                parser->text[parser->at] == '\0' ? ", but the expression ends"
                                                                 : "");
}

/* ---- Tokens ------------------------------------------------------------------------ */

/* Move past `n` bytes and the blanks after them. */
static void skip(Parser *parser, size_t n)
{
    parser->at += n;
    parser->at += strspn(parser->text + parser->at, " \t\r\n");
}

static size_t word_length(const char *p)
{
    size_t n = 0;

    while (kiln_is_letter(p[n]) || (n > 0 && kiln_is_digit(p[n])))
        n++;
    return n;
}

/* Skip the token if it is the next one. */
static bool take(Parser *parser, const char *token)
{
    size_t n = strlen(token);
    const char *p = parser->text + parser->at;

    if (strncmp(p, token, n) != 0 || (kiln_is_letter(*token) && word_length(p) != n))
        return false;
    skip(parser, n);
    return true;
}

/* ---- Nodes ------------------------------------------------------------------------- */

static KilnStatus make(const Parser *parser, KilnExprKind kind, size_t at, const char *name,
                       KilnExpr **ret)
{
    KilnExpr *expr = kiln_arena_alloc(parser->arena, sizeof(*expr));

    if (expr == NULL)
        return kiln_error_nomem(parser->source.err, sizeof(*expr));
    *expr = (KilnExpr) { .kind = kind, .at = at, .name = name };
    *ret = expr;
    return KILN_OK;
}

static KilnStatus add_arg(const Parser *parser, KilnExpr *expr, KilnExpr *arg)
{
    if (!KILN_ARENA_RESERVE(parser->arena, expr->args, expr->args_capacity, expr->n_args + 1))
        return kiln_error_nomem(parser->source.err, sizeof(arg));
    expr->args[expr->n_args++] = arg;
    return KILN_OK;
}

/* An operation; `right` is NULL for a prefix operator. */
static KilnStatus make_operation(const Parser *parser, const KilnExprFunction *operator, size_t at,
                                 KilnExpr *left, KilnExpr *right, KilnExpr **ret)
{
    KilnStatus status = make(parser, operator->kind, at, operator->name, ret);

    if (status >= 0)
        status = add_arg(parser, *ret, left);
    if (status >= 0 && right != NULL)
        status = add_arg(parser, *ret, right);
    if (status >= 0)
        (*ret)->function = operator;
    return status;
}

/* ---- Values and calls ---------------------------------------------------------------- */

static size_t number_length(const char *p)
{
    size_t n = strspn(p, "0123456789_.");

    if (p[n] == 'e' || p[n] == 'E') {
        size_t exponent = n + (p[n + 1] == '+' || p[n + 1] == '-' ? 2 : 1);

        if (kiln_is_digit(p[exponent]))
            return exponent + strspn(p + exponent, "0123456789");
    }
    return n;
}

static KilnStatus parse_number(Parser *parser, KilnExpr **ret)
{
    size_t start = parser->at, n = number_length(parser->text + start);
    const char *text = kiln_arena_strndup(parser->arena, parser->text + start, n);
    KilnExprValue value = { .type = KILN_SCALAR_INT };
    KilnStatus status;

    if (text == NULL)
        return kiln_error_nomem(parser->source.err, n);
    parser->at += n;
    if (kiln_is_letter(parser->text[parser->at]) || kiln_is_digit(parser->text[parser->at]))
        return syntax_error(parser, "a number ends here; expected an operator");
    skip(parser, 0);
    if (strpbrk(text, ".eE") != NULL)
        value.type = KILN_SCALAR_FLOAT;
    status = value.type == KILN_SCALAR_INT ? kiln_parse_i64(text, &value.i, NULL)
                                           : kiln_parse_f64(text, &value.f, NULL);
    if (status == KILN_E_RANGE)
        return kiln_expression_fail(&parser->source, start, status, "the number is too large");
    if (status < 0)
        return kiln_expression_fail(&parser->source, start, status, "'%.64s' is not a number",
                                    text);
    status = make(parser, KILN_EXPR_LITERAL, start, text, ret);
    if (status >= 0)
        (*ret)->value = value;
    return status;
}

static KilnStatus parse_text(Parser *parser, KilnExpr **ret)
{
    size_t start = parser->at++;
    char quote = parser->text[start];
    char *text = kiln_arena_strdup(parser->arena, parser->text + start), *end = text;

    if (text == NULL)
        return kiln_error_nomem(parser->source.err, 1);
    for (; parser->text[parser->at] != quote; parser->at++) {
        const char *p = parser->text + parser->at;

        if (*p == '\0')
            return kiln_expression_fail(&parser->source, start, KILN_E_SYNTAX,
                                        "the quote %c is not closed", quote);
        if (*p == '\\' && (p[1] == quote || p[1] == '\\'))
            parser->at++;
        *end++ = parser->text[parser->at];
    }
    *end = '\0';
    skip(parser, 1);
    return make(parser, KILN_EXPR_TEXT, start, text, ret);
}

static KilnStatus parse_reference(Parser *parser, KilnExpr **ret)
{
    size_t start = parser->at, end = kiln_value_skip_interpolation(parser->text, start);

    if (end == 0)
        return syntax_error(parser, "'${' is not closed by '}'");
    skip(parser, end - start);
    return make(parser, KILN_EXPR_REFERENCE, start, NULL, ret);
}

/* The arguments and the closing bracket. */
static KilnStatus parse_arguments(Parser *parser, KilnExpr *call)
{
    while (!take(parser, ")")) {
        KilnExpr *arg = NULL;
        KilnStatus status;

        if (call->n_args > 0 && !take(parser, ","))
            return syntax_error(parser, "expected ',' or ')'");
        status = parse(parser, KILN_BINDS_IF, &arg);
        if (status >= 0)
            status = add_arg(parser, call, arg);
        if (status < 0)
            return status;
    }
    return KILN_OK;
}

static KilnStatus parse_name(Parser *parser, KilnExpr **ret)
{
    static const struct {
        const char *name;
        KilnExprValue value;
    } words[] = {
        { "true", { .type = KILN_SCALAR_BOOL, .i = 1 } },
        { "True", { .type = KILN_SCALAR_BOOL, .i = 1 } },
        { "false", { .type = KILN_SCALAR_BOOL } },
        { "False", { .type = KILN_SCALAR_BOOL } },
        { "null", { .type = KILN_SCALAR_NULL } },
        { "None", { .type = KILN_SCALAR_NULL } },
    };
    size_t start = parser->at, n = word_length(parser->text + start);
    const char *name = kiln_arena_strndup(parser->arena, parser->text + start, n);
    KilnStatus status;

    if (name == NULL)
        return kiln_error_nomem(parser->source.err, n);
    skip(parser, n);
    for (size_t i = 0; i < KILN_COUNT(words); i++) {
        if (strcmp(name, words[i].name) != 0)
            continue;
        status = make(parser, KILN_EXPR_LITERAL, start, name, ret);
        if (status >= 0)
            (*ret)->value = words[i].value;
        return status;
    }
    if (!take(parser, "("))
        return kiln_expression_fail(&parser->source, start, KILN_E_KEY,
                                    "there is no name '%.64s'; a value of the config is written "
                                    "${%.64s}, text '%.64s'",
                                    name, name, name);
    status = make(parser, KILN_EXPR_CALL, start, name, ret);
    if (status < 0)
        return status;
    (*ret)->function = kiln_expr_function(name);
    return parse_arguments(parser, *ret);
}

static KilnStatus parse_atom(Parser *parser, KilnExpr **ret)
{
    const char *p = parser->text + parser->at;
    KilnStatus status;

    if (kiln_is_digit(*p) || (*p == '.' && kiln_is_digit(p[1])))
        return parse_number(parser, ret);
    if (*p == '\'' || *p == '"')
        return parse_text(parser, ret);
    if (*p == '$' && p[1] == '{')
        return parse_reference(parser, ret);
    if (kiln_is_letter(*p))
        return parse_name(parser, ret);
    if (!take(parser, "("))
        return syntax_error(parser,
                            "expected a value: a number, 'text', ${key}, a function or (...)");
    status = parse(parser, KILN_BINDS_IF, ret);
    if (status >= 0 && !take(parser, ")"))
        status = syntax_error(parser, "expected ')'");
    return status;
}

/* ---- Operators ----------------------------------------------------------------------- */

/* The next operator with `n_args` operands and at least that precedence; NULL: none. */
static const KilnExprFunction *take_operator(Parser *parser, size_t n_args, int precedence)
{
    for (const KilnExprFunction *o = kiln_expr_operators; o->name != NULL; o++)
        if (o->max_args == n_args && o->precedence >= precedence && take(parser, o->name))
            return o;
    return NULL;
}

/* A prefix operator and its operand, or a value. */
static KilnStatus parse_prefix(Parser *parser, int precedence, KilnExpr **ret)
{
    size_t at = parser->at;
    const KilnExprFunction *operator= take_operator(parser, 1, precedence);
    KilnExpr *operand = NULL;

    if (operator== NULL)
        return parse_atom(parser, ret);
    KilnStatus status = parse(parser, operator->precedence, &operand);
    return status >= 0 ? make_operation(parser, operator, at, operand, NULL, ret) : status;
}

/* "A if C else B" from C on. */
static KilnStatus parse_condition(Parser *parser, const KilnExprFunction *infix, size_t at,
                                  KilnExpr **ret)
{
    KilnExpr *condition = NULL, *other = NULL;
    KilnStatus status = parse(parser, KILN_BINDS_OR, &condition);

    if (status >= 0 && !take(parser, "else"))
        status = syntax_error(parser, "expected 'else' (A if C else B)");
    if (status >= 0)
        status = parse(parser, KILN_BINDS_IF, &other);
    if (status >= 0)
        status = make_operation(parser, infix, at, *ret, condition, ret);
    return status >= 0 ? add_arg(parser, *ret, other) : status;
}

/* Precedence climbing: a value, and the operators of at least that precedence after it. */
static KilnStatus parse_infixes(Parser *parser, int precedence, KilnExpr **ret)
{
    static const KilnExprFunction chain = { .name = "and", .kind = KILN_EXPR_AND };
    KilnExpr *middle = NULL; /* b of a < b < c, which means a < b and b < c */
    KilnStatus status = parse_prefix(parser, precedence, ret);

    while (status >= 0) {
        size_t at = parser->at;
        const KilnExprFunction *infix = take_operator(parser, 2, precedence);
        KilnExpr *right = NULL, *left = *ret, *pair = NULL;

        if (infix == NULL)
            break;
        if (infix->precedence == KILN_BINDS_IF) {
            status = parse_condition(parser, infix, at, ret);
            continue;
        }
        if (infix->precedence != KILN_BINDS_COMPARISON)
            middle = NULL;
        status = parse(
            parser, infix->precedence == KILN_BINDS_POWER ? KILN_BINDS_SIGN : infix->precedence + 1,
            &right);
        if (status >= 0)
            status = make_operation(parser, infix, at, middle != NULL ? middle : left, right,
                                    &pair);
        if (status >= 0 && middle != NULL)
            status = make_operation(parser, &chain, at, left, pair, &pair);
        middle = infix->precedence == KILN_BINDS_COMPARISON ? right : NULL;
        *ret = pair;
    }
    return status;
}

static KilnStatus parse(Parser *parser, int precedence, KilnExpr **ret)
{
    KilnStatus status;

    if (++parser->depth > KILN_EXPRESSION_DEPTH)
        return kiln_expression_fail(&parser->source, parser->at, KILN_E_RANGE,
                                    "nested deeper than %d levels; give a part a key of its own",
                                    KILN_EXPRESSION_DEPTH);
    status = parse_infixes(parser, precedence, ret);
    parser->depth--;
    return status;
}

KilnStatus kiln_expression_parse(KilnArena *arena, KilnExprSource *source, KilnExpr **ret)
{
    Parser parser = { .source = { source->text, NULL }, .arena = arena, .text = source->text };
    KilnExpr *expr = NULL;
    KilnStatus status;

    if ((*parser.text == '\'' || *parser.text == '"') && parse_text(&parser, &expr) >= 0 &&
        parser.text[parser.at] == '\0')
        source->text = expr->name;
    parser = (Parser) { .source = *source, .arena = arena, .text = source->text };
    if (strlen(source->text) > KILN_EXPRESSION_BYTES)
        return kiln_error_set(source->err, KILN_E_RANGE,
                              "longer than %d characters; give parts of it keys of their own",
                              KILN_EXPRESSION_BYTES);
    skip(&parser, 0);
    status = parse(&parser, KILN_BINDS_IF, &expr);
    if (status >= 0 && parser.text[parser.at] != '\0')
        status = syntax_error(&parser,
                              "expected an operator: + - * / // % ** < <= > >= == != and or if");
    if (status >= 0)
        *ret = expr;
    return status;
}
