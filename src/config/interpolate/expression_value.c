/* Arithmetic and comparisons, typed as Python types them. */
#include "config/interpolate/expression_value.h"

#include <math.h>
#include <string.h>

#include "base/parse.h"
#include "config/interpolate/expression.h"

#define FAIL(op, status, ...)                                                                      \
    kiln_expression_fail((op)->text, (op)->at, status, (op)->err, __VA_ARGS__)

/* ---- Values ------------------------------------------------------------------------ */

const char *kiln_expr_value_type_name(const KilnExprValue *value)
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

bool kiln_expr_value_is_whole(const KilnExprValue *value)
{
    return value->type == KILN_SCALAR_INT || value->type == KILN_SCALAR_BOOL;
}

bool kiln_expr_value_is_number(const KilnExprValue *value)
{
    return kiln_expr_value_is_whole(value) || value->type == KILN_SCALAR_FLOAT;
}

static double as_float(const KilnExprValue *value)
{
    return value->type == KILN_SCALAR_FLOAT ? value->f : (double)value->i;
}

bool kiln_expr_value_is_true(const KilnExprValue *value)
{
    switch (value->type) {
    case KILN_SCALAR_NULL:
        return false;
    case KILN_SCALAR_BOOL:
    case KILN_SCALAR_INT:
        return value->i != 0;
    case KILN_SCALAR_FLOAT:
        return value->f != 0;
    default:
        return *value->text != '\0';
    }
}

KilnStatus kiln_expr_value_parse(const KilnOperation *op, const char *text, KilnExprValue *ret)
{
    bool whole = strpbrk(text, ".eE") == NULL;
    KilnExprValue value = { .type = whole ? KILN_SCALAR_INT : KILN_SCALAR_FLOAT };
    KilnStatus status = whole ? kiln_parse_i64(text, &value.i, NULL)
                              : kiln_parse_f64(text, &value.f, NULL);

    if (status == KILN_E_RANGE)
        return FAIL(op, status, "the number is too large");
    if (status < 0)
        return FAIL(op, status, "'%.64s' is not a number", text);
    *ret = value;
    return KILN_OK;
}

KilnStatus kiln_expr_value_from_node(const KilnOperation *op, const KilnConfigNode *node,
                                     KilnExprValue *ret)
{
    *ret = (KilnExprValue) { .type = node->scalar, .text = node->text };
    if (node->kind != KILN_NODE_SCALAR)
        return FAIL(op, KILN_E_TYPE, "this is %s; an expression computes with single values",
                    kiln_node_kind_name(node));
    switch (node->scalar) {
    case KILN_SCALAR_BOOL:
        ret->i = strcmp(node->text, "true") == 0;
        return KILN_OK;
    case KILN_SCALAR_INT:
        if (kiln_parse_i64(node->text, &ret->i, NULL) < 0)
            return FAIL(op, KILN_E_RANGE, "%.64s does not fit 64 bits", node->text);
        return KILN_OK;
    case KILN_SCALAR_FLOAT:
        if (kiln_parse_f64(node->text, &ret->f, NULL) < 0)
            return FAIL(op, KILN_E_RANGE, "%.64s does not fit a double", node->text);
        return KILN_OK;
    default:
        return KILN_OK;
    }
}

KilnConfigNode *kiln_expr_value_to_node(const KilnMaker *maker, const KilnExprValue *operand)
{
    char buf[KILN_F64_TEXT];

    switch (operand->type) {
    case KILN_SCALAR_INT:
        return kiln_node_scalar(maker, KILN_SCALAR_INT,
                                kiln_arena_printf(maker->arena, "%lld", (long long)operand->i));
    case KILN_SCALAR_FLOAT:
        kiln_format_f64(operand->f, buf, sizeof(buf));
        return kiln_node_scalar(maker, KILN_SCALAR_FLOAT, kiln_arena_strdup(maker->arena, buf));
    case KILN_SCALAR_BOOL:
        return kiln_node_scalar(maker, KILN_SCALAR_BOOL, operand->i != 0 ? "true" : "false");
    case KILN_SCALAR_NULL:
        return kiln_node_scalar(maker, KILN_SCALAR_NULL, "null");
    default:
        return kiln_node_scalar(maker, KILN_SCALAR_STR,
                                kiln_arena_strdup(maker->arena, operand->text));
    }
}

/* ---- Arithmetic -------------------------------------------------------------------- */

static KilnStatus overflow(const KilnOperation *op)
{
    return FAIL(op, KILN_E_RANGE, "the result is too large");
}

static KilnStatus by_zero(const KilnOperation *op)
{
    return FAIL(op, KILN_E_RANGE, "division by zero");
}

static bool power_of_ints(int64_t base, int64_t exponent, int64_t *ret)
{
    int64_t result = 1;

    /* Squaring overflows before the exponent matters, unless the base is -1, 0 or 1. */
    if (base >= -1 && base <= 1)
        exponent = exponent > 0 ? 1 + (exponent - 1) % 2 : 0;
    for (; exponent > 0; exponent--)
        if (__builtin_mul_overflow(result, base, &result))
            return false;
    *ret = result;
    return true;
}

/* Quotient rounded down, and the remainder that has the divisor's sign. */
void kiln_divide_ints(int64_t a, int64_t b, int64_t *quotient, int64_t *remainder)
{
    *quotient = a / b;
    *remainder = a % b;
    if (*remainder != 0 && (*remainder < 0) != (b < 0)) {
        *quotient -= 1;
        *remainder += b;
    }
}

static KilnStatus compute_ints(const KilnOperation *op, int64_t a, int64_t b, KilnExprValue *ret)
{
    const char *sign = op->name;
    int64_t result = 0, remainder = 0;
    bool fits = true;

    if (strcmp(sign, "+") == 0) {
        fits = !__builtin_add_overflow(a, b, &result);
    } else if (strcmp(sign, "-") == 0) {
        fits = !__builtin_sub_overflow(a, b, &result);
    } else if (strcmp(sign, "*") == 0) {
        fits = !__builtin_mul_overflow(a, b, &result);
    } else if (strcmp(sign, "**") == 0) {
        fits = power_of_ints(a, b, &result);
    } else if (b == 0) {
        return by_zero(op);
    } else if (a == INT64_MIN && b == -1) {
        fits = strcmp(sign, "%") == 0; /* no remainder; the quotient has 65 bits */
    } else {
        kiln_divide_ints(a, b, &result, &remainder);
        result = strcmp(sign, "//") == 0 ? result : remainder;
    }
    if (!fits)
        return overflow(op);
    *ret = of_int(result);
    return KILN_OK;
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

static KilnStatus compute_floats(const KilnOperation *op, double a, double b, KilnExprValue *ret)
{
    const char *sign = op->name;
    bool power = strcmp(sign, "**") == 0, divides = strchr("/%", *sign) != NULL;
    double result;

    if ((divides && b == 0) || (power && a == 0 && b < 0))
        return by_zero(op);
    if (power)
        result = pow(a, b);
    else if (strcmp(sign, "/") == 0)
        result = a / b;
    else if (divides)
        result = divide_floats(a, b, *sign == '%');
    else
        result = *sign == '+' ? a + b : *sign == '-' ? a - b : a * b;
    if (isfinite(a) && isfinite(b) && isnan(result))
        return FAIL(op, KILN_E_RANGE,
                    "a negative number to the power of a fraction is no real number");
    if (isfinite(a) && isfinite(b) && isinf(result))
        return overflow(op);
    *ret = of_float(result);
    return KILN_OK;
}

KilnStatus kiln_expr_value_compute(const KilnOperation *op, const KilnExprValue *a,
                                   const KilnExprValue *b, KilnExprValue *ret)
{
    const char *sign = op->name;
    bool floats = strcmp(sign, "/") == 0 ||
                  (strcmp(sign, "**") == 0 && kiln_expr_value_is_whole(b) && b->i < 0);

    if (!kiln_expr_value_is_number(a) || !kiln_expr_value_is_number(b))
        return FAIL(op, KILN_E_TYPE, "%s needs numbers, got %s and %s%s", sign,
                    kiln_expr_value_type_name(a), kiln_expr_value_type_name(b),
                    a->type == KILN_SCALAR_STR || b->type == KILN_SCALAR_STR
                        ? "; ${oc.decode:...} makes numbers of text"
                        : "");
    if (kiln_expr_value_is_whole(a) && kiln_expr_value_is_whole(b) && !floats)
        return compute_ints(op, a->i, b->i, ret);
    return compute_floats(op, as_float(a), as_float(b), ret);
}

/* ---- Comparisons --------------------------------------------------------------------- */

/* Exact also between large integers and floats: a long double holds both. */
static int compare_numbers(const KilnExprValue *a, const KilnExprValue *b)
{
    long double x = kiln_expr_value_is_whole(a) ? (long double)a->i : (long double)a->f;
    long double y = kiln_expr_value_is_whole(b) ? (long double)b->i : (long double)b->f;

    return x < y ? -1 : x > y;
}

bool kiln_expr_value_is_nan(const KilnExprValue *value)
{
    return value->type == KILN_SCALAR_FLOAT && isnan(value->f);
}

static bool is_equal(const KilnExprValue *a, const KilnExprValue *b)
{
    if (kiln_expr_value_is_number(a) && kiln_expr_value_is_number(b))
        return !kiln_expr_value_is_nan(a) && !kiln_expr_value_is_nan(b) &&
               compare_numbers(a, b) == 0;
    if (a->type != b->type)
        return false;
    return a->type == KILN_SCALAR_NULL || strcmp(a->text, b->text) == 0;
}

KilnStatus kiln_expr_value_order(const KilnOperation *op, const KilnExprValue *a,
                                 const KilnExprValue *b, int *ret)
{
    if (kiln_expr_value_is_number(a) && kiln_expr_value_is_number(b))
        *ret = compare_numbers(a, b);
    else if (a->type == KILN_SCALAR_STR && b->type == KILN_SCALAR_STR)
        *ret = strcmp(a->text, b->text);
    else
        return FAIL(op, KILN_E_TYPE, "%s and %s have no order", kiln_expr_value_type_name(a),
                    kiln_expr_value_type_name(b));
    return KILN_OK;
}

KilnStatus kiln_expr_value_compare(const KilnOperation *op, const KilnExprValue *a,
                                   const KilnExprValue *b, KilnExprValue *ret)
{
    const char *sign = op->name;
    bool equal = is_equal(a, b), none = kiln_expr_value_is_nan(a) || kiln_expr_value_is_nan(b);
    int cmp = 0;

    if (sign[0] == '=' || sign[0] == '!') {
        *ret = of_bool(equal == (sign[0] == '='));
        return KILN_OK;
    }
    KilnStatus status = kiln_expr_value_order(op, a, b, &cmp);
    if (status >= 0)
        *ret = of_bool(!none &&
                       ((sign[0] == '<' ? cmp < 0 : cmp > 0) || (sign[1] == '=' && cmp == 0)));
    return status;
}
