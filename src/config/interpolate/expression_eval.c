/* Evaluates ${eval:...}: numbers, text, comparisons, conditions, references. expression.c parses
 * the expression, expression_math.c computes. */
#include <string.h>

#include "base/parse.h"
#include "config/interpolate/expression.h"
#include "config/interpolate/interpolate.h"
#include "config/composed.h"
#include "config/sweep/sweep_value.h"

typedef struct Evaluator {
    KilnExprSource source;
    const KilnValueParser *around; /* the text that holds the expression */
    const KilnConfigNode *missing; /* a reference gave ???, so the result is ??? too */
} Evaluator;

/* ---- Config values ------------------------------------------------------------------- */

static KilnStatus value_from_node(const Evaluator *evaluator, KilnExpr *expr,
                                  const KilnConfigNode *node)
{
    KilnExprValue *value = &expr->value;

    *value = (KilnExprValue) { .type = node->scalar, .text = node->text };
    if (node->kind != KILN_NODE_SCALAR)
        return kiln_expression_fail(&evaluator->source, expr->at, KILN_E_TYPE,
                                    "this is %s; an expression computes with single values",
                                    kiln_node_kind_name(node));
    if (node->scalar == KILN_SCALAR_BOOL)
        value->i = strcmp(node->text, "true") == 0;
    if (node->scalar == KILN_SCALAR_INT && kiln_parse_i64(node->text, &value->i, NULL) < 0)
        return kiln_expression_fail(&evaluator->source, expr->at, KILN_E_RANGE,
                                    "%.64s does not fit 64 bits", node->text);
    if (node->scalar == KILN_SCALAR_FLOAT && kiln_parse_f64(node->text, &value->f, NULL) < 0)
        return kiln_expression_fail(&evaluator->source, expr->at, KILN_E_RANGE,
                                    "%.64s does not fit a double", node->text);
    return KILN_OK;
}

static KilnConfigNode *value_to_node(const KilnMaker *maker, const KilnExprValue *value)
{
    const KilnNumber number = { value->type == KILN_SCALAR_FLOAT, value->i, value->f };
    const char *text = value->text;

    if (value->type == KILN_SCALAR_INT || value->type == KILN_SCALAR_FLOAT)
        return kiln_number_node(maker, &number);
    if (value->type == KILN_SCALAR_BOOL)
        text = value->i != 0 ? "true" : "false";
    else if (value->type == KILN_SCALAR_NULL)
        text = "null";
    return kiln_node_scalar(maker, value->type, text);
}

static KilnStatus evaluate_reference(Evaluator *evaluator, KilnExpr *expr)
{
    KilnValueParser parser = *evaluator->around;
    const KilnConfigNode *node = NULL;
    KilnStatus status;

    parser.text = evaluator->source.text;
    parser.at = expr->at;
    status = kiln_resolve_interpolation(&parser, &node);
    if (status < 0)
        return status;
    if (kiln_node_is_scalar(node, KILN_SCALAR_MISSING)) {
        evaluator->missing = node;
        return KILN_OK;
    }
    return value_from_node(evaluator, expr, node);
}

/* Text, in which ${...} is resolved as in any text of the config. */
static KilnStatus evaluate_text(Evaluator *evaluator, KilnExpr *expr)
{
    const KilnMaker *maker = &evaluator->around->maker;
    KilnConfigNode *text;
    const KilnConfigNode *node = NULL;
    KilnText buf = { 0 };
    KilnStatus status;

    expr->value = (KilnExprValue) { .type = KILN_SCALAR_STR, .text = expr->name };
    if (strstr(expr->name, "${") == NULL)
        return KILN_OK;
    text = kiln_node_string(maker, expr->name);
    if (text == NULL)
        return kiln_error_nomem(evaluator->source.err, sizeof(*text));
    text->parent = evaluator->around->node->parent;
    status = kiln_resolve_node(evaluator->around->resolution, text, &node);
    if (status < 0)
        return status;
    if (kiln_node_is_scalar(node, KILN_SCALAR_MISSING))
        evaluator->missing = node;
    kiln_value_text(node, &buf);
    expr->value.text = kiln_text_to_arena(&buf, maker->arena);
    return expr->value.text != NULL ? KILN_OK : kiln_error_nomem(evaluator->source.err, 1);
}

/* ---- Evaluation ------------------------------------------------------------------------ */

static KilnStatus evaluate(Evaluator *evaluator, KilnExpr *expr);

/* and, or and if evaluate only the operands that count. */
static KilnStatus evaluate_lazily(Evaluator *evaluator, KilnExpr *expr)
{
    bool is_if = expr->kind == KILN_EXPR_IF;
    KilnExpr *result = expr->args[0], *condition = expr->args[is_if ? 1 : 0];
    KilnStatus status = evaluate(evaluator, condition);

    if (status < 0 || evaluator->missing != NULL)
        return status;
    bool truth = kiln_expr_value_is_true(&condition->value);
    if (is_if ? !truth : truth == (expr->kind == KILN_EXPR_AND))
        result = expr->args[is_if ? 2 : 1];
    if (is_if || result != expr->args[0])
        status = evaluate(evaluator, result);
    expr->value = result->value;
    return status;
}

static KilnStatus evaluate(Evaluator *evaluator, KilnExpr *expr)
{
    KilnStatus status = KILN_OK;

    switch (expr->kind) {
    case KILN_EXPR_LITERAL:
        return KILN_OK;
    case KILN_EXPR_TEXT:
        return evaluate_text(evaluator, expr);
    case KILN_EXPR_REFERENCE:
        return evaluate_reference(evaluator, expr);
    case KILN_EXPR_AND:
    case KILN_EXPR_OR:
    case KILN_EXPR_IF:
        return evaluate_lazily(evaluator, expr);
    case KILN_EXPR_CALL:
        break;
    }
    for (size_t i = 0; i < expr->n_args && status >= 0 && evaluator->missing == NULL; i++)
        status = evaluate(evaluator, expr->args[i]);
    if (status < 0 || evaluator->missing != NULL)
        return status;
    return kiln_expr_call(&evaluator->source, expr);
}

/* ---- ${eval:...} ------------------------------------------------------------------------------
 */

static const char *take_expression(KilnValueParser *parser, size_t end)
{
    size_t start = parser->at + 1; /* after the colon */

    parser->at = end--; /* of the brace */
    while (start < end && strchr(" \t\r\n", parser->text[start]) != NULL)
        start++;
    while (end > start && strchr(" \t\r\n", parser->text[end - 1]) != NULL)
        end--;
    return kiln_arena_strndup(parser->maker.arena, parser->text + start, end - start);
}

KilnStatus kiln_eval_call(KilnValueParser *parser, size_t start, const KilnConfigNode **ret)
{
    Evaluator evaluator = { .around = parser };
    size_t end = kiln_value_skip_interpolation(parser->text, start);
    KilnExpr *expr = NULL;
    KilnConfigNode *result;

    if (end == 0)
        return kiln_value_fail(parser, start, "'${' is not closed by '}'");
    evaluator.source = (KilnExprSource) { take_expression(parser, end), parser->err };
    if (evaluator.source.text == NULL)
        return kiln_error_nomem(parser->err, end - start);
    KilnStatus status = kiln_expression_parse(parser->maker.arena, &evaluator.source, &expr);
    if (status >= 0)
        status = evaluate(&evaluator, expr);
    if (status < 0)
        return status;
    if (evaluator.missing != NULL) {
        *ret = evaluator.missing;
        return KILN_OK;
    }
    result = value_to_node(&parser->maker, &expr->value);
    if (result == NULL)
        return kiln_error_nomem(parser->err, sizeof(*result));
    result->parent = parser->node->parent;
    *ret = result;
    return KILN_OK;
}
