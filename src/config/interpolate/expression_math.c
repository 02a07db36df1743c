/* The operators and functions of expressions, typed as Python types them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/text.h"
#include "config/interpolate/expression.h"

#define FAIL(source, expr, status, ...)                                                            \
    kiln_expression_fail(source, (expr)->at, status, __VA_ARGS__)

/* ---- Values ------------------------------------------------------------------------ */

static KilnExprValue of_int(int64_t i)
{
    return (KilnExprValue) { .type = KILN_SCALAR_INT, .i = i };
}

static KilnExprValue of_bool(bool b)
{
    return (KilnExprValue) { .type = KILN_SCALAR_BOOL, .i = b };
}

static KilnExprValue of_float(double f)
{
    return (KilnExprValue) { .type = KILN_SCALAR_FLOAT, .f = f };
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

static bool is_nan(const KilnExprValue *value)
{
    return value->type == KILN_SCALAR_FLOAT && isnan(value->f);
}

static double as_float(const KilnExprValue *value)
{
    return value->type == KILN_SCALAR_FLOAT ? value->f : (double)value->i;
}

bool kiln_expr_value_is_true(const KilnExprValue *value)
{
    if (value->type == KILN_SCALAR_STR)
        return *value->text != '\0';
    return value->type != KILN_SCALAR_NULL && as_float(value) != 0;
}

static const char *type_name(const KilnExprValue *value)
{
    switch (value->type) {
    case KILN_SCALAR_NULL:
        return "null";
    case KILN_SCALAR_BOOL:
        return value->i != 0 ? "true" : "false";
    case KILN_SCALAR_INT:
    case KILN_SCALAR_FLOAT:
        return "a number";
    default:
        return "text";
    }
}

/* ---- Arithmetic -------------------------------------------------------------------- */

static KilnStatus overflow(const KilnExprSource *source, const KilnExpr *expr)
{
    return FAIL(source, expr, KILN_E_RANGE, "the result is too large");
}

static bool power_of_ints(int64_t base, int64_t exponent, int64_t *ret)
{
    int64_t result = 1;

    /* 64 multiplications overflow, unless the base is -1, 0 or 1. */
    if (base >= -1 && base <= 1)
        exponent = exponent > 0 ? 1 + (exponent - 1) % 2 : 0;
    for (; exponent > 0; exponent--)
        if (__builtin_mul_overflow(result, base, &result))
            return false;
    *ret = result;
    return true;
}

/* The quotient rounded down, and the remainder with the divisor's sign. */
static void divide_ints(int64_t a, int64_t b, int64_t *quotient, int64_t *remainder)
{
    *quotient = a / b;
    *remainder = a % b;
    if (*remainder != 0 && (*remainder < 0) != (b < 0)) {
        *quotient -= 1;
        *remainder += b;
    }
}

/* False: the result does not fit. */
static bool compute_ints(const char *sign, int64_t a, int64_t b, int64_t *ret)
{
    int64_t quotient, remainder;

    if (strcmp(sign, "**") == 0)
        return power_of_ints(a, b, ret);
    switch (*sign) {
    case '+':
        return !__builtin_add_overflow(a, b, ret);
    case '-':
        return !__builtin_sub_overflow(a, b, ret);
    case '*':
        return !__builtin_mul_overflow(a, b, ret);
    default: /* // and % */
        *ret = 0;
        if (a == INT64_MIN && b == -1)
            return *sign == '%'; /* the quotient has 65 bits */
        divide_ints(a, b, &quotient, &remainder);
        *ret = *sign == '%' ? remainder : quotient;
        return true;
    }
}

/* // and % of floats, as Python computes them. */
static double divide_floats(double a, double b, bool want_remainder)
{
    double remainder = fmod(a, b), quotient = (a - remainder) / b, whole;

    if (remainder != 0 && (remainder < 0) != (b < 0)) {
        remainder += b;
        quotient -= 1;
    } else if (remainder == 0) {
        remainder = copysign(0, b);
    }
    if (want_remainder)
        return remainder;
    if (quotient == 0)
        return copysign(0, a / b);
    whole = floor(quotient);
    return quotient - whole > 0.5 ? whole + 1 : whole;
}

static double compute_floats(const char *sign, double a, double b)
{
    if (strcmp(sign, "**") == 0)
        return pow(a, b);
    if (strcmp(sign, "/") == 0)
        return a / b;
    switch (*sign) {
    case '+':
        return a + b;
    case '-':
        return a - b;
    case '*':
        return a * b;
    default:
        return divide_floats(a, b, *sign == '%');
    }
}

/* Integers stay integers, except with / and a negative power. */
static KilnStatus compute(const KilnExprSource *source, KilnExpr *expr, const char *sign,
                          const KilnExprValue *a, const KilnExprValue *b)
{
    double x = as_float(a), y = as_float(b), result;
    bool power = strcmp(sign, "**") == 0, divides = *sign == '/' || *sign == '%';

    if ((divides && y == 0) || (power && x == 0 && y < 0))
        return FAIL(source, expr, KILN_E_RANGE, "division by zero");
    if (is_int(a) && is_int(b) && strcmp(sign, "/") != 0 && !(power && b->i < 0)) {
        expr->value = of_int(0);
        return compute_ints(sign, a->i, b->i, &expr->value.i) ? KILN_OK : overflow(source, expr);
    }
    result = compute_floats(sign, x, y);
    if (isfinite(x) && isfinite(y) && isnan(result))
        return FAIL(source, expr, KILN_E_RANGE,
                    "a negative number to the power of a fraction is no real number");
    if (isfinite(x) && isfinite(y) && isinf(result))
        return overflow(source, expr);
    expr->value = of_float(result);
    return KILN_OK;
}

static KilnStatus run_arithmetic(const KilnExprSource *source, KilnExpr *expr)
{
    return compute(source, expr, expr->name, &expr->args[0]->value, &expr->args[1]->value);
}

static KilnStatus run_sign(const KilnExprSource *source, KilnExpr *expr)
{
    const KilnExprValue factor = of_int(*expr->name == '-' ? -1 : 1);

    return compute(source, expr, "*", &factor, &expr->args[0]->value);
}

/* ---- Comparisons --------------------------------------------------------------------- */

/* Exact also between large integers and floats: a long double holds both. */
static int compare_numbers(const KilnExprValue *a, const KilnExprValue *b)
{
    long double x = is_int(a) ? (long double)a->i : (long double)a->f;
    long double y = is_int(b) ? (long double)b->i : (long double)b->f;

    return x < y ? -1 : x > y;
}

static bool is_equal(const KilnExprValue *a, const KilnExprValue *b)
{
    if (is_number(a) && is_number(b))
        return !is_nan(a) && !is_nan(b) && compare_numbers(a, b) == 0;
    if (a->type != b->type)
        return false;
    return a->type == KILN_SCALAR_NULL || strcmp(a->text, b->text) == 0;
}

/* Less than, equal to or greater than 0; an error for values without an order. */
static KilnStatus compare(const KilnExprSource *source, const KilnExpr *expr,
                          const KilnExprValue *a, const KilnExprValue *b, int *ret)
{
    if (is_number(a) && is_number(b))
        *ret = compare_numbers(a, b);
    else if (a->type == KILN_SCALAR_STR && b->type == KILN_SCALAR_STR)
        *ret = strcmp(a->text, b->text);
    else
        return FAIL(source, expr, KILN_E_TYPE, "%s and %s have no order", type_name(a),
                    type_name(b));
    return KILN_OK;
}

static KilnStatus run_equality(const KilnExprSource *source, KilnExpr *expr)
{
    bool equal = is_equal(&expr->args[0]->value, &expr->args[1]->value);

    (void)source;
    expr->value = of_bool(equal == (*expr->name == '='));
    return KILN_OK;
}

static KilnStatus run_order(const KilnExprSource *source, KilnExpr *expr)
{
    const KilnExprValue *a = &expr->args[0]->value, *b = &expr->args[1]->value;
    const char *sign = expr->name;
    int cmp = 0;
    KilnStatus status = compare(source, expr, a, b, &cmp);

    expr->value = of_bool(!is_nan(a) && !is_nan(b) &&
                          ((*sign == '<' ? cmp < 0 : cmp > 0) || (sign[1] == '=' && cmp == 0)));
    return status;
}

static KilnStatus run_not(const KilnExprSource *source, KilnExpr *expr)
{
    (void)source;
    expr->value = of_bool(!kiln_expr_value_is_true(&expr->args[0]->value));
    return KILN_OK;
}

/* ---- Functions ----------------------------------------------------------------------- */

static KilnStatus run_extreme(const KilnExprSource *source, KilnExpr *expr)
{
    bool smallest = strcmp(expr->name, "min") == 0;
    KilnExprValue best = expr->args[0]->value;

    for (size_t i = 1; i < expr->n_args; i++) {
        const KilnExprValue *arg = &expr->args[i]->value;
        int cmp = 0;
        KilnStatus status = compare(source, expr, arg, &best, &cmp);

        if (status < 0)
            return status;
        if (!is_nan(arg) && !is_nan(&best) && (smallest ? cmp < 0 : cmp > 0))
            best = *arg;
    }
    expr->value = best;
    return KILN_OK;
}

static KilnStatus run_abs(const KilnExprSource *source, KilnExpr *expr)
{
    const KilnExprValue *arg = &expr->args[0]->value;

    if (is_int(arg) && arg->i == INT64_MIN)
        return overflow(source, expr);
    expr->value = is_int(arg) ? of_int(arg->i < 0 ? -arg->i : arg->i) : of_float(fabs(arg->f));
    return KILN_OK;
}

static KilnStatus set_int(const KilnExprSource *source, KilnExpr *expr, double value)
{
    if (!(value >= -9223372036854775808.0 && value < 9223372036854775808.0))
        return FAIL(source, expr, KILN_E_RANGE, "%s: the number does not fit an integer",
                    expr->name);
    expr->value = of_int((int64_t)value);
    return KILN_OK;
}

static KilnStatus run_floor(const KilnExprSource *source, KilnExpr *expr)
{
    const KilnExprValue *arg = &expr->args[0]->value;

    expr->value = of_int(arg->i);
    if (is_int(arg))
        return KILN_OK;
    return set_int(source, expr, *expr->name == 'f' ? floor(arg->f) : ceil(arg->f));
}

/* To a multiple of 10 ** -digits, halves to the even one. False: it does not fit. */
static bool round_int(int64_t value, int64_t digits, int64_t *ret)
{
    int64_t unit = 1, down, rest;

    *ret = digits < -18 ? 0 : value;
    if (digits >= 0 || digits < -18)
        return true;
    for (; digits < 0; digits++)
        unit *= 10;
    divide_ints(value, unit, &down, &rest);
    if (rest > unit / 2 || (rest == unit / 2 && down % 2 != 0))
        down++;
    return !__builtin_mul_overflow(down, unit, ret);
}

static double round_float(double value, int64_t digits)
{
    char text[512];
    double result = 0;

    if (!isfinite(value) || digits > 300)
        return value;
    if (digits < -300)
        return copysign(0, value);
    if (digits < 0) {
        double unit = pow(10, (double)-digits);

        return nearbyint(value / unit) * unit;
    }
    /* printf rounds the exact binary value, as Python does. */
    if (snprintf(text, sizeof(text), "%.*f", (int)digits, value) >= (int)sizeof(text) ||
        kiln_parse_f64(text, &result, NULL) < 0)
        return value;
    return result;
}

static KilnStatus run_round(const KilnExprSource *source, KilnExpr *expr)
{
    const KilnExprValue *arg = &expr->args[0]->value;
    const KilnExprValue *digits = expr->n_args == 2 ? &expr->args[1]->value : NULL;

    if (digits != NULL && !is_int(digits))
        return FAIL(source, expr, KILN_E_TYPE, "round: the number of digits must be an integer");
    if (is_int(arg)) {
        expr->value = of_int(0);
        return round_int(arg->i, digits != NULL ? digits->i : 0, &expr->value.i)
                   ? KILN_OK
                   : overflow(source, expr);
    }
    if (digits == NULL)
        return set_int(source, expr, nearbyint(arg->f));
    expr->value = of_float(round_float(arg->f, digits->i));
    return KILN_OK;
}

/* ---- Tables -------------------------------------------------------------------------- */

/* An operator stands before those that its name begins with. */
const KilnExprFunction kiln_expr_operators[] = {
    { "-", 1, 1, true, NULL, run_sign, KILN_BINDS_SIGN, KILN_EXPR_CALL },
    { "+", 1, 1, true, NULL, run_sign, KILN_BINDS_SIGN, KILN_EXPR_CALL },
    { "not", 1, 1, false, NULL, run_not, KILN_BINDS_NOT, KILN_EXPR_CALL },
    { "if", 2, 2, false, NULL, NULL, KILN_BINDS_IF, KILN_EXPR_IF },
    { "or", 2, 2, false, NULL, NULL, KILN_BINDS_OR, KILN_EXPR_OR },
    { "and", 2, 2, false, NULL, NULL, KILN_BINDS_AND, KILN_EXPR_AND },
    { "<=", 2, 2, false, NULL, run_order, KILN_BINDS_COMPARISON, KILN_EXPR_CALL },
    { ">=", 2, 2, false, NULL, run_order, KILN_BINDS_COMPARISON, KILN_EXPR_CALL },
    { "==", 2, 2, false, NULL, run_equality, KILN_BINDS_COMPARISON, KILN_EXPR_CALL },
    { "!=", 2, 2, false, NULL, run_equality, KILN_BINDS_COMPARISON, KILN_EXPR_CALL },
    { "<", 2, 2, false, NULL, run_order, KILN_BINDS_COMPARISON, KILN_EXPR_CALL },
    { ">", 2, 2, false, NULL, run_order, KILN_BINDS_COMPARISON, KILN_EXPR_CALL },
    { "+", 2, 2, true, NULL, run_arithmetic, KILN_BINDS_SUM, KILN_EXPR_CALL },
    { "-", 2, 2, true, NULL, run_arithmetic, KILN_BINDS_SUM, KILN_EXPR_CALL },
    { "**", 2, 2, true, NULL, run_arithmetic, KILN_BINDS_POWER, KILN_EXPR_CALL },
    { "*", 2, 2, true, NULL, run_arithmetic, KILN_BINDS_PRODUCT, KILN_EXPR_CALL },
    { "//", 2, 2, true, NULL, run_arithmetic, KILN_BINDS_PRODUCT, KILN_EXPR_CALL },
    { "/", 2, 2, true, NULL, run_arithmetic, KILN_BINDS_PRODUCT, KILN_EXPR_CALL },
    { "%", 2, 2, true, NULL, run_arithmetic, KILN_BINDS_PRODUCT, KILN_EXPR_CALL },
    { .name = NULL },
};

static const KilnExprFunction functions[] = {
    { "min", 1, 0, false, "one value or more", run_extreme, 0, KILN_EXPR_CALL },
    { "max", 1, 0, false, "one value or more", run_extreme, 0, KILN_EXPR_CALL },
    { "round", 1, 2, true, "a number and the digits after the point", run_round, 0,
      KILN_EXPR_CALL },
    { "abs", 1, 1, true, "a number", run_abs, 0, KILN_EXPR_CALL },
    { "floor", 1, 1, true, "a number", run_floor, 0, KILN_EXPR_CALL },
    { "ceil", 1, 1, true, "a number", run_floor, 0, KILN_EXPR_CALL },
};

const KilnExprFunction *kiln_expr_function(const char *name)
{
    for (size_t i = 0; i < KILN_COUNT(functions); i++)
        if (strcmp(functions[i].name, name) == 0)
            return &functions[i];
    return NULL;
}

static KilnStatus unknown_function(const KilnExprSource *source, const KilnExpr *call)
{
    const char *names[KILN_COUNT(functions)], *near;

    for (size_t i = 0; i < KILN_COUNT(functions); i++)
        names[i] = functions[i].name;
    near = kiln_nearest(call->name, names, KILN_COUNT(names));
    return FAIL(source, call, KILN_E_KEY,
                "there is no function '%.64s'%s%s%s; there are min, max, round, abs, floor, ceil",
                call->name, near != NULL ? "; did you mean " : "", near != NULL ? near : "",
                near != NULL ? "?" : "");
}

static KilnStatus needs_numbers(const KilnExprSource *source, const KilnExpr *call)
{
    const KilnExprValue *a = &call->args[0]->value;
    const KilnExprValue *b = call->n_args > 1 ? &call->args[1]->value : a;
    bool text = a->type == KILN_SCALAR_STR || b->type == KILN_SCALAR_STR;

    return FAIL(source, call, KILN_E_TYPE, "%s needs %s, got %s%s%s%s", call->name,
                a == b ? "a number" : "numbers", type_name(a), a == b ? "" : " and ",
                a == b ? "" : type_name(b),
                text ? "; ${oc.decode:...} turns text into a number" : "");
}

KilnStatus kiln_expr_call(const KilnExprSource *source, KilnExpr *call)
{
    const KilnExprFunction *function = call->function;
    size_t n = call->n_args;

    if (function == NULL)
        return unknown_function(source, call);
    if (n < function->min_args || (function->max_args > 0 && n > function->max_args))
        return FAIL(source, call, KILN_E_USAGE, "%s takes %s, got %zu argument%s", call->name,
                    function->usage, n, n == 1 ? "" : "s");
    for (size_t i = 0; i < n && function->numbers_only; i++)
        if (!is_number(&call->args[i]->value))
            return needs_numbers(source, call);
    return function->run(source, call);
}
