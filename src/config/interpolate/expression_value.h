/* What expressions of ${eval:...} compute with: numbers, text, booleans, null. */
#ifndef KILN_CONFIG_INTERPOLATE_EXPRESSION_VALUE_H
#define KILN_CONFIG_INTERPOLATE_EXPRESSION_VALUE_H

#include "config/tree/tree.h"

typedef struct KilnOperand {
    KilnScalar type;  /* STR, NULL, BOOL, INT or FLOAT */
    int64_t i;        /* of INT and BOOL */
    double f;         /* of FLOAT */
    const char *text; /* of STR */
} KilnOperand;

/* What is at work, and where messages point. */
typedef struct KilnOperation {
    const char *name; /* "+", "and", "max" */
    const char *text; /* the expression */
    size_t at;
    KilnError *err;
} KilnOperation;

enum { KILN_MOST_OPERANDS = 64 };

/* A literal. */
KILN_NODISCARD KilnStatus kiln_operand_parse(const KilnOperation *op, const char *text,
                                             KilnOperand *ret);
/* A resolved scalar that is not missing; KILN_E_TYPE for lists and mappings. */
KILN_NODISCARD KilnStatus kiln_operand_from_node(const KilnOperation *op,
                                                 const KilnConfigNode *node, KilnOperand *ret);
/* A new scalar; NULL when memory is out. */
KilnConfigNode *kiln_operand_to_node(const KilnMaker *maker, const KilnOperand *operand);
/* "a number", "text", "null", "true" */
const char *kiln_operand_type_name(const KilnOperand *operand);
bool kiln_operand_is_true(const KilnOperand *operand);
bool kiln_operand_is_number(const KilnOperand *operand);
/* An integer or a boolean, which counts as one. */
bool kiln_operand_is_whole(const KilnOperand *operand);
bool kiln_operand_is_nan(const KilnOperand *operand);
/* + - * / // % ** of op->name. KILN_E_RANGE for a result that is none. */
KILN_NODISCARD KilnStatus kiln_operand_compute(const KilnOperation *op, const KilnOperand *a,
                                               const KilnOperand *b, KilnOperand *ret);
/* < <= > >= == != of op->name. */
KILN_NODISCARD KilnStatus kiln_operand_compare(const KilnOperation *op, const KilnOperand *a,
                                               const KilnOperand *b, KilnOperand *ret);
/* *ret below, at or above 0; KILN_E_TYPE for what has no order. */
KILN_NODISCARD KilnStatus kiln_operand_order(const KilnOperation *op, const KilnOperand *a,
                                             const KilnOperand *b, int *ret);
/* a / b rounded down, and the remainder that has b's sign; no overflow is looked for. */
void kiln_divide_ints(int64_t a, int64_t b, int64_t *quotient, int64_t *remainder);
/* The function of op->name (min, max, round, abs, floor, ceil) of `n` operands.
 * KILN_E_KEY, with the nearest, when there is none. */
KILN_NODISCARD KilnStatus kiln_operand_call(const KilnOperation *op, const KilnOperand *args,
                                            size_t n, KilnOperand *ret);

#endif
