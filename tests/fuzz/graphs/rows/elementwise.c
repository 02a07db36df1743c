/* Operations element by element, and activations. */
#include "tests/fuzz/graphs/row.h"

DRAW(one)
{
    item->in[0] = draw_float(draw, 0, 5);
    return true;
}

/* One time in four outside of the operation's domain, too. */
DRAW(domain)
{
    item->in[0] = draw_float(draw, 0, 5);
    item->arg[0] = draw_chance(draw, 25);
    return true;
}

DRAW(two)
{
    item->in[0] = draw_float(draw, 0, 5);
    item->in[1] = draw_broadcast(draw, draw_shape_of(draw, item->in[0]));
    item->arg[0] = draw_chance(draw, 25);
    if (draw_chance(draw, 30)) {
        const int first = item->in[0];
        item->in[0] = item->in[1];
        item->in[1] = first;
    }
    return true;
}

static KilnTensor *above_zero(KilnTensor *x, const Item *item)
{
    return item->arg[0] != 0 ? x : kiln_shift(kiln_abs(x), 0.1);
}

BUILD_ONE(relu, kiln_relu(x))
BUILD_ONE(leaky_relu, kiln_leaky_relu(x, 0.01))
BUILD_ONE(elu, kiln_elu(x, 0.7))
BUILD_ONE(gelu, kiln_gelu(x, KILN_GELU_ERF))
BUILD_ONE(gelu_tanh, kiln_gelu(x, KILN_GELU_TANH))
BUILD_ONE(silu, kiln_silu(x))
BUILD_ONE(hard_swish, kiln_hard_swish(x))
BUILD_ONE(hard_sigmoid, kiln_hard_sigmoid(x))
BUILD_ONE(softplus, kiln_softplus(x, 1.5, 20.0))
BUILD_ONE(sigmoid, kiln_sigmoid(x))
BUILD_ONE(tanh, kiln_tanh(x))
BUILD_ONE(exp, kiln_exp(x))
BUILD_ONE(log, kiln_log(above_zero(x, item)))
BUILD_ONE(log1p, kiln_log1p(above_zero(x, item)))
BUILD_ONE(sqrt, kiln_sqrt(above_zero(x, item)))
BUILD_ONE(rsqrt, kiln_rsqrt(above_zero(x, item)))
BUILD_ONE(reciprocal, kiln_reciprocal(above_zero(x, item)))
BUILD_ONE(square, kiln_square(x))
BUILD_ONE(abs, kiln_abs(x))
BUILD_ONE(sign, kiln_sign(x))
BUILD_ONE(floor, kiln_floor(x))
BUILD_ONE(round, kiln_round(x))
BUILD_ONE(erf, kiln_erf(x))
BUILD_ONE(sin, kiln_sin(x))
BUILD_ONE(cos, kiln_cos(x))
BUILD_ONE(detach, kiln_detach(x))
BUILD_ONE(scale, kiln_scale(x, item->num[0]))
BUILD_ONE(shift, kiln_shift(x, item->num[0]))
BUILD_ONE(clamp, kiln_clamp(x, item->num[0], item->num[0] + 1.0))
BUILD_ONE(pow, kiln_pow(item->arg[1] != 0 ? x : above_zero(x, item), item->num[0]))
BUILD_TWO(add, kiln_add(a, b))
BUILD_TWO(sub, kiln_sub(a, b))
BUILD_TWO(mul, kiln_mul(a, b))
BUILD_TWO(div, kiln_div(a, above_zero(b, item)))
BUILD_TWO(minimum, kiln_minimum(a, b))
BUILD_TWO(maximum, kiln_maximum(a, b))
BUILD_TWO(eq, kiln_eq(a, b))
BUILD_TWO(ne, kiln_ne(a, b))
BUILD_TWO(lt, kiln_lt(a, b))
BUILD_TWO(le, kiln_le(a, b))
BUILD_TWO(gt, kiln_gt(a, b))
BUILD_TWO(ge, kiln_ge(a, b))
BUILD_TWO(power, kiln_power(above_zero(a, item), kiln_tanh(b)))

/* Between 0 and -0 lies half a turn, and kernels agree on the sign of 0 no more than PyTorch's do:
 * 0 is added, which makes 0 of both. */
BUILD(atan2)
{
    out[0] = kiln_atan2(kiln_shift(in[0], 0.0), kiln_shift(in[1], 0.0));
}

DRAW(number)
{
    item->num[0] = 0.25 * (double)draw_between(draw, -8, 8);
    return row_one(draw, item);
}

DRAW(exponent)
{
    static const double exponents[] = { 0.0, 1.0, 2.0, 3.0, -1.0, 0.5, 2.5, -1.5, -2.0 };

    item->num[0] = exponents[draw_below(draw, KILN_COUNT(exponents))];
    item->arg[1] = item->num[0] >= 0.0 && item->num[0] == (double)(int64_t)item->num[0];
    return row_domain(draw, item);
}

DRAW(where)
{
    item->in[0] = draw_float(draw, 0, 5);
    const KilnShape shape = draw_shape_of(draw, item->in[0]);
    item->in[1] = draw_chance(draw, 50) ? draw_mask(draw, shape) : draw_broadcast(draw, shape);
    item->in[2] = draw_broadcast(draw, shape);
    return true;
}

BUILD(where)
{
    out[0] = kiln_where(in[1], in[0], in[2]);
}

BUILD(masked_fill)
{
    out[0] = kiln_masked_fill(in[0], in[1], -2.5);
}

DRAW(to_float)
{
    const KilnShape shape = draw_shape(draw, 0, 4);

    item->in[0] = draw_chance(draw, 50) ? draw_mask(draw, shape) : draw_index(draw, shape, -5, 90);
    return true;
}
BUILD_ONE(to_float, kiln_to_float(x))

DRAW(equal)
{
    const KilnShape shape = draw_shape(draw, 0, 4);

    item->in[0] = draw_index(draw, shape, 0, 3);
    item->in[1] = draw_index(draw, shape, 0, 3);
    return true;
}
BUILD_TWO(equal, kiln_equal(a, b))

/* To another type and back. */
DRAW(cast)
{
    static const KilnDType types[] = { KILN_BF16, KILN_BF16, KILN_I32, KILN_U8 };

    item->arg[0] = types[draw_below(draw, KILN_COUNT(types))];
    return row_one(draw, item);
}

/* Floats are cast to integers within the integers' range, as any other is undefined. */
BUILD(cast)
{
    KilnGraph *graph = kiln_tensor_graph(in[0]);
    const KilnDType type = (KilnDType)item->arg[0];
    KilnTensor *x = in[0];

    if (type != KILN_BF16) {
        x = kiln_where(kiln_eq(x, x), kiln_clamp(x, 0.0, 100.0),
                       kiln_scale(kiln_detach(kiln_eq(x, x)), 1.0));
        out[0] = kiln_to_float(kiln_cast(kiln_detach(x), type));
        return;
    }
    out[0] = kiln_cast(kiln_cast(x, type), graph->float_type);
}

static const Row table[] = {
    { "relu", row_one, build_relu, 0, 0, false, false },
    { "leaky_relu", row_one, build_leaky_relu, 0, 0, false, false },
    { "elu", row_one, build_elu, 0, 0, false, false },
    { "gelu", row_one, build_gelu, 0, 0, true, false },
    { "gelu_tanh", row_one, build_gelu_tanh, 0, 0, true, false },
    { "silu", row_one, build_silu, 0, 0, true, false },
    { "hard_swish", row_one, build_hard_swish, 0, 0, false, false },
    { "hard_sigmoid", row_one, build_hard_sigmoid, 0, 0, false, false },
    { "softplus", row_one, build_softplus, 0, 0, true, false },
    { "sigmoid", row_one, build_sigmoid, 0, 0, true, false },
    { "tanh", row_one, build_tanh, 0, 0, true, false },
    { "exp", row_one, build_exp, 0, 0, false, false },
    { "log", row_domain, build_log, 0, 0, false, false },
    { "log1p", row_domain, build_log1p, 0, 0, false, false },
    { "sqrt", row_domain, build_sqrt, 0, 0, false, false },
    { "rsqrt", row_domain, build_rsqrt, 0, 0, false, false },
    { "reciprocal", row_domain, build_reciprocal, 0, 0, false, false },
    { "square", row_one, build_square, 0, 0, false, false },
    { "abs", row_one, build_abs, 0, 0, false, false },
    { "sign", row_one, build_sign, 0, 0, false, false },
    { "floor", row_one, build_floor, 0, 0, false, false },
    { "round", row_one, build_round, 0, 0, false, false },
    { "erf", row_one, build_erf, 0, 0, false, false },
    { "sin", row_one, build_sin, 0, 0, false, false },
    { "cos", row_one, build_cos, 0, 0, false, false },
    { "detach", row_one, build_detach, 0, 0, false, false },
    { "scale", row_number, build_scale, 0, 0, false, false },
    { "shift", row_number, build_shift, 0, 0, false, false },
    { "clamp", row_number, build_clamp, 0, 0, false, false },
    { "pow", row_exponent, build_pow, 0, 0, false, false },
    { "add", row_two, build_add, 0, 0, false, false },
    { "sub", row_two, build_sub, 0, 0, false, false },
    { "mul", row_two, build_mul, 0, 0, false, false },
    { "div", row_two, build_div, 0, 0, false, false },
    { "minimum", row_two, build_minimum, 0, 0, false, false },
    { "maximum", row_two, build_maximum, 0, 0, false, false },
    { "eq", row_two, build_eq, 0, 0, false, false },
    { "ne", row_two, build_ne, 0, 0, false, false },
    { "lt", row_two, build_lt, 0, 0, false, false },
    { "le", row_two, build_le, 0, 0, false, false },
    { "gt", row_two, build_gt, 0, 0, false, false },
    { "ge", row_two, build_ge, 0, 0, false, false },
    { "atan2", row_two, build_atan2, 0, 0, false, false },
    { "power", row_two, build_power, 0, 0, false, false },
    { "where", row_where, build_where, 0, 0, false, false },
    { "masked_fill", row_where, build_masked_fill, 0, 0, false, false },
    { "to_float", row_to_float, build_to_float, 0, 0, false, false },
    { "equal", row_equal, build_equal, 0, 0, false, false },
    { "cast", row_cast, build_cast, 0, 0, false, false },
};
ROWS(elementwise)
