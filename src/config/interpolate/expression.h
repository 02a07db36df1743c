/* Expressions of ${eval:...}: text to a tree. Nothing is computed here. */
#ifndef KILN_CONFIG_INTERPOLATE_EXPRESSION_H
#define KILN_CONFIG_INTERPOLATE_EXPRESSION_H

#include "base/arena.h"

#define KILN_EXPRESSION_BYTES 4096
#define KILN_EXPRESSION_DEPTH 64

typedef enum KilnExprKind {
    KILN_EXPR_NUMBER, /* text */
    KILN_EXPR_TEXT,   /* text, quotes taken off; may hold ${...} */
    KILN_EXPR_TRUE,
    KILN_EXPR_FALSE,
    KILN_EXPR_NULL,
    KILN_EXPR_REFERENCE, /* ${...} at `at` */
    KILN_EXPR_CALL,      /* text is the name; args from `first` on, through `next` */
    KILN_EXPR_UNARY,     /* text is the operator: - + not */
    KILN_EXPR_BINARY,    /* text is the operator, "and" and "<=" among them */
    KILN_EXPR_IF         /* first if second else third */
} KilnExprKind;

typedef struct KilnExpr KilnExpr;

struct KilnExpr {
    KilnExprKind kind;
    size_t at; /* in the expression's text, for messages */
    const char *text;
    KilnExpr *first; /* operands and arguments, in order */
    KilnExpr *next;  /* of the same parent */
};

/* The tree of `text`, in the arena. Messages show the place in the text. */
KILN_NODISCARD KilnStatus kiln_expression_parse(KilnArena *arena, const char *text, KilnExpr **ret,
                                                KilnError *err);
/* A message, and below it the expression with a caret under the character `at`. */
KilnStatus kiln_expression_fail(const char *text, size_t at, KilnStatus status, KilnError *err,
                                const char *format, ...) KILN_PRINTF(5, 6);

#endif
