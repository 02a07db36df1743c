/* Evaluates ${eval:...} while it reads it, with Python's precedence. expression_math.c computes. */
#include "config/interpolate/expression.h"

#include <string.h>

#include "base/parse.h"
#include "base/text.h"
#include "config/interpolate/interpolate.h"
#include "config/composed.h"
#include "config/provenance/source_snippet.h"
#include "config/sweep/sweep_value.h"
#include "config/yaml/scalar.h"

enum { SHOWN = 90 }; /* columns of a long expression that a message shows */

static const KilnExprValue null_value = { .type = KILN_SCALAR_NULL };

static KilnExprValue parse(KilnExpression *expression, int precedence, bool counts);

/* ---- Messages ---------------------------------------------------------------------- */

/* A failure that has its message. */
static KilnExprValue failed(KilnExpression *expression, KilnStatus status)
{
    expression->status = status;
    return null_value;
}

KilnExprValue kiln_expression_fail(KilnExpression *expression, size_t at, KilnStatus status,
                                   const char *format, ...)
{
    char *line = kiln_arena_strdup(expression->around->maker.arena, expression->text);
    KilnText text = { 0 };
    va_list args;

    if (expression->status < 0)
        return null_value;
    if (line == NULL)
        return failed(expression, kiln_error_nomem(expression->err, 1));
    for (char *p = line; (p = strpbrk(p, "\r\n")) != NULL;)
        *p = ' ';
    va_start(args, format);
    kiln_text_vprintf(&text, format, args);
    va_end(args);
    kiln_text_append(&text, "\n  ");
    kiln_snippet_draw(&text, "  ", line, strlen(line), at, at, SHOWN, false);
    expression->status = kiln_error_set(expression->err, status, "%.*s", (int)text.length - 1,
                                        text.data != NULL ? text.data : "");
    kiln_text_release(&text);
    return null_value;
}

static KilnExprValue syntax_error(KilnExpression *expression, const char *what)
{
    return kiln_expression_fail(
        expression, expression->at, KILN_E_SYNTAX, "%s%s", what,
        expression->text[expression->at] == '\0' ? ", but the expression ends" : "");
}

/* Does what stands at `at` count? */
static bool computes(const KilnExpression *expression)
{
    return expression->skips == 0 && expression->status >= 0 && expression->missing == NULL;
}

/* ---- Tokens ------------------------------------------------------------------------ */

/* Move past `n` bytes and the blanks after them. */
static void skip(KilnExpression *expression, size_t n)
{
    expression->at += n;
    expression->at += strspn(expression->text + expression->at, " \t\r\n");
}

static size_t word_length(const char *p)
{
    size_t n = 0;

    while (kiln_is_letter(p[n]) || (n > 0 && kiln_is_digit(p[n])))
        n++;
    return n;
}

/* Skip the token if it is the next one. */
static bool take(KilnExpression *expression, const char *token)
{
    size_t n = strlen(token);
    const char *p = expression->text + expression->at;

    if (strncmp(p, token, n) != 0 || (kiln_is_letter(*token) && word_length(p) != n))
        return false;
    skip(expression, n);
    return true;
}

/* The next operator with `n_args` operands and at least that precedence; NULL: none. */
static const KilnExprFunction *take_operator(KilnExpression *expression, size_t n_args,
                                             int precedence)
{
    for (const KilnExprFunction *o = kiln_expr_operators; o->name != NULL; o++)
        if (o->max_args == n_args && o->precedence >= precedence && take(expression, o->name))
            return o;
    return NULL;
}

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

/* Copy what is inside the quotes at `p`, where the text ends with its NUL, to `to`. Returns the
 * length with both quotes; 0: they are not closed. */
static size_t unquote(const char *p, char *to)
{
    const char *start = p;
    char quote = *p++;

    for (; *p != quote; p++) {
        if (*p == '\0')
            return 0;
        if (*p == '\\' && (p[1] == quote || p[1] == '\\'))
            p++;
        *to++ = *p;
    }
    *to = '\0';
    return (size_t)(p + 1 - start);
}

/* ---- Values ------------------------------------------------------------------------ */

/* The value of a resolved node, which stands for what is at `at`. */
static KilnExprValue value_of_node(KilnExpression *expression, size_t at,
                                   const KilnConfigNode *node)
{
    KilnExprValue value = { .type = node->scalar, .text = node->text };
    KilnNumber number = { 0 };

    if (node->kind != KILN_NODE_SCALAR)
        return kiln_expression_fail(expression, at, KILN_E_TYPE,
                                    "this is %s; an expression computes with single values",
                                    kiln_node_kind_name(node));
    if (node->scalar == KILN_SCALAR_MISSING)
        expression->missing = node;
    else if (kiln_number_of(node, &number))
        value.number = number.real ? number.value : (long double)number.whole;
    else if (node->scalar == KILN_SCALAR_INT || node->scalar == KILN_SCALAR_FLOAT)
        return kiln_expression_fail(expression, at, KILN_E_RANGE, "the number is too large");
    return value;
}

static KilnExprValue parse_number(KilnExpression *expression)
{
    KilnArena *arena = expression->around->maker.arena;
    size_t start = expression->at, n = number_length(expression->text + start);
    const char *text = kiln_arena_strndup(arena, expression->text + start, n);
    KilnConfigNode node = { .kind = KILN_NODE_SCALAR };

    if (text == NULL)
        return failed(expression, kiln_error_nomem(expression->err, n));
    expression->at += n;
    if (kiln_is_letter(expression->text[expression->at]) ||
        kiln_is_digit(expression->text[expression->at]))
        return syntax_error(expression, "a number ends here; expected an operator");
    skip(expression, 0);
    node.scalar = kiln_scalar_value(arena, text, &node.text);
    if (node.scalar != KILN_SCALAR_INT && node.scalar != KILN_SCALAR_FLOAT)
        return kiln_expression_fail(expression, start, KILN_E_TYPE, "'%.64s' is not a number",
                                    text);
    return value_of_node(expression, start, &node);
}

static KilnExprValue parse_reference(KilnExpression *expression)
{
    KilnValueParser parser = *expression->around;
    const KilnConfigNode *node = NULL;
    size_t start = expression->at;
    size_t end = kiln_value_skip_interpolation(expression->text, start);
    KilnStatus status;

    if (end == 0)
        return syntax_error(expression, "'${' is not closed by '}'");
    skip(expression, end - start);
    if (!computes(expression))
        return null_value;
    parser.text = expression->text;
    parser.at = start;
    status = kiln_resolve_interpolation(&parser, &node);
    return status >= 0 ? value_of_node(expression, start, node) : failed(expression, status);
}

/* Text, in which ${...} is resolved as in any text of the config. */
static KilnExprValue parse_text(KilnExpression *expression)
{
    const KilnMaker *maker = &expression->around->maker;
    char *text = kiln_arena_strdup(maker->arena, expression->text + expression->at);
    size_t n = text != NULL ? unquote(expression->text + expression->at, text) : 0;
    KilnConfigNode *written;
    const KilnConfigNode *node = NULL;
    KilnText buf = { 0 };
    KilnStatus status;

    if (text != NULL && n == 0)
        return kiln_expression_fail(expression, expression->at, KILN_E_SYNTAX,
                                    "the quote %c is not closed", expression->text[expression->at]);
    skip(expression, n);
    if (!computes(expression))
        return null_value;
    written = text != NULL ? kiln_node_string(maker, text) : NULL;
    if (written == NULL)
        return failed(expression, kiln_error_nomem(expression->err, 1));
    written->parent = expression->around->node->parent;
    status = kiln_resolve_node(expression->around->resolution, written, &node);
    if (status < 0)
        return failed(expression, status);
    if (kiln_node_is_scalar(node, KILN_SCALAR_MISSING))
        expression->missing = node;
    kiln_value_text(node, &buf);
    text = kiln_text_to_arena(&buf, maker->arena);
    if (text == NULL)
        return failed(expression, kiln_error_nomem(expression->err, 1));
    return (KilnExprValue) { .type = KILN_SCALAR_STR, .text = text };
}

/* The arguments of a function, and the closing bracket. */
static KilnExprValue parse_call(KilnExpression *expression, const char *name, size_t at)
{
    KilnExprCall call = { .function = kiln_expr_function(name), .at = at };
    bool folds = call.function != NULL && call.function->max_args == 0;

    if (call.function == NULL && computes(expression))
        return kiln_expr_unknown_function(expression, name, at);
    while (!take(expression, ")")) {
        if (call.n_args > 0 && !take(expression, ","))
            return syntax_error(expression, "expected ',' or ')'");
        call.args[call.n_args++ > 0] = parse(expression, KILN_BINDS_IF, true);
        if (folds && call.n_args > 1 && computes(expression))
            call.args[0] = kiln_expr_call(expression, &call);
    }
    if (!computes(expression))
        return null_value;
    return folds && call.n_args > 0 ? call.args[0] : kiln_expr_call(expression, &call);
}

static KilnExprValue parse_name(KilnExpression *expression)
{
    static const struct {
        const char *name;
        KilnExprValue value;
    } words[] = {
        { "true", { .type = KILN_SCALAR_BOOL, .number = 1 } },
        { "True", { .type = KILN_SCALAR_BOOL, .number = 1 } },
        { "false", { .type = KILN_SCALAR_BOOL } },
        { "False", { .type = KILN_SCALAR_BOOL } },
        { "null", { .type = KILN_SCALAR_NULL } },
        { "None", { .type = KILN_SCALAR_NULL } },
    };
    size_t start = expression->at, n = word_length(expression->text + start);
    const char *name;

    for (size_t i = 0; i < KILN_COUNT(words); i++)
        if (take(expression, words[i].name))
            return words[i].value;
    name = kiln_arena_strndup(expression->around->maker.arena, expression->text + start, n);
    if (name == NULL)
        return failed(expression, kiln_error_nomem(expression->err, n));
    skip(expression, n);
    if (take(expression, "("))
        return parse_call(expression, name, start);
    return kiln_expression_fail(expression, start, KILN_E_KEY,
                                "there is no name '%.64s'; a value of the config is written "
                                "${%.64s}, text '%.64s'",
                                name, name, name);
}

static KilnExprValue parse_atom(KilnExpression *expression)
{
    const char *p = expression->text + expression->at;
    KilnExprValue value;

    if (kiln_is_digit(*p) || (*p == '.' && kiln_is_digit(p[1])))
        return parse_number(expression);
    if (*p == '\'' || *p == '"')
        return parse_text(expression);
    if (*p == '$' && p[1] == '{')
        return parse_reference(expression);
    if (kiln_is_letter(*p))
        return parse_name(expression);
    if (!take(expression, "("))
        return syntax_error(expression,
                            "expected a value: a number, 'text', ${key}, a function or (...)");
    value = parse(expression, KILN_BINDS_IF, true);
    return take(expression, ")") ? value : syntax_error(expression, "expected ')'");
}

/* ---- Operators ----------------------------------------------------------------------- */

/* A prefix operator and its operand, or a value. */
static KilnExprValue parse_prefix(KilnExpression *expression, int precedence)
{
    KilnExprCall call = { .at = expression->at, .n_args = 1 };

    call.function = take_operator(expression, 1, precedence);
    if (call.function == NULL)
        return parse_atom(expression);
    call.args[0] = parse(expression, call.function->precedence, true);
    return computes(expression) ? kiln_expr_call(expression, &call) : null_value;
}

/* Precedence climbing: a value, and the operators of at least that precedence after it. */
static KilnExprValue parse_infixes(KilnExpression *expression, int precedence)
{
    KilnExprValue value = parse_prefix(expression, precedence);
    KilnExprCall call = { .at = expression->at, .n_args = 2 };
    bool compared = false; /* a < b < c means a < b and b < c */

    while ((call.function = take_operator(expression, 2, precedence)) != NULL) {
        const KilnExprFunction *infix = call.function;
        bool compares = infix->precedence == KILN_BINDS_COMPARISON, counts = true;
        int binds = infix->precedence == KILN_BINDS_POWER ? KILN_BINDS_SIGN : infix->precedence + 1;

        if (infix->run == NULL || (compares && compared))
            counts = kiln_expr_value_is_true(&value) == (infix->precedence != KILN_BINDS_OR);
        call.args[0] = compares && compared ? call.args[1] : value;
        call.args[1] = parse(expression, binds, counts);
        if (counts && computes(expression))
            value = infix->run != NULL ? kiln_expr_call(expression, &call) : call.args[1];
        compared = compares;
        call.at = expression->at;
    }
    return value;
}

/* "A if C else B", or what binds stronger. A is read again when it counts. */
static KilnExprValue parse_condition(KilnExpression *expression)
{
    size_t start = expression->at, end;
    bool truth = true;
    KilnExprValue value;

    expression->skips++;
    value = parse_infixes(expression, KILN_BINDS_OR);
    expression->skips--;
    if (take(expression, "if")) {
        KilnExprValue condition = parse(expression, KILN_BINDS_OR, true);

        truth = kiln_expr_value_is_true(&condition);
        if (!take(expression, "else"))
            return syntax_error(expression, "expected 'else' (A if C else B)");
        value = parse(expression, KILN_BINDS_IF, !truth);
    }
    if (!truth || !computes(expression))
        return value;
    end = expression->at;
    expression->at = start;
    value = parse_infixes(expression, KILN_BINDS_OR);
    expression->at = end;
    return value;
}

/* What binds at least as strong as `precedence`; only read when it does not count. */
static KilnExprValue parse(KilnExpression *expression, int precedence, bool counts)
{
    KilnExprValue value;

    if (expression->depth == KILN_EXPRESSION_DEPTH)
        return kiln_expression_fail(expression, expression->at, KILN_E_RANGE,
                                    "nested deeper than %d levels; give a part a key of its own",
                                    KILN_EXPRESSION_DEPTH);
    expression->depth++;
    expression->skips += !counts;
    value = precedence == KILN_BINDS_IF ? parse_condition(expression)
                                        : parse_infixes(expression, precedence);
    expression->skips -= !counts;
    expression->depth--;
    return value;
}

/* Read everything without computing, for mistakes in the syntax come first; then compute. */
static KilnExprValue evaluate(KilnExpression *expression)
{
    if (strlen(expression->text) > KILN_EXPRESSION_BYTES)
        return failed(
            expression,
            kiln_error_set(expression->err, KILN_E_RANGE,
                           "longer than %d characters; give parts of it keys of their own",
                           KILN_EXPRESSION_BYTES));
    skip(expression, 0);
    parse(expression, KILN_BINDS_IF, false);
    if (expression->text[expression->at] != '\0')
        syntax_error(expression, "expected an operator: + - * / // % ** < <= > >= == != and or if");
    expression->at = 0;
    skip(expression, 0);
    return computes(expression) ? parse(expression, KILN_BINDS_IF, true) : null_value;
}

/* ---- ${eval:...} --------------------------------------------------------------------- */

/* What is between the colon at parser->at and the closing brace before `end`. Quotes around the
 * whole expression do not count: overrides and YAML often need them. */
static const char *take_expression(KilnValueParser *parser, size_t end)
{
    size_t start = parser->at + 1;
    char *text, *inner;

    parser->at = end--;
    while (start < end && strchr(" \t\r\n", parser->text[start]) != NULL)
        start++;
    while (end > start && strchr(" \t\r\n", parser->text[end - 1]) != NULL)
        end--;
    text = kiln_arena_strndup(parser->maker.arena, parser->text + start, end - start);
    if (text == NULL || (*text != '\'' && *text != '"'))
        return text;
    inner = kiln_arena_strdup(parser->maker.arena, text);
    return inner != NULL && unquote(text, inner) == end - start ? inner : text;
}

static KilnConfigNode *node_of_value(const KilnMaker *maker, const KilnExprValue *value)
{
    KilnNumber number = { .real = value->type == KILN_SCALAR_FLOAT };

    switch (value->type) {
    case KILN_SCALAR_INT:
        number.whole = (int64_t)value->number;
        return kiln_number_node(maker, &number);
    case KILN_SCALAR_FLOAT:
        number.value = (double)value->number;
        return kiln_number_node(maker, &number);
    case KILN_SCALAR_BOOL:
        return kiln_node_scalar(maker, KILN_SCALAR_BOOL, value->number != 0 ? "true" : "false");
    case KILN_SCALAR_STR:
        return kiln_node_scalar(maker, KILN_SCALAR_STR, value->text);
    default:
        return kiln_node_scalar(maker, KILN_SCALAR_NULL, "null");
    }
}

KilnStatus kiln_eval_call(KilnValueParser *parser, size_t start, const KilnConfigNode **ret)
{
    KilnExpression expression = { .around = parser, .err = parser->err };
    size_t end = kiln_value_skip_interpolation(parser->text, start);
    KilnExprValue value;
    KilnConfigNode *result;

    if (end == 0)
        return kiln_value_fail(parser, start, "'${' is not closed by '}'");
    expression.text = take_expression(parser, end);
    if (expression.text == NULL)
        return kiln_error_nomem(parser->err, end - start);
    value = evaluate(&expression);
    if (expression.status < 0)
        return expression.status;
    if (expression.missing != NULL) {
        *ret = expression.missing;
        return KILN_OK;
    }
    result = node_of_value(&parser->maker, &value);
    if (result == NULL)
        return kiln_error_nomem(parser->err, sizeof(*result));
    result->parent = parser->node->parent;
    *ret = result;
    return KILN_OK;
}
