/* What expressions of ${eval:...} compute with: numbers, text, booleans, null. */
#ifndef KILN_CONFIG_INTERPOLATE_EXPRESSION_VALUE_H
#define KILN_CONFIG_INTERPOLATE_EXPRESSION_VALUE_H

#include "config/tree/tree.h"

typedef struct KilnExprValue {
    KilnScalar type;  /* STR, NULL, BOOL, INT or FLOAT */
    int64_t i;        /* of INT and BOOL */
    double f;         /* of FLOAT */
    const char *text; /* of STR */
} KilnExprValue;

/* What is at work, and where messages point. */
typedef struct KilnOperation {
    const char *name; /* "+", "and", "max" */
    const char *text; /* the expression */
    size_t at;
    KilnError *err;
} KilnOperation;

enum { KILN_MOST_OPERANDS = 64 };

/* A literal. */
KILN_NODISCARD KilnStatus kiln_expr_value_parse(const KilnOperation *op, const char *text,
                                                KilnExprValue *ret);
/* A resolved scalar that is not missing; KILN_E_TYPE for lists and mappings. */
KILN_NODISCARD KilnStatus kiln_expr_value_from_node(const KilnOperation *op,
                                                    const KilnConfigNode *node, KilnExprValue *ret);
/* A new scalar; NULL when memory is out. */
KilnConfigNode *kiln_expr_value_to_node(const KilnMaker *maker, const KilnExprValue *operand);
/* "a number", "text", "null", "true" */
const char *kiln_expr_value_type_name(const KilnExprValue *operand);
bool kiln_expr_value_is_true(const KilnExprValue *operand);
bool kiln_expr_value_is_number(const KilnExprValue *operand);
/* An integer or a boolean, which counts as one. */
bool kiln_expr_value_is_whole(const KilnExprValue *operand);
bool kiln_expr_value_is_nan(const KilnExprValue *operand);
/* + - * / // % ** of op->name. KILN_E_RANGE for a result that is none. */
KILN_NODISCARD KilnStatus kiln_expr_value_compute(const KilnOperation *op, const KilnExprValue *a,
                                                  const KilnExprValue *b, KilnExprValue *ret);
/* < <= > >= == != of op->name. */
KILN_NODISCARD KilnStatus kiln_expr_value_compare(const KilnOperation *op, const KilnExprValue *a,
                                                  const KilnExprValue *b, KilnExprValue *ret);
/* *ret below, at or above 0; KILN_E_TYPE for what has no order. */
KILN_NODISCARD KilnStatus kiln_expr_value_order(const KilnOperation *op, const KilnExprValue *a,
                                                const KilnExprValue *b, int *ret);
/* a / b rounded down, and the remainder that has b's sign; no overflow is looked for. */
void kiln_divide_ints(int64_t a, int64_t b, int64_t *quotient, int64_t *remainder);
/* The function of op->name (min, max, round, abs, floor, ceil) of `n` operands.
 * KILN_E_KEY, with the nearest, when there is none. */
KILN_NODISCARD KilnStatus kiln_expr_value_call(const KilnOperation *op, const KilnExprValue *args,
                                               size_t n, KilnExprValue *ret);

#endif
