/* Expressions of ${eval:...}. expression.c parses them, expression_math.c has their operators
 * and functions, expression_eval.c evaluates them. */
#ifndef KILN_CONFIG_INTERPOLATE_EXPRESSION_H
#define KILN_CONFIG_INTERPOLATE_EXPRESSION_H

#include "config/tree/tree.h"

#define KILN_EXPRESSION_BYTES 4096
#define KILN_EXPRESSION_DEPTH 64

/* A number, text, boolean or null. */
typedef struct KilnExprValue {
    KilnScalar type;  /* STR, NULL, BOOL, INT or FLOAT */
    int64_t i;        /* of INT and BOOL */
    double f;         /* of FLOAT */
    const char *text; /* of STR */
} KilnExprValue;

typedef enum KilnExprKind {
    KILN_EXPR_TEXT,      /* quoted text, in `name`; may hold ${...} */
    KILN_EXPR_REFERENCE, /* ${...} at `at` */
    KILN_EXPR_CALL,      /* a function, or an operator other than the lazy ones below */
    KILN_EXPR_LITERAL,   /* a number, true, false, null: `value` */
    KILN_EXPR_AND,
    KILN_EXPR_OR,
    KILN_EXPR_IF /* args[0] if args[1] else args[2] */
} KilnExprKind;

typedef struct KilnExpr KilnExpr;

/* The text of an expression, which messages quote. */
typedef struct KilnExprSource {
    const char *text;
    KilnError *err;
} KilnExprSource;

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

/* A row in the tables of operators and functions. */
typedef struct KilnExprFunction {
    const char *name;
    size_t min_args, max_args; /* max_args 0: any number */
    bool numbers_only;
    const char *usage; /* of a function: "a number" */
    /* Computes expr->value from the values of expr->args. */
    KilnStatus (*run)(const KilnExprSource *source, KilnExpr *expr);
    int precedence;    /* of an operator: KILN_BINDS_* */
    KilnExprKind kind; /* of an operator */
} KilnExprFunction;

struct KilnExpr {
    KilnExprKind kind;
    size_t at; /* in the expression's text */
    const char *name;
    const KilnExprFunction *function; /* of a call; NULL: no function has that name */
    KilnExpr **args;
    size_t n_args, args_capacity;
    KilnExprValue value; /* of a literal; of others when evaluated */
};

/* The tree of source->text, in the arena. Quotes around the whole expression do not count:
 * overrides and YAML often need them; source->text loses them. */
KILN_NODISCARD KilnStatus kiln_expression_parse(KilnArena *arena, KilnExprSource *source,
                                                KilnExpr **ret);
/* Set a message that shows the expression, with a caret under the character `at`. */
KilnStatus kiln_expression_fail(const KilnExprSource *source, size_t at, KilnStatus status,
                                const char *format, ...) KILN_PRINTF(4, 5);

/* The operators, up to a row without a name. */
extern const KilnExprFunction kiln_expr_operators[];
/* Function of that name; NULL: none. */
const KilnExprFunction *kiln_expr_function(const char *name);
/* Run a call whose args are evaluated: checks their number and types first. */
KILN_NODISCARD KilnStatus kiln_expr_call(const KilnExprSource *source, KilnExpr *call);
bool kiln_expr_value_is_true(const KilnExprValue *value);

#endif
