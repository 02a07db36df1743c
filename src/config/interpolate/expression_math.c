/* The operators and functions of expressions, typed as Python types them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/text.h"
#include "config/interpolate/expression.h"

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

static KilnExprValue overflow(KilnExpression *expression, const KilnExprCall *call)
{
    return kiln_expression_fail(expression, call->at, KILN_E_RANGE, "the result is too large");
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

    switch (*sign) {
    case '+':
        return !__builtin_add_overflow(a, b, ret);
    case '-':
        return !__builtin_sub_overflow(a, b, ret);
    case '*':
        return sign[1] == '*' ? power_of_ints(a, b, ret) : !__builtin_mul_overflow(a, b, ret);
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
    switch (*sign) {
    case '+':
        return a + b;
    case '-':
        return a - b;
    case '*':
        return sign[1] == '*' ? pow(a, b) : a * b;
    default:
        return strcmp(sign, "/") == 0 ? a / b : divide_floats(a, b, *sign == '%');
    }
}

/* Integers stay integers, except with / and a negative power. A sign multiplies by 1 or -1. */
static KilnExprValue run_arithmetic(KilnExpression *expression, const KilnExprCall *call)
{
    const char *sign = call->n_args == 2 ? call->function->name : "*";
    KilnExprValue a = call->args[0], b = call->args[1];

    if (call->n_args == 1)
        b = of_int(*call->function->name == '-' ? -1 : 1);

    double x = as_float(&a), y = as_float(&b), result;
    bool power = strcmp(sign, "**") == 0, divides = *sign == '/' || *sign == '%';

    if ((divides && y == 0) || (power && x == 0 && y < 0))
        return kiln_expression_fail(expression, call->at, KILN_E_RANGE, "division by zero");
    if (is_int(&a) && is_int(&b) && strcmp(sign, "/") != 0 && !(power && b.i < 0)) {
        KilnExprValue whole = of_int(0);

        return compute_ints(sign, a.i, b.i, &whole.i) ? whole : overflow(expression, call);
    }
    result = compute_floats(sign, x, y);
    if (isfinite(x) && isfinite(y) && isnan(result))
        return kiln_expression_fail(expression, call->at, KILN_E_RANGE,
                                    "a negative number to the power of a fraction is no real "
                                    "number");
    return isfinite(x) && isfinite(y) && isinf(result) ? overflow(expression, call)
                                                       : of_float(result);
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

static KilnExprValue run_equality(KilnExpression *expression, const KilnExprCall *call)
{
    (void)expression;
    return of_bool(is_equal(&call->args[0], &call->args[1]) == (*call->function->name == '='));
}

/* < <= > >=, and the extremes: max(a, b) is b if b > a. */
static KilnExprValue run_order(KilnExpression *expression, const KilnExprCall *call)
{
    const KilnExprValue *a = &call->args[0], *b = &call->args[1];
    const char *name = call->function->name;
    int cmp;

    if (is_number(a) && is_number(b))
        cmp = compare_numbers(a, b);
    else if (a->type == KILN_SCALAR_STR && b->type == KILN_SCALAR_STR)
        cmp = strcmp(a->text, b->text);
    else
        return kiln_expression_fail(expression, call->at, KILN_E_TYPE, "%s and %s have no order",
                                    type_name(a), type_name(b));
    return of_bool(!is_nan(a) && !is_nan(b) &&
                   ((*name == '<' ? cmp < 0 : cmp > 0) || (name[1] == '=' && cmp == 0)));
}

static KilnExprValue run_extreme(KilnExpression *expression, const KilnExprCall *call)
{
    static const KilnExprFunction less = { .name = "<" }, greater = { .name = ">" };
    const KilnExprValue *best = &call->args[0], *other = &call->args[1];
    KilnExprCall order = { .at = call->at, .n_args = 2, .args = { *other, *best } };

    if (call->n_args == 1)
        return *best;
    order.function = strcmp(call->function->name, "min") == 0 ? &less : &greater;
    return run_order(expression, &order).i != 0 ? *other : *best;
}

static KilnExprValue run_not(KilnExpression *expression, const KilnExprCall *call)
{
    (void)expression;
    return of_bool(!kiln_expr_value_is_true(&call->args[0]));
}

/* ---- Functions ----------------------------------------------------------------------- */

static KilnExprValue run_abs(KilnExpression *expression, const KilnExprCall *call)
{
    const KilnExprValue *arg = &call->args[0];

    if (is_int(arg) && arg->i == INT64_MIN)
        return overflow(expression, call);
    return is_int(arg) ? of_int(arg->i < 0 ? -arg->i : arg->i) : of_float(fabs(arg->f));
}

static KilnExprValue to_int(KilnExpression *expression, const KilnExprCall *call, double value)
{
    if (value >= -9223372036854775808.0 && value < 9223372036854775808.0)
        return of_int((int64_t)value);
    return kiln_expression_fail(expression, call->at, KILN_E_RANGE,
                                "%s: the number does not fit an integer", call->function->name);
}

static KilnExprValue run_floor(KilnExpression *expression, const KilnExprCall *call)
{
    const KilnExprValue *arg = &call->args[0];

    if (is_int(arg))
        return of_int(arg->i);
    return to_int(expression, call, *call->function->name == 'f' ? floor(arg->f) : ceil(arg->f));
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

static KilnExprValue run_round(KilnExpression *expression, const KilnExprCall *call)
{
    const KilnExprValue *arg = &call->args[0], *digits = &call->args[1];
    KilnExprValue whole = of_int(0);

    if (call->n_args == 2 && !is_int(digits))
        return kiln_expression_fail(expression, call->at, KILN_E_TYPE,
                                    "round: the number of digits must be an integer");
    if (!is_int(arg))
        return call->n_args == 2 ? of_float(round_float(arg->f, digits->i))
                                 : to_int(expression, call, nearbyint(arg->f));
    return round_int(arg->i, call->n_args == 2 ? digits->i : 0, &whole.i)
               ? whole
               : overflow(expression, call);
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

    if (n < function->min_args || (function->max_args > 0 && n > function->max_args))
        return kiln_expression_fail(expression, call->at, KILN_E_USAGE,
                                    "%s takes %s, got %zu argument%s", function->name,
                                    function->usage, n, n == 1 ? "" : "s");
    if (function->numbers_only && (!is_number(&call->args[0]) || !is_number(&call->args[n - 1])))
        return needs_numbers(expression, call);
    return function->run(expression, call);
}
