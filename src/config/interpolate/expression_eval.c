/* Computes expressions of ${eval:...}: numbers, text, comparisons, conditions. Pure,
 * and typed as Python types them. Parsing is expression.c's. */
#include <string.h>

#include "config/interpolate/expression.h"
#include "config/interpolate/interpolate.h"
#include "config/interpolate/expression_value.h"
#include "config/composed.h"

typedef struct Evaluator {
    KilnResolution *resolving;
    const KilnConfigNode *node;    /* in whose text the expression stands */
    const char *text;              /* the expression */
    const KilnValueText *around;   /* the text that the expression was cut out of */
    const KilnConfigNode *missing; /* a ??? was met: the result is missing too */
} Evaluator;

static KilnStatus evaluate(Evaluator *evaluator, const KilnExpr *expr, KilnExprValue *ret);

static KilnOperation operation(const Evaluator *evaluator, const KilnExpr *expr)
{
    return (KilnOperation) { .name = expr->text,
                             .text = evaluator->text,
                             .at = expr->at,
                             .err = evaluator->resolving->err };
}

static bool is_missing(const KilnConfigNode *node)
{
    return node->kind == KILN_NODE_SCALAR && node->scalar == KILN_SCALAR_MISSING;
}

static KilnStatus evaluate_reference(Evaluator *evaluator, const KilnExpr *expr, KilnExprValue *ret)
{
    KilnOperation op = operation(evaluator, expr);
    KilnValueText value = *evaluator->around;
    const KilnConfigNode *node = NULL;
    KilnStatus status;

    value.text = evaluator->text;
    value.at = expr->at;
    status = kiln_resolve_interpolation(evaluator->resolving, evaluator->node, &value, &node);
    if (status < 0)
        return status;
    if (is_missing(node)) {
        evaluator->missing = node;
        return KILN_OK;
    }
    return kiln_expr_value_from_node(&op, node, ret);
}

/* Text, in which ${...} is resolved as in any text of the config. */
static KilnStatus evaluate_text(Evaluator *evaluator, const KilnExpr *expr, KilnExprValue *ret)
{
    KilnMaker maker = { .arena = evaluator->resolving->config->arena,
                        .origin = evaluator->node->origin };
    KilnConfigNode *text;
    const KilnConfigNode *node = NULL;
    KilnText buf = { 0 };
    KilnStatus status;

    *ret = (KilnExprValue) { .type = KILN_SCALAR_STR, .text = expr->text };
    if (strstr(expr->text, "${") == NULL)
        return KILN_OK;
    text = kiln_node_string(&maker, expr->text);
    if (text == NULL)
        return kiln_error_nomem(evaluator->resolving->err, sizeof(*text));
    text->parent = evaluator->node->parent;
    status = kiln_resolve_node(evaluator->resolving, text, &node);
    if (status < 0)
        return status;
    if (is_missing(node))
        evaluator->missing = node;
    kiln_value_text(node, &buf);
    ret->text = kiln_arena_strdup(maker.arena, buf.data != NULL ? buf.data : "");
    kiln_text_release(&buf);
    return ret->text != NULL ? KILN_OK : kiln_error_nomem(evaluator->resolving->err, 1);
}

static KilnStatus evaluate_unary(Evaluator *evaluator, const KilnExpr *expr, KilnExprValue *ret)
{
    KilnExprValue minus = { .type = KILN_SCALAR_INT, .i = *expr->text == '-' ? -1 : 1 };
    KilnExprValue value = { 0 };
    KilnOperation op = operation(evaluator, expr);
    KilnStatus status = evaluate(evaluator, expr->first, &value);

    if (status < 0 || evaluator->missing != NULL)
        return status;
    if (strcmp(expr->text, "not") == 0) {
        *ret = (KilnExprValue) { .type = KILN_SCALAR_BOOL, .i = !kiln_expr_value_is_true(&value) };
        return KILN_OK;
    }
    if (!kiln_expr_value_is_number(&value))
        return kiln_expression_fail(op.text, op.at, KILN_E_TYPE, op.err,
                                    "%s needs a number, got %s", expr->text,
                                    kiln_expr_value_type_name(&value));
    op.name = "*";
    return kiln_expr_value_compute(&op, &minus, &value, ret);
}

static KilnStatus evaluate_binary(Evaluator *evaluator, const KilnExpr *expr, KilnExprValue *ret)
{
    bool is_and = strcmp(expr->text, "and") == 0, is_or = strcmp(expr->text, "or") == 0;
    KilnOperation op = operation(evaluator, expr);
    KilnExprValue a = { 0 }, b = { 0 };
    KilnStatus status = evaluate(evaluator, expr->first, &a);

    if (status < 0 || evaluator->missing != NULL)
        return status;
    if ((is_and && !kiln_expr_value_is_true(&a)) || (is_or && kiln_expr_value_is_true(&a))) {
        *ret = a;
        return KILN_OK;
    }
    status = evaluate(evaluator, expr->first->next, &b);
    if (status < 0 || evaluator->missing != NULL)
        return status;
    if (is_and || is_or) {
        *ret = b;
        return KILN_OK;
    }
    return strchr("<>=!", *expr->text) != NULL ? kiln_expr_value_compare(&op, &a, &b, ret)
                                               : kiln_expr_value_compute(&op, &a, &b, ret);
}

static KilnStatus evaluate_call(Evaluator *evaluator, const KilnExpr *expr, KilnExprValue *ret)
{
    KilnOperation op = operation(evaluator, expr);
    KilnExprValue args[KILN_MOST_OPERANDS];
    size_t n = 0;

    for (const KilnExpr *arg = expr->first; arg != NULL; arg = arg->next) {
        if (n == KILN_MOST_OPERANDS)
            return kiln_expression_fail(op.text, arg->at, KILN_E_RANGE, op.err,
                                        "more than %d values for %s", KILN_MOST_OPERANDS, op.name);
        KilnStatus status = evaluate(evaluator, arg, &args[n++]);

        if (status < 0 || evaluator->missing != NULL)
            return status;
    }
    return kiln_expr_value_call(&op, args, n, ret);
}

static KilnStatus evaluate_if(Evaluator *evaluator, const KilnExpr *expr, KilnExprValue *ret)
{
    const KilnExpr *then = expr->first, *condition = then->next;
    KilnExprValue value = { 0 };
    KilnStatus status = evaluate(evaluator, condition, &value);

    if (status < 0 || evaluator->missing != NULL)
        return status;
    return evaluate(evaluator, kiln_expr_value_is_true(&value) ? then : condition->next, ret);
}

static KilnStatus evaluate(Evaluator *evaluator, const KilnExpr *expr, KilnExprValue *ret)
{
    KilnOperation op;

    switch (expr->kind) {
    case KILN_EXPR_NUMBER:
        op = operation(evaluator, expr);
        return kiln_expr_value_parse(&op, expr->text, ret);
    case KILN_EXPR_TEXT:
        return evaluate_text(evaluator, expr, ret);
    case KILN_EXPR_TRUE:
    case KILN_EXPR_FALSE:
        *ret = (KilnExprValue) { .type = KILN_SCALAR_BOOL, .i = expr->kind == KILN_EXPR_TRUE };
        return KILN_OK;
    case KILN_EXPR_NULL:
        *ret = (KilnExprValue) { .type = KILN_SCALAR_NULL };
        return KILN_OK;
    case KILN_EXPR_REFERENCE:
        return evaluate_reference(evaluator, expr, ret);
    case KILN_EXPR_CALL:
        return evaluate_call(evaluator, expr, ret);
    case KILN_EXPR_UNARY:
        return evaluate_unary(evaluator, expr, ret);
    case KILN_EXPR_BINARY:
        return evaluate_binary(evaluator, expr, ret);
    case KILN_EXPR_IF:
        break;
    }
    return evaluate_if(evaluator, expr, ret);
}

/* ---- The call ------------------------------------------------------------------------------ */

/* The end of the text in quotes that starts the expression; 0: not closed. */
static size_t quoted_length(const char *text)
{
    for (size_t i = 1; text[i] != '\0'; i++) {
        if (text[i] == '\\' && text[i + 1] != '\0')
            i++;
        else if (text[i] == text[0])
            return i + 1;
    }
    return 0;
}

/* Quotes around the whole expression don't count: '${a} * 2' is how the override
 * grammar and YAML like it best. */
static const char *unquote(char *text)
{
    char quote = *text, *to = text;
    size_t n = strlen(text);

    if ((quote != '\'' && quote != '"') || quoted_length(text) != n)
        return text;
    for (size_t i = 1; i + 1 < n; i++) {
        if (text[i] == '\\' && (text[i + 1] == quote || text[i + 1] == '\\'))
            i++;
        *to++ = text[i];
    }
    *to = '\0';
    return text;
}

static const char *take_expression(KilnResolution *resolving, KilnValueText *value, size_t end)
{
    KilnArena *arena = resolving->config->arena;
    size_t start = value->at + 1; /* behind the colon */
    char *text;

    value->at = end--; /* in front of the brace */
    while (start < end && strchr(" \t\r\n", value->text[start]) != NULL)
        start++;
    while (end > start && strchr(" \t\r\n", value->text[end - 1]) != NULL)
        end--;
    text = kiln_arena_strndup(arena, value->text + start, end - start);
    return text != NULL ? unquote(text) : NULL;
}

KilnStatus kiln_eval_call(KilnResolution *resolving, const KilnConfigNode *node,
                          KilnValueText *value, size_t start, const KilnConfigNode **ret)
{
    KilnMaker maker = { .arena = resolving->config->arena,
                        .origin = node->origin,
                        .layer = node->layer };
    Evaluator evaluator = { .resolving = resolving, .node = node, .around = value };
    size_t end = kiln_value_skip_interpolation(value->text, start);
    KilnExprValue result = { 0 };
    KilnExpr *expr = NULL;
    KilnConfigNode *made;

    if (end == 0)
        return kiln_value_fail(value, start, resolving->err, "'${' is not closed by '}'");
    evaluator.text = take_expression(resolving, value, end);
    if (evaluator.text == NULL)
        return kiln_error_nomem(resolving->err, end - start);
    KilnStatus status = kiln_expression_parse(maker.arena, evaluator.text, &expr, resolving->err);
    if (status >= 0)
        status = evaluate(&evaluator, expr, &result);
    if (status < 0)
        return status;
    if (evaluator.missing != NULL) {
        *ret = evaluator.missing;
        return KILN_OK;
    }
    made = kiln_expr_value_to_node(&maker, &result);
    if (made == NULL)
        return kiln_error_nomem(resolving->err, sizeof(*made));
    made->parent = node->parent;
    *ret = made;
    return KILN_OK;
}
