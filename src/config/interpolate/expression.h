/* Expressions of ${eval:...}. expression.c reads and evaluates them in one go, expression_math.c
 * has their operators and functions. */
#ifndef KILN_CONFIG_INTERPOLATE_EXPRESSION_H
#define KILN_CONFIG_INTERPOLATE_EXPRESSION_H

#include "config/override/value.h"

#define KILN_EXPRESSION_BYTES 4096
#define KILN_EXPRESSION_DEPTH 64

/* A number, text, boolean or null. */
typedef struct KilnExprValue {
    KilnScalar type;    /* STR, NULL, BOOL, INT or FLOAT */
    long double number; /* of BOOL, INT and FLOAT: exact in the range of either */
    const char *text;   /* of STR */
} KilnExprValue;

/* State of evaluating an expression. */
typedef struct KilnExpression {
    const char *text;
    size_t at; /* of the next token */
    int depth;
    int skips; /* operands around `at` that do not count: they are read, but not computed */
    const KilnValueParser *around; /* the text that holds the expression */
    const KilnConfigNode *missing; /* a reference gave ???, so the result is ??? too */
    KilnStatus status;             /* of the first failure, which ends computing */
    KilnError *err;
} KilnExpression;

/* The precedence of operators, from the weakest to the strongest; a sign binds weaker than **:
 * -2 ** 2 is -4. */
enum {
    KILN_BINDS_IF = 1,
    KILN_BINDS_OR,
    KILN_BINDS_AND,
    KILN_BINDS_NOT,
    KILN_BINDS_COMPARISON,
    KILN_BINDS_SUM,
    KILN_BINDS_PRODUCT,
    KILN_BINDS_SIGN,
    KILN_BINDS_POWER
};

typedef struct KilnExprCall KilnExprCall;

/* A row in the tables of operators and functions. */
typedef struct KilnExprFunction {
    const char *name;
    size_t min_args, max_args; /* max_args 0: any number, two at a time from the left */
    bool numbers_only;
    const char *usage; /* of a function: "a number" */
    /* NULL for `and` and `or`, whose result is one of the operands. */
    KilnExprValue (*run)(KilnExpression *expression, const KilnExprCall *call);
    int precedence; /* of an operator: KILN_BINDS_* */
} KilnExprFunction;

struct KilnExprCall {
    const KilnExprFunction *function;
    size_t at; /* in the expression's text */
    size_t n_args;
    KilnExprValue args[2];
};

/* The operators, up to a row without a name. */
extern const KilnExprFunction kiln_expr_operators[];
/* Function of that name; NULL: none. */
const KilnExprFunction *kiln_expr_function(const char *name);
/* Fail with the names of the functions. */
KilnExprValue kiln_expr_unknown_function(KilnExpression *expression, const char *name, size_t at);
/* The result of a call, after checks of the number and types of its arguments. */
KilnExprValue kiln_expr_call(KilnExpression *expression, const KilnExprCall *call);
bool kiln_expr_value_is_true(const KilnExprValue *value);
/* Set the expression's status, and a message that shows the expression, with a caret under the
 * character `at`; does nothing after a failure. Returns null. */
KilnExprValue kiln_expression_fail(KilnExpression *expression, size_t at, KilnStatus status,
                                   const char *format, ...) KILN_PRINTF(4, 5);

#endif
