/* Reference interpreter of maps (graph/map.h): every element passes through all steps, in double.
 */
#include <math.h>

#include "backend/ref/ref.h"

static double normal_below(double x)
{
    return 0.5 * erfc(-x * 0.70710678118654752440);
}

static double normal_density(double x)
{
    return 0.39894228040143267794 * exp(-0.5 * x * x);
}

static double logistic(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

/* The tanh in the approximation of the normal distribution, and its derivative. */
static double gelu_tanh(double x, double *slope)
{
    const double scale = 0.79788456080286535588, cube = 0.044715;

    *slope = scale * (1.0 + 3.0 * cube * x * x);
    return tanh(scale * (x + cube * x * x * x));
}

static double gelu_tanh_grad(double x)
{
    double slope, t = gelu_tanh(x, &slope);

    return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * slope;
}

static double hard_sigmoid(double x)
{
    return x <= -3.0 ? 0.0 : x >= 3.0 ? 1.0 : x / 6.0 + 0.5;
}

static double hard_swish_grad(double x)
{
    return x <= -3.0 ? 0.0 : x < 3.0 ? x / 3.0 + 0.5 : 1.0;
}

static double activation(KilnMapCode code, double a, double p, double q)
{
    double slope;

    switch (code) {
    case KILN_MAP_SIGMOID:
        return logistic(a);
    case KILN_MAP_TANH:
        return tanh(a);
    case KILN_MAP_RELU:
        return a < 0.0 ? 0.0 : a;
    case KILN_MAP_LEAKY_RELU:
        return a > 0.0 ? a : a * p;
    case KILN_MAP_ELU:
        return a > 0.0 ? a : p * expm1(a);
    case KILN_MAP_GELU:
        return a * normal_below(a);
    case KILN_MAP_GELU_TANH:
        return 0.5 * a * (1.0 + gelu_tanh(a, &slope));
    case KILN_MAP_SILU:
        return a * logistic(a);
    case KILN_MAP_HARD_SWISH:
        return a * hard_sigmoid(a);
    case KILN_MAP_HARD_SIGMOID:
        return hard_sigmoid(a);
    case KILN_MAP_SOFTPLUS:
        return a * p > q ? a : log1p(exp(a * p)) / p;
    default:
        return NAN;
    }
}

static double gradient(KilnMapCode code, double a, double b, double c, double p, double q)
{
    switch (code) {
    case KILN_MAP_RELU_GRAD:
        return b <= 0.0 ? 0.0 : a;
    case KILN_MAP_LEAKY_RELU_GRAD:
        return b > 0.0 ? a : a * p;
    case KILN_MAP_ELU_GRAD:
        return b > 0.0 ? a : a * p * exp(b);
    case KILN_MAP_GELU_GRAD:
        return a * (normal_below(b) + b * normal_density(b));
    case KILN_MAP_GELU_TANH_GRAD:
        return a * gelu_tanh_grad(b);
    case KILN_MAP_SILU_GRAD:
        return a * logistic(b) * (1.0 + b * (1.0 - logistic(b)));
    case KILN_MAP_HARD_SWISH_GRAD:
        return a * hard_swish_grad(b);
    case KILN_MAP_HARD_SIGMOID_GRAD:
        return b > -3.0 && b < 3.0 ? a / 6.0 : 0.0;
    case KILN_MAP_SOFTPLUS_GRAD:
        return b * p > q ? a : a * logistic(b * p);
    case KILN_MAP_SIGMOID_GRAD:
        return a * b * (1.0 - b);
    case KILN_MAP_TANH_GRAD:
        return a * (1.0 - b * b);
    case KILN_MAP_CLAMP_GRAD:
        return b > p && b < q ? a : 0.0;
    case KILN_MAP_LARGER_GRAD:
        return b < c ? 0.0 : b == c ? 0.5 * a : a;
    default:
        return NAN;
    }
}

static double function(KilnMapCode code, double a, double b, double p, double q)
{
    switch (code) {
    case KILN_MAP_EXP:
        return exp(a);
    case KILN_MAP_LOG:
        return log(a);
    case KILN_MAP_LOG1P:
        return log1p(a);
    case KILN_MAP_SQRT:
        return sqrt(a);
    case KILN_MAP_RSQRT:
        return 1.0 / sqrt(a);
    case KILN_MAP_RECIPROCAL:
        return 1.0 / a;
    case KILN_MAP_SQUARE:
        return a * a;
    case KILN_MAP_POW:
        return pow(a, p);
    case KILN_MAP_POWER:
        return pow(a, b);
    case KILN_MAP_ABS:
        return fabs(a);
    case KILN_MAP_SIGN:
        return (a > 0.0) - (a < 0.0);
    case KILN_MAP_FLOOR:
        return floor(a);
    case KILN_MAP_ROUND:
        return nearbyint(a);
    case KILN_MAP_ERF:
        return erf(a);
    case KILN_MAP_SIN:
        return sin(a);
    case KILN_MAP_COS:
        return cos(a);
    case KILN_MAP_ATAN2:
        return atan2(a, b);
    default:
        return activation(code, a, p, q);
    }
}

double kiln_ref_step(const KilnMapStep *step, double a, double b, double c)
{
    const double p = step->p, q = step->q;

    switch ((KilnMapCode)step->code) {
    case KILN_MAP_NUMBER:
        return p;
    case KILN_MAP_COPY:
        return a;
    case KILN_MAP_ADD:
        return a + b;
    case KILN_MAP_SUB:
        return a - b;
    case KILN_MAP_MUL:
        return a * b;
    case KILN_MAP_DIV:
        return a / b;
    case KILN_MAP_SCALE:
        return a * p;
    case KILN_MAP_SHIFT:
        return a + p;
    case KILN_MAP_MINIMUM:
        return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
    case KILN_MAP_MAXIMUM:
        return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
    case KILN_MAP_CLAMP:
        return (a < p ? p : a) > q ? q : (a < p ? p : a);
    case KILN_MAP_EQ:
        return a == b;
    case KILN_MAP_NE:
        return a != b;
    case KILN_MAP_LT:
        return a < b;
    case KILN_MAP_LE:
        return a <= b;
    case KILN_MAP_WHERE:
        return a != 0.0 ? b : c;
    default:
        return step->code < KILN_MAP_RELU_GRAD ? function((KilnMapCode)step->code, a, b, p, q)
                                               : gradient((KilnMapCode)step->code, a, b, c, p, q);
    }
}

/* The element of a broadcast input for element i of the outputs' shape. */
static double broadcast_get(const KilnArg *x, const KilnShape *shape, int64_t i)
{
    int64_t at = 0, size = 1;

    for (int axis = shape->rank - 1, own = x->shape.rank - 1; own >= 0; axis--, own--) {
        if (x->shape.dim[own] > 1)
            at += i % shape->dim[axis] * size;
        size *= x->shape.dim[own];
        i /= shape->dim[axis];
    }
    return kiln_ref_get(x, at);
}

static void map_run(KilnCall *call)
{
    const KilnNode node = { .op = call->op,
                            .n_inputs = call->n_inputs,
                            .attrs = (void *)call->attrs };
    const KilnShape *shape = &call->outputs[0].shape;
    KilnMap map;

    kiln_map_of_node(&node, &map);
    for (int64_t i = 0; i < kiln_ref_count(&call->outputs[0]); i++) {
        double reg[KILN_MAX_INPUTS + KILN_MAP_STEPS];

        for (int k = 0; k < map.n_inputs; k++)
            reg[k] = broadcast_get(&call->inputs[k], shape, i);
        for (int k = 0; k < map.n_steps; k++) {
            const KilnMapStep *step = &map.steps[k];

            reg[map.n_inputs + k] = kiln_ref_step(step, reg[step->a], reg[step->b], reg[step->c]);
        }
        for (int k = 0; k < map.n_results; k++)
            kiln_ref_set(&call->outputs[k], i, reg[map.results[k]]);
    }
}

#define MAPPED(name) { .op = &kiln_op_##name, .run = map_run, .in_place = ~0u },

static const KilnKernel kernels[] = { KILN_OPS_MAPPED(MAPPED) KILN_OPS_ACTIVATION(MAPPED) };

const KilnRefTable kiln_ref_map = { kernels, KILN_COUNT(kernels) };
