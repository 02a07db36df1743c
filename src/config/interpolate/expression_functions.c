/* The functions of ${eval:...}: min, max, round, abs, floor, ceil. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/text.h"
#include "config/interpolate/expression.h"
#include "config/interpolate/expression_value.h"

#define FAIL(op, status, ...)                                                                      \
    kiln_expression_fail((op)->text, (op)->at, status, (op)->err, __VA_ARGS__)

static KilnExprValue of_int(int64_t i)
{
    return (KilnExprValue) { .type = KILN_SCALAR_INT, .i = i };
}

static KilnExprValue of_float(double f)
{
    return (KilnExprValue) { .type = KILN_SCALAR_FLOAT, .f = f };
}

static KilnStatus run_extreme(const KilnOperation *op, const KilnExprValue *args, size_t n,
                              KilnExprValue *ret)
{
    bool least = strcmp(op->name, "min") == 0;
    KilnExprValue best = args[0];

    for (size_t i = 1; i < n; i++) {
        int cmp = 0;
        KilnStatus status = kiln_expr_value_order(op, &args[i], &best, &cmp);

        if (status < 0)
            return status;
        if (!kiln_expr_value_is_nan(&args[i]) && !kiln_expr_value_is_nan(&best) &&
            (least ? cmp < 0 : cmp > 0))
            best = args[i];
    }
    *ret = best;
    return KILN_OK;
}

static KilnStatus run_abs(const KilnOperation *op, const KilnExprValue *args, size_t n,
                          KilnExprValue *ret)
{
    (void)n;
    if (!kiln_expr_value_is_whole(&args[0])) {
        *ret = of_float(fabs(args[0].f));
        return KILN_OK;
    }
    if (args[0].i == INT64_MIN)
        return FAIL(op, KILN_E_RANGE, "the result is too large");
    *ret = of_int(args[0].i < 0 ? -args[0].i : args[0].i);
    return KILN_OK;
}

static KilnStatus to_int(const KilnOperation *op, double value, KilnExprValue *ret)
{
    if (!(value >= -9223372036854775808.0 && value < 9223372036854775808.0))
        return FAIL(op, KILN_E_RANGE, "%s: the number does not fit an integer", op->name);
    *ret = of_int((int64_t)value);
    return KILN_OK;
}

static KilnStatus run_floor(const KilnOperation *op, const KilnExprValue *args, size_t n,
                            KilnExprValue *ret)
{
    (void)n;
    *ret = of_int(args[0].i);
    if (kiln_expr_value_is_whole(&args[0]))
        return KILN_OK;
    return to_int(op, strcmp(op->name, "floor") == 0 ? floor(args[0].f) : ceil(args[0].f), ret);
}

/* To a multiple of 10 ** -places, halves to the even one. */
static KilnStatus round_int(const KilnOperation *op, int64_t value, int64_t places,
                            KilnExprValue *ret)
{
    int64_t unit = 1, down, rest;

    *ret = of_int(value);
    if (places >= 0)
        return KILN_OK;
    if (places < -18) {
        *ret = of_int(0);
        return KILN_OK;
    }
    for (; places < 0; places++)
        unit *= 10;
    kiln_divide_ints(value, unit, &down, &rest);
    if (rest > unit / 2 || (rest == unit / 2 && down % 2 != 0))
        down++;
    return __builtin_mul_overflow(down, unit, &ret->i)
               ? FAIL(op, KILN_E_RANGE, "the result is too large")
               : KILN_OK;
}

static double round_float(double value, int64_t places)
{
    char text[512];
    double result = 0;

    if (!isfinite(value) || places > 300)
        return value;
    if (places < -300)
        return copysign(0, value);
    if (places < 0) {
        double unit = pow(10, (double)-places);

        return nearbyint(value / unit) * unit;
    }
    /* printf rounds the exact binary value, as Python does. */
    if (snprintf(text, sizeof(text), "%.*f", (int)places, value) >= (int)sizeof(text) ||
        kiln_parse_f64(text, &result, NULL) < 0)
        return value;
    return result;
}

static KilnStatus run_round(const KilnOperation *op, const KilnExprValue *args, size_t n,
                            KilnExprValue *ret)
{
    if (n == 2 && !kiln_expr_value_is_whole(&args[1]))
        return FAIL(op, KILN_E_TYPE, "round: the number of places is no integer");
    if (kiln_expr_value_is_whole(&args[0]))
        return round_int(op, args[0].i, n == 2 ? args[1].i : 0, ret);
    if (n == 1)
        return to_int(op, nearbyint(args[0].f), ret);
    *ret = of_float(round_float(args[0].f, args[1].i));
    return KILN_OK;
}

typedef struct Function {
    const char *name;
    size_t least, most;
    bool numbers; /* only */
    const char *usage;
    KilnStatus (*run)(const KilnOperation *op, const KilnExprValue *args, size_t n,
                      KilnExprValue *ret);
} Function;

static const Function functions[] = {
    { "min", 1, KILN_MOST_OPERANDS, false, "one value or more", run_extreme },
    { "max", 1, KILN_MOST_OPERANDS, false, "one value or more", run_extreme },
    { "round", 1, 2, true, "a number, and the places behind the point", run_round },
    { "abs", 1, 1, true, "a number", run_abs },
    { "floor", 1, 1, true, "a number", run_floor },
    { "ceil", 1, 1, true, "a number", run_floor },
};

static KilnStatus unknown_function(const KilnOperation *op)
{
    const char *names[KILN_COUNT(functions)], *near;

    for (size_t i = 0; i < KILN_COUNT(functions); i++)
        names[i] = functions[i].name;
    near = kiln_nearest(op->name, names, KILN_COUNT(names));
    return FAIL(op, KILN_E_KEY,
                "there is no function '%.64s'%s%s%s; there are min, max, round, abs, floor, ceil",
                op->name, near != NULL ? "; did you mean " : "", near != NULL ? near : "",
                near != NULL ? "?" : "");
}

KilnStatus kiln_expr_value_call(const KilnOperation *op, const KilnExprValue *args, size_t n,
                                KilnExprValue *ret)
{
    const Function *function = NULL;

    for (size_t i = 0; i < KILN_COUNT(functions); i++)
        if (strcmp(functions[i].name, op->name) == 0)
            function = &functions[i];
    if (function == NULL)
        return unknown_function(op);
    if (n < function->least || n > function->most)
        return FAIL(op, KILN_E_USAGE, "%s takes %s, got %zu", op->name, function->usage, n);
    for (size_t i = 0; i < n && function->numbers; i++)
        if (!kiln_expr_value_is_number(&args[i]))
            return FAIL(op, KILN_E_TYPE, "%s needs numbers, got %s", op->name,
                        kiln_expr_value_type_name(&args[i]));
    return function->run(op, args, n, ret);
}
