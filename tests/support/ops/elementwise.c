/* Samples of operations that work element by element. */
#include "tests/support/ops/samples.h"

/* Every way in which operands can lie: alike, a row, a column, a scalar, both repeated,
 * axes in the middle, long rows, rows that are periods of a tile, and few channels. */
#define CASES_TWO(name, leaves)                                                                    \
    static const Case cases_##name[] = {                                                           \
        { #name, build_##name, leaves, .shape = { SHAPE(7, 11), SHAPE(7, 11) } },                  \
        { #name ", scalar", build_##name, leaves, .shape = { SHAPE(5, 3), SCALAR } },              \
        { #name ", to a scalar", build_##name, leaves, .shape = { SCALAR, SHAPE(2, 3) } },         \
        { #name ", row", build_##name, leaves, .shape = { SHAPE(4, 10), SHAPE(10) } },             \
        { #name ", column", build_##name, leaves, .shape = { SHAPE(4, 10), SHAPE(4, 1) } },        \
        { #name ", both", build_##name, leaves, .shape = { SHAPE(6, 1, 5), SHAPE(1, 4, 1) } },     \
        { #name ", middle", build_##name, leaves, .shape = { SHAPE(3, 1, 4), SHAPE(3, 5, 4) } },   \
        { #name ", image", build_##name, leaves, .shape = { SHAPE(2, 3, 3, 16), SHAPE(16) } },     \
        { #name ", large", build_##name, leaves,                                                   \
          .shape = { SHAPE(101, 1009), SHAPE(101, 1009) } },                                       \
        { #name ", large, row", build_##name, leaves, .shape = { SHAPE(5003, 10), SHAPE(10) } },   \
        { #name ", long row", build_##name, leaves, .shape = { SHAPE(1, 4099), SHAPE(9, 4099) } }, \
        { #name ", large, column", build_##name, leaves,                                           \
          .shape = { SHAPE(5003, 10), SHAPE(5003, 1) } },                                          \
        { #name ", large, both", build_##name, leaves,                                             \
          .shape = { SHAPE(7, 1, 63, 1), SHAPE(1, 41, 1, 5) } },                                   \
    };                                                                                             \
    SAMPLES(name)

BUILD_TWO(add, kiln_add(a, b))
CASES_TWO(add, "gg")

BUILD_TWO(sub, kiln_sub(a, b))
CASES_TWO(sub, "gg")

BUILD_TWO(mul, kiln_mul(a, b))
CASES_TWO(mul, "gg")

BUILD_TWO(minimum, kiln_minimum(a, b))
CASES_TWO(minimum, "gg")

BUILD_TWO(maximum, kiln_maximum(a, b))
CASES_TWO(maximum, "gg")

BUILD_TWO(div, kiln_div(a, b))
CASES_TWO(div, "gP")

BUILD_TWO(atan2, kiln_atan2(a, b))
CASES_TWO(atan2, "gP")

/* Exponents that are not large: they would multiply the rounding of bf16. */
BUILD_TWO(power, kiln_power(a, kiln_scale(b, 0.5)))
CASES_TWO(power, "Pg")

BUILD_TWO(eq, kiln_eq(a, b))
static const Case cases_eq[] = {
    { "eq", build_eq, "ff", .shape = { SHAPE(7, 11), SHAPE(11) } },
};
SAMPLES(eq)

BUILD_TWO(ne, kiln_ne(a, b))
static const Case cases_ne[] = {
    { "ne", build_ne, "ff", .shape = { SHAPE(7, 11), SHAPE(11) } },
};
SAMPLES(ne)

BUILD_TWO(lt, kiln_lt(a, b))
static const Case cases_lt[] = {
    { "lt", build_lt, "ff", .shape = { SHAPE(7, 11), SHAPE(11) } },
};
SAMPLES(lt)

BUILD_TWO(le, kiln_le(a, b))
static const Case cases_le[] = {
    { "le", build_le, "ff", .shape = { SHAPE(7, 11), SHAPE(11) } },
};
SAMPLES(le)

BUILD(build_where)
{
    UNUSED_ARG;
    return kiln_where(leaf[0], leaf[1], leaf[2]);
}

BUILD(build_masked_fill)
{
    UNUSED_ARG;
    return kiln_masked_fill(leaf[1], leaf[0], -2.5);
}

/* Larger than: the condition is a float. */
BUILD(build_where_larger)
{
    UNUSED_ARG;
    return kiln_where(kiln_gt(leaf[0], leaf[1]), leaf[0], kiln_scale(leaf[1], 2.0));
}

static const Case cases_where[] = {
    { "where", build_where, "mgg", .shape = { SHAPE(3, 5), SHAPE(3, 5), SHAPE(3, 5) } },
    { "where, broadcast", build_where, "mgg", .shape = { SHAPE(4, 1, 5), SHAPE(3, 5), SCALAR } },
    { "where, large", build_where, "mgg",
      .shape = { SHAPE(211, 307), SHAPE(211, 307), SHAPE(307) } },
    { "where, larger", build_where_larger, "gg", .shape = { SHAPE(3, 5), SHAPE(5) } },
    { "masked_fill", build_masked_fill, "mg", .shape = { SHAPE(7, 1, 6), SHAPE(7, 5, 6) } },
};
SAMPLES(where)

BUILD_ONE(scale, kiln_scale(x, -1.7))
CASES_ONE(scale, "g")

BUILD_ONE(shift, kiln_shift(x, 0.7))
CASES_ONE(shift, "g")

BUILD_ONE(clamp, kiln_clamp(x, -0.3, 0.6))
CASES_ONE(clamp, "g")

BUILD_ONE(exp, kiln_exp(x))
CASES_ONE(exp, "g")

BUILD_ONE(log, kiln_log(x))
CASES_ONE(log, "P")

BUILD_ONE(log1p, kiln_log1p(x))
CASES_ONE(log1p, "P")

BUILD_ONE(sqrt, kiln_sqrt(x))
CASES_ONE(sqrt, "P")

BUILD_ONE(rsqrt, kiln_rsqrt(x))
CASES_ONE(rsqrt, "P")

BUILD_ONE(reciprocal, kiln_reciprocal(x))
CASES_ONE(reciprocal, "P")

BUILD_ONE(square, kiln_square(x))
CASES_ONE(square, "g")

BUILD_ONE(abs, kiln_abs(x))
CASES_ONE(abs, "g")

BUILD_ONE(sign, kiln_sign(x))
CASES_ONE(sign, "f")

BUILD_ONE(floor, kiln_floor(kiln_scale(x, 3.0)))
CASES_ONE(floor, "f")

BUILD_ONE(round, kiln_round(kiln_scale(x, 3.0)))
CASES_ONE(round, "f")

BUILD_ONE(erf, kiln_erf(x))
CASES_ONE(erf, "g")

BUILD_ONE(sin, kiln_sin(x))
CASES_ONE(sin, "g")

BUILD_ONE(cos, kiln_cos(x))
CASES_ONE(cos, "g")

BUILD_ONE(pow, kiln_pow(x, 2.5))
BUILD_ONE(pow_3, kiln_pow(x, 3.0))
BUILD_ONE(pow_negative, kiln_pow(x, -1.5))
static const Case cases_pow[] = {
    { "pow", build_pow, "P", .shape = { SHAPE(3, 7) } },
    { "pow, 3", build_pow_3, "g", .shape = { SHAPE(3, 7) } },
    { "pow, negative", build_pow_negative, "P", .shape = { SHAPE(101, 211) } },
};
SAMPLES(pow)

SAMPLES_OF(clamp_grad, clamp)
SAMPLES_OF(larger_grad, maximum)

BUILD_ONE(detach, kiln_detach(x))
CASES_ONE(detach, "f")
BUILD_ONE(to_float, kiln_to_float(x))
static const Case cases_to_float[] = {
    { "to_float, i32", build_to_float, "l", .shape = { SHAPE(7, 11) } },
    { "to_float, u8", build_to_float, "m", .shape = { SHAPE(101, 211) } },
};
SAMPLES(to_float)

BUILD(build_broadcast)
{
    return kiln_broadcast_to(leaf[0], KILN_SHAPE(arg[0], arg[1], arg[2]));
}

static const Case cases_broadcast[] = {
    { "broadcast, scalar", build_broadcast, "g", .shape = { SCALAR }, .arg = { 2, 3, 5 } },
    { "broadcast, row", build_broadcast, "g", .shape = { SHAPE(5) }, .arg = { 2, 3, 5 } },
    { "broadcast, middle", build_broadcast, "g", .shape = { SHAPE(2, 1, 5) }, .arg = { 2, 3, 5 } },
    { "broadcast, large", build_broadcast, "g", .shape = { SHAPE(31, 1) }, .arg = { 11, 31, 257 } },
};
SAMPLES(broadcast)

/* (a + b) * relu(a), as fusion would write it. */
BUILD(build_map)
{
    static const KilnMap map = {
        .n_inputs = 2,
        .n_steps = 3,
        .n_results = 1,
        .results = { 4 },
        .steps = { { .code = KILN_MAP_ADD, .a = 0, .b = 1 },
                   { .code = KILN_MAP_RELU, .a = 0 },
                   { .code = KILN_MAP_MUL, .a = 2, .b = 3 } },
    };

    UNUSED_ARG;
    return kiln_graph_record(leaf[0]->graph, &kiln_op_map, leaf, 2, &map);
}

static const Case cases_map[] = {
    { "map", build_map, "ff", .shape = { SHAPE(7, 11), SHAPE(11) } },
    { "map, large", build_map, "ff", .shape = { SHAPE(301, 211), SHAPE(211) } },
};
SAMPLES(map)

BUILD(build_fill)
{
    return kiln_graph_full(leaf[0]->graph, KILN_SHAPE(arg[0], arg[1]), -0.3);
}

static const Case cases_fill[] = {
    { "fill", build_fill, "f", .shape = { SCALAR }, .arg = { 3, 7 } },
    { "fill, large", build_fill, "f", .shape = { SCALAR }, .arg = { 257, 263 } },
};
SAMPLES(fill)

KilnTensor *build_dropout(KilnTensor *const *leaf, const int64_t *arg)
{
    return kiln_dropout(leaf[0], (double)arg[0] / 10.0, leaf[1], 7);
}

/* Leaf 2: the rate. */
BUILD(build_dropout_rate)
{
    UNUSED_ARG;
    return kiln_dropout_rate(leaf[0], leaf[2], leaf[1], 7);
}

static const Case cases_dropout[] = {
    { "dropout", build_dropout, "gl", .shape = { SHAPE(3, 37), SHAPE(2) }, .arg = { 5 } },
    { "dropout, none", build_dropout, "gl", .shape = { SHAPE(64), SHAPE(2) } },
    { "dropout, large", build_dropout, "gl", .shape = { SHAPE(257, 263), SHAPE(2) }, .arg = { 1 } },
    { "dropout, rate that is data", build_dropout_rate, "glf",
      .shape = { SHAPE(3, 37), SHAPE(2), SCALAR } },
};
SAMPLES(dropout)
SAMPLES_OF(dropout_grad, dropout)
