/* The operators and functions of expressions, typed as Python types them. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/text.h"
#include "config/interpolate/expression.h"

_Static_assert(LDBL_MANT_DIG >= 64, "a long double holds every int64_t");

/* ---- Values ------------------------------------------------------------------------ */

static KilnExprValue of(KilnScalar type, long double number)
{
    return (KilnExprValue) { .type = type, .number = number };
}

/* An integer, or a boolean, which counts as one. */
static bool is_int(const KilnExprValue *value)
{
    return value->type == KILN_SCALAR_INT || value->type == KILN_SCALAR_BOOL;
}

static bool is_number(const KilnExprValue *value)
{
    return is_int(value) || value->type == KILN_SCALAR_FLOAT;
}

bool kiln_expr_value_is_true(const KilnExprValue *value)
{
    if (value->type == KILN_SCALAR_STR)
        return *value->text != '\0';
    return value->type != KILN_SCALAR_NULL && value->number != 0;
}

static const char *type_name(const KilnExprValue *value)
{
    switch (value->type) {
    case KILN_SCALAR_NULL:
        return "null";
    case KILN_SCALAR_BOOL:
        return value->number != 0 ? "true" : "false";
    case KILN_SCALAR_INT:
    case KILN_SCALAR_FLOAT:
        return "a number";
    default:
        return "text";
    }
}

static bool fits_int(long double number)
{
    return number >= -9223372036854775808.0L && number < 9223372036854775808.0L;
}

/* ---- Arithmetic -------------------------------------------------------------------- */

static long double power_of_ints(long double base, long double exponent)
{
    long double result = 1;

    /* 64 multiplications leave 64 bits, unless the base is -1, 0 or 1. */
    if (fabsl(base) <= 1)
        return fmodl(exponent, 2) == 0 && base != 0 ? 1 : exponent == 0 ? 1 : base;
    for (; exponent > 0 && fits_int(result); exponent--)
        result *= base;
    return result;
}

/* // and %, rounded down: the remainder has the divisor's sign. Python divides `floats` so. */
static long double divide(long double a, long double b, bool want_remainder, bool floats)
{
    long double remainder = fmodl(a, b), quotient = a - remainder;

    quotient = floats ? (double)quotient / (double)b : quotient / b;
    if (remainder != 0 && (remainder < 0) != (b < 0)) {
        remainder += b;
        quotient -= 1;
    } else if (remainder == 0) {
        remainder = copysignl(0, b);
    }
    if (want_remainder)
        return remainder;
    return quotient == 0 ? copysignl(0, a / b) : roundl(quotient);
}

/* Exact in the range of integers: what is not exact is out of the range. */
static long double compute_ints(const char *sign, long double a, long double b)
{
    switch (*sign) {
    case '+':
        return a + b;
    case '-':
        return a - b;
    case '*':
        return sign[1] == '*' ? power_of_ints(a, b) : a * b;
    default: /* // and % */
        return divide(a, b, *sign == '%', false);
    }
}

static double compute_floats(const char *sign, double a, double b)
{
    switch (*sign) {
    case '+':
        return a + b;
    case '-':
        return a - b;
    case '*':
        return sign[1] == '*' ? pow(a, b) : a * b;
    default:
        return strcmp(sign, "/") == 0 ? a / b : (double)divide(a, b, *sign == '%', true);
    }
}

/* Integers stay integers, except with / and a negative power. A sign multiplies by 1 or -1. */
static KilnExprValue run_arithmetic(KilnExpression *expression, const KilnExprCall *call)
{
    const bool prefix = call->n_args == 1;
    const char *sign = prefix ? "*" : call->function->name;
    const KilnExprValue one = of(KILN_SCALAR_INT, *call->function->name == '-' ? -1 : 1);
    const KilnExprValue *a = &call->args[0], *b = prefix ? &one : &call->args[1];
    bool power = strcmp(sign, "**") == 0, divides = *sign == '/' || *sign == '%';
    double result;

    if ((divides && b->number == 0) || (power && a->number == 0 && b->number < 0))
        return kiln_expression_fail(expression, call->at, KILN_E_RANGE, "division by zero");
    if (is_int(a) && is_int(b) && strcmp(sign, "/") != 0 && !(power && b->number < 0))
        return of(KILN_SCALAR_INT, compute_ints(sign, a->number, b->number));
    result = is_int(a) && is_int(b) && !power
                 ? (double)(a->number / b->number)
                 : compute_floats(sign, (double)a->number, (double)b->number);
    if (isnan(result) && isfinite(a->number) && isfinite(b->number))
        return kiln_expression_fail(expression, call->at, KILN_E_RANGE,
                                    "a negative number to the power of a fraction is no real "
                                    "number");
    return of(KILN_SCALAR_FLOAT, result);
}

/* ---- Comparisons --------------------------------------------------------------------- */

static KilnExprValue run_equality(KilnExpression *expression, const KilnExprCall *call)
{
    const KilnExprValue *a = &call->args[0], *b = &call->args[1];
    bool equal = a->type == b->type;

    (void)expression;
    if (is_number(a) && is_number(b))
        equal = a->number == b->number;
    else if (equal && a->type == KILN_SCALAR_STR)
        equal = strcmp(a->text, b->text) == 0;
    return of(KILN_SCALAR_BOOL, equal == (*call->function->name == '='));
}

/* -1, 0 or 1; another number for NaN and, after a failure, for values without an order. */
static int order(KilnExpression *expression, size_t at, const KilnExprValue *a,
                 const KilnExprValue *b)
{
    if (is_number(a) && is_number(b))
        return a->number < b->number    ? -1
               : a->number > b->number  ? 1
               : a->number == b->number ? 0
                                        : 2;
    if (a->type == KILN_SCALAR_STR && b->type == KILN_SCALAR_STR)
        return (strcmp(a->text, b->text) > 0) - (strcmp(a->text, b->text) < 0);
    kiln_expression_fail(expression, at, KILN_E_TYPE, "%s and %s have no order", type_name(a),
                         type_name(b));
    return 2;
}

static KilnExprValue run_order(KilnExpression *expression, const KilnExprCall *call)
{
    const char *name = call->function->name;
    int found = order(expression, call->at, &call->args[0], &call->args[1]);

    return of(KILN_SCALAR_BOOL, found == (*name == '<' ? -1 : 1) || (found == 0 && name[1] == '='));
}

static KilnExprValue run_extreme(KilnExpression *expression, const KilnExprCall *call)
{
    const KilnExprValue *best = &call->args[0], *other = &call->args[1];
    int better = strcmp(call->function->name, "min") == 0 ? -1 : 1;

    return call->n_args > 1 && order(expression, call->at, other, best) == better ? *other : *best;
}

static KilnExprValue run_not(KilnExpression *expression, const KilnExprCall *call)
{
    (void)expression;
    return of(KILN_SCALAR_BOOL, !kiln_expr_value_is_true(&call->args[0]));
}

/* ---- Functions ----------------------------------------------------------------------- */

static KilnExprValue run_abs(KilnExpression *expression, const KilnExprCall *call)
{
    (void)expression;
    return of(is_int(&call->args[0]) ? KILN_SCALAR_INT : KILN_SCALAR_FLOAT,
              fabsl(call->args[0].number));
}

static KilnExprValue to_int(KilnExpression *expression, const KilnExprCall *call,
                            long double number)
{
    if (fits_int(number))
        return of(KILN_SCALAR_INT, number);
    return kiln_expression_fail(expression, call->at, KILN_E_RANGE,
                                "%s: the number does not fit an integer", call->function->name);
}

static KilnExprValue run_floor(KilnExpression *expression, const KilnExprCall *call)
{
    long double number = call->args[0].number;

    return to_int(expression, call, *call->function->name == 'f' ? floorl(number) : ceill(number));
}

/* To a multiple of 10 ** -digits, halves to the even one. */
static long double round_number(long double number, long double digits)
{
    char text[512];
    double result = 0;

    if (!isfinite(number) || digits > 300)
        return number;
    if (digits < -300)
        return copysignl(0, number);
    if (digits <= 0) {
        long double unit = powl(10, -digits), rest = divide(number, unit, true, false);
        long double down = (number - rest) / unit;

        down += rest > unit / 2 || (rest == unit / 2 && fmodl(down, 2) != 0);
        return down == 0 ? copysignl(0, number) : down * unit;
    }
    /* printf rounds the exact binary value, as Python does. */
    if (snprintf(text, sizeof(text), "%.*f", (int)digits, (double)number) >= (int)sizeof(text) ||
        kiln_parse_f64(text, &result, NULL) < 0)
        return number;
    return result;
}

static KilnExprValue run_round(KilnExpression *expression, const KilnExprCall *call)
{
    const KilnExprValue *arg = &call->args[0], *digits = &call->args[1];

    if (call->n_args == 1)
        return to_int(expression, call, round_number(arg->number, 0));
    if (!is_int(digits))
        return kiln_expression_fail(expression, call->at, KILN_E_TYPE,
                                    "round: the number of digits must be an integer");
    if (is_int(arg))
        return of(KILN_SCALAR_INT,
                  digits->number < 0 ? round_number(arg->number, digits->number) : arg->number);
    return of(KILN_SCALAR_FLOAT, (double)round_number(arg->number, digits->number));
}

/* ---- Tables -------------------------------------------------------------------------- */

/* An operator stands before those that its name begins with. */
const KilnExprFunction kiln_expr_operators[] = {
    { "-", 1, 1, true, NULL, run_arithmetic, KILN_BINDS_SIGN },
    { "+", 1, 1, true, NULL, run_arithmetic, KILN_BINDS_SIGN },
    { "not", 1, 1, false, NULL, run_not, KILN_BINDS_NOT },
    { "or", 2, 2, false, NULL, NULL, KILN_BINDS_OR },
    { "and", 2, 2, false, NULL, NULL, KILN_BINDS_AND },
    { "<=", 2, 2, false, NULL, run_order, KILN_BINDS_COMPARISON },
    { ">=", 2, 2, false, NULL, run_order, KILN_BINDS_COMPARISON },
    { "==", 2, 2, false, NULL, run_equality, KILN_BINDS_COMPARISON },
    { "!=", 2, 2, false, NULL, run_equality, KILN_BINDS_COMPARISON },
    { "<", 2, 2, false, NULL, run_order, KILN_BINDS_COMPARISON },
    { ">", 2, 2, false, NULL, run_order, KILN_BINDS_COMPARISON },
    { "+", 2, 2, true, NULL, run_arithmetic, KILN_BINDS_SUM },
    { "-", 2, 2, true, NULL, run_arithmetic, KILN_BINDS_SUM },
    { "**", 2, 2, true, NULL, run_arithmetic, KILN_BINDS_POWER },
    { "*", 2, 2, true, NULL, run_arithmetic, KILN_BINDS_PRODUCT },
    { "//", 2, 2, true, NULL, run_arithmetic, KILN_BINDS_PRODUCT },
    { "/", 2, 2, true, NULL, run_arithmetic, KILN_BINDS_PRODUCT },
    { "%", 2, 2, true, NULL, run_arithmetic, KILN_BINDS_PRODUCT },
    { .name = NULL },
};

static const KilnExprFunction functions[] = {
    { "min", 1, 0, false, "one value or more", run_extreme, 0 },
    { "max", 1, 0, false, "one value or more", run_extreme, 0 },
    { "round", 1, 2, true, "a number and the digits after the point", run_round, 0 },
    { "abs", 1, 1, true, "a number", run_abs, 0 },
    { "floor", 1, 1, true, "a number", run_floor, 0 },
    { "ceil", 1, 1, true, "a number", run_floor, 0 },
};

const KilnExprFunction *kiln_expr_function(const char *name)
{
    for (size_t i = 0; i < KILN_COUNT(functions); i++)
        if (strcmp(functions[i].name, name) == 0)
            return &functions[i];
    return NULL;
}

KilnExprValue kiln_expr_unknown_function(KilnExpression *expression, const char *name, size_t at)
{
    const char *names[KILN_COUNT(functions)], *near;

    for (size_t i = 0; i < KILN_COUNT(functions); i++)
        names[i] = functions[i].name;
    near = kiln_nearest(name, names, KILN_COUNT(names));
    return kiln_expression_fail(
        expression, at, KILN_E_KEY,
        "there is no function '%.64s'%s%s%s; there are min, max, round, abs, floor, ceil", name,
        near != NULL ? "; did you mean " : "", near != NULL ? near : "", near != NULL ? "?" : "");
}

static KilnExprValue needs_numbers(KilnExpression *expression, const KilnExprCall *call)
{
    const KilnExprValue *a = &call->args[0], *b = &call->args[call->n_args - 1];
    bool text = a->type == KILN_SCALAR_STR || b->type == KILN_SCALAR_STR;

    return kiln_expression_fail(expression, call->at, KILN_E_TYPE, "%s needs %s, got %s%s%s%s",
                                call->function->name, a == b ? "a number" : "numbers", type_name(a),
                                a == b ? "" : " and ", a == b ? "" : type_name(b),
                                text ? "; ${oc.decode:...} turns text into a number" : "");
}

KilnExprValue kiln_expr_call(KilnExpression *expression, const KilnExprCall *call)
{
    const KilnExprFunction *function = call->function;
    size_t n = call->n_args;
    const KilnExprValue *last = &call->args[n > 1];
    KilnExprValue value;

    if (n < function->min_args || (function->max_args > 0 && n > function->max_args))
        return kiln_expression_fail(expression, call->at, KILN_E_USAGE,
                                    "%s takes %s, got %zu argument%s", function->name,
                                    function->usage, n, n == 1 ? "" : "s");
    if (function->numbers_only && (!is_number(&call->args[0]) || !is_number(last)))
        return needs_numbers(expression, call);
    value = function->run(expression, call);
    if (value.type == KILN_SCALAR_INT)
        value.number += 0; /* no -0 */
    if ((value.type == KILN_SCALAR_INT && !fits_int(value.number)) ||
        (value.type == KILN_SCALAR_FLOAT && isinf(value.number) && isfinite(call->args[0].number) &&
         isfinite(last->number)))
        return kiln_expression_fail(expression, call->at, KILN_E_RANGE, "the result is too large");
    return value;
}
