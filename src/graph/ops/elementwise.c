/* Elementwise operations: arithmetic, comparisons, functions. Activations are in activation.c;
 * shared code and the map operation are in mapped.c. */
#include <string.h>

#include "graph/op_check.h"
#include "graph/graph.h"
#include "graph/ops/mapped.h"

/* The gradient of input i, given the result's gradient `dy`. */
static KilnTensor *flow(const KilnNode *node, int i, KilnTensor *dy)
{
    return kiln_sum_to(dy, &node->inputs[i]->shape);
}

/* ---- Arithmetic -------------------------------------------------------------------- */

static void gradient_add(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    for (int i = 0; i < 2; i++)
        if (node->inputs[i]->wants_grad)
            dx[i] = flow(node, i, dy[0]);
}

static void gradient_sub(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    if (node->inputs[0]->wants_grad)
        dx[0] = flow(node, 0, dy[0]);
    if (node->inputs[1]->wants_grad)
        dx[1] = kiln_neg(flow(node, 1, dy[0]));
}

static void gradient_mul(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    for (int i = 0; i < 2; i++)
        if (node->inputs[i]->wants_grad)
            dx[i] = flow(node, i, kiln_mul(dy[0], node->inputs[1 - i]));
}

static void gradient_div(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    KilnTensor *b = node->inputs[1], *y = node->outputs[0];
    KilnTensor *share = kiln_div(dy[0], b);

    if (node->inputs[0]->wants_grad)
        dx[0] = flow(node, 0, share);
    if (b->wants_grad)
        dx[1] = flow(node, 1, kiln_neg(kiln_mul(share, y)));
}

static void gradient_scale(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    const KilnNumberAttrs *attrs = node->attrs;

    dx[0] = kiln_scale(dy[0], attrs->p);
}

static void gradient_shift(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    (void)node;
    dx[0] = dy[0];
}

KILN_MAPPED(add, ADD, 2, gradient_add, FOLLOW, 0)
KILN_MAPPED(sub, SUB, 2, gradient_sub, FOLLOW, 0)
KILN_MAPPED(mul, MUL, 2, gradient_mul, FOLLOW, 0)
KILN_MAPPED(div, DIV, 2, gradient_div, FOLLOW, 0)
KILN_MAPPED(scale, SCALE, 1, gradient_scale, FOLLOW, 1)
KILN_MAPPED(shift, SHIFT, 1, gradient_shift, FOLLOW, 1)

KilnTensor *kiln_add(KilnTensor *a, KilnTensor *b)
{
    return kiln_record_mapped(&kiln_op_add, a, b, NULL, 0.0, 0.0);
}

KilnTensor *kiln_sub(KilnTensor *a, KilnTensor *b)
{
    return kiln_record_mapped(&kiln_op_sub, a, b, NULL, 0.0, 0.0);
}

KilnTensor *kiln_mul(KilnTensor *a, KilnTensor *b)
{
    return kiln_record_mapped(&kiln_op_mul, a, b, NULL, 0.0, 0.0);
}

KilnTensor *kiln_div(KilnTensor *a, KilnTensor *b)
{
    return kiln_record_mapped(&kiln_op_div, a, b, NULL, 0.0, 0.0);
}

KilnTensor *kiln_scale(KilnTensor *x, double factor)
{
    return kiln_record_mapped(&kiln_op_scale, x, NULL, NULL, factor, 0.0);
}

KilnTensor *kiln_shift(KilnTensor *x, double number)
{
    return kiln_record_mapped(&kiln_op_shift, x, NULL, NULL, number, 0.0);
}

KilnTensor *kiln_neg(KilnTensor *x)
{
    return kiln_scale(x, -1.0);
}

/* ---- Minimum, maximum ----------------------------------------------------------- */

static KilnTensor *larger_grad(KilnTensor *dy, KilnTensor *x, KilnTensor *other)
{
    return kiln_record_mapped(&kiln_op_larger_grad, dy, x, other, 0.0, 0.0);
}

static void gradient_maximum(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    for (int i = 0; i < 2; i++)
        if (node->inputs[i]->wants_grad)
            dx[i] = flow(node, i, larger_grad(dy[0], node->inputs[i], node->inputs[1 - i]));
}

static void gradient_minimum(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    for (int i = 0; i < 2; i++)
        if (node->inputs[i]->wants_grad)
            dx[i] = flow(node, i, larger_grad(dy[0], node->inputs[1 - i], node->inputs[i]));
}

static void gradient_clamp(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    const KilnNumberAttrs *attrs = node->attrs;

    dx[0] = kiln_record_mapped(&kiln_op_clamp_grad, dy[0], node->inputs[0], NULL, attrs->p,
                               attrs->q);
}

KILN_MAPPED(minimum, MINIMUM, 2, gradient_minimum, FOLLOW, 0)
KILN_MAPPED(maximum, MAXIMUM, 2, gradient_maximum, FOLLOW, 0)
KILN_MAPPED(clamp, CLAMP, 1, gradient_clamp, FOLLOW, 1)
KILN_MAPPED(clamp_grad, CLAMP_GRAD, 2, NULL, FOLLOW, 1)
KILN_MAPPED(larger_grad, LARGER_GRAD, 3, NULL, FOLLOW, 0)

KilnTensor *kiln_minimum(KilnTensor *a, KilnTensor *b)
{
    return kiln_record_mapped(&kiln_op_minimum, a, b, NULL, 0.0, 0.0);
}

KilnTensor *kiln_maximum(KilnTensor *a, KilnTensor *b)
{
    return kiln_record_mapped(&kiln_op_maximum, a, b, NULL, 0.0, 0.0);
}

KilnTensor *kiln_clamp(KilnTensor *x, double least, double most)
{
    return kiln_record_mapped(&kiln_op_clamp, x, NULL, NULL, least, most);
}

/* ---- Comparisons and selection -------------------------------------------------- */

static KilnStatus infer_where(KilnNode *node, KilnError *err)
{
    const KilnTensor *condition = node->inputs[0];
    KilnShape shape;

    if (condition->dtype != KILN_U8 && kiln_check_float(node, 0, "the condition", err) < 0)
        return kiln_error_set(err, KILN_E_SHAPE, "the condition must be u8 or %s, got %s",
                              kiln_dtype_name(kiln_node_float(node)),
                              kiln_dtype_name(condition->dtype));
    if (kiln_check_float(node, 1, "the first choice", err) < 0 ||
        kiln_check_float(node, 2, "the second choice", err) < 0 ||
        kiln_broadcast_shapes(node, &shape, err) < 0)
        return err->status;
    kiln_infer_output(node, 0, kiln_node_float(node), &shape);
    return KILN_OK;
}

static void gradient_where(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    KilnTensor *condition = node->inputs[0];
    KilnTensor *zero = kiln_graph_full(dy[0]->graph, KILN_SCALAR, 0.0);

    if (node->inputs[1]->wants_grad)
        dx[1] = flow(node, 1, kiln_where(condition, dy[0], zero));
    if (node->inputs[2]->wants_grad)
        dx[2] = flow(node, 2, kiln_where(condition, zero, dy[0]));
}

KILN_MAPPED_CONSTANT(eq, EQ, 2)
KILN_MAPPED_CONSTANT(ne, NE, 2)
KILN_MAPPED_CONSTANT(lt, LT, 2)
KILN_MAPPED_CONSTANT(le, LE, 2)
KILN_MAPPED_OP(where, WHERE, 3, infer_where, gradient_where, 1, FOLLOW, 0)

KilnTensor *kiln_eq(KilnTensor *a, KilnTensor *b)
{
    return kiln_record_mapped(&kiln_op_eq, a, b, NULL, 0.0, 0.0);
}

KilnTensor *kiln_ne(KilnTensor *a, KilnTensor *b)
{
    return kiln_record_mapped(&kiln_op_ne, a, b, NULL, 0.0, 0.0);
}

KilnTensor *kiln_lt(KilnTensor *a, KilnTensor *b)
{
    return kiln_record_mapped(&kiln_op_lt, a, b, NULL, 0.0, 0.0);
}

KilnTensor *kiln_le(KilnTensor *a, KilnTensor *b)
{
    return kiln_record_mapped(&kiln_op_le, a, b, NULL, 0.0, 0.0);
}

KilnTensor *kiln_gt(KilnTensor *a, KilnTensor *b)
{
    return kiln_lt(b, a);
}

KilnTensor *kiln_ge(KilnTensor *a, KilnTensor *b)
{
    return kiln_le(b, a);
}

KilnTensor *kiln_where(KilnTensor *condition, KilnTensor *a, KilnTensor *b)
{
    return kiln_record_mapped(&kiln_op_where, condition, a, b, 0.0, 0.0);
}

KilnTensor *kiln_masked_fill(KilnTensor *x, KilnTensor *mask, double value)
{
    return kiln_where(mask, kiln_graph_full(x->graph, KILN_SCALAR, value), x);
}

/* ---- Functions ---------------------------------------------------------------------------- */

static void gradient_exp(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    dx[0] = kiln_mul(dy[0], node->outputs[0]);
}

static void gradient_log(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    dx[0] = kiln_div(dy[0], node->inputs[0]);
}

static void gradient_log1p(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    dx[0] = kiln_div(dy[0], kiln_shift(node->inputs[0], 1.0));
}

static void gradient_sqrt(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    dx[0] = kiln_div(kiln_scale(dy[0], 0.5), node->outputs[0]);
}

static void gradient_rsqrt(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    KilnTensor *y = node->outputs[0];

    dx[0] = kiln_scale(kiln_mul(dy[0], kiln_mul(y, kiln_square(y))), -0.5);
}

static void gradient_reciprocal(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    dx[0] = kiln_neg(kiln_mul(dy[0], kiln_square(node->outputs[0])));
}

static void gradient_square(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    dx[0] = kiln_mul(dy[0], kiln_scale(node->inputs[0], 2.0));
}

static void gradient_abs(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    dx[0] = kiln_mul(dy[0], kiln_sign(node->inputs[0]));
}

static void gradient_erf(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    const double slope = 1.1283791670955126; /* 2 / sqrt(pi) */
    KilnTensor *bell = kiln_exp(kiln_neg(kiln_square(node->inputs[0])));

    dx[0] = kiln_mul(dy[0], kiln_scale(bell, slope));
}

static void gradient_sin(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    dx[0] = kiln_mul(dy[0], kiln_cos(node->inputs[0]));
}

static void gradient_cos(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    dx[0] = kiln_neg(kiln_mul(dy[0], kiln_sin(node->inputs[0])));
}

static void gradient_atan2(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    KilnTensor *y = node->inputs[0], *x = node->inputs[1];
    KilnTensor *share = kiln_div(dy[0], kiln_add(kiln_square(y), kiln_square(x)));

    if (y->wants_grad)
        dx[0] = flow(node, 0, kiln_mul(share, x));
    if (x->wants_grad)
        dx[1] = flow(node, 1, kiln_neg(kiln_mul(share, y)));
}

KILN_MAPPED(exp, EXP, 1, gradient_exp, F32, 0)
KILN_MAPPED(log, LOG, 1, gradient_log, F32, 0)
KILN_MAPPED(log1p, LOG1P, 1, gradient_log1p, F32, 0)
KILN_MAPPED(sqrt, SQRT, 1, gradient_sqrt, FOLLOW, 0)
KILN_MAPPED(rsqrt, RSQRT, 1, gradient_rsqrt, F32, 0)
KILN_MAPPED(reciprocal, RECIPROCAL, 1, gradient_reciprocal, F32, 0)
KILN_MAPPED(square, SQUARE, 1, gradient_square, FOLLOW, 0)
KILN_MAPPED(abs, ABS, 1, gradient_abs, FOLLOW, 0)
KILN_MAPPED_CONSTANT(sign, SIGN, 1)
KILN_MAPPED_CONSTANT(floor, FLOOR, 1)
KILN_MAPPED_CONSTANT(round, ROUND, 1)
KILN_MAPPED(erf, ERF, 1, gradient_erf, FOLLOW, 0)
KILN_MAPPED(sin, SIN, 1, gradient_sin, FOLLOW, 0)
KILN_MAPPED(cos, COS, 1, gradient_cos, FOLLOW, 0)
KILN_MAPPED(atan2, ATAN2, 2, gradient_atan2, F32, 0)

#define FUNCTION(name)                                                                             \
    KilnTensor *kiln_##name(KilnTensor *x)                                                         \
    {                                                                                              \
        return kiln_record_mapped(&kiln_op_##name, x, NULL, NULL, 0.0, 0.0);                       \
    }
FUNCTION(exp)
FUNCTION(log)
FUNCTION(log1p)
FUNCTION(sqrt)
FUNCTION(rsqrt)
FUNCTION(reciprocal)
FUNCTION(square)
FUNCTION(abs)
FUNCTION(sign)
FUNCTION(floor)
FUNCTION(round)
FUNCTION(erf)
FUNCTION(sin)
FUNCTION(cos)

KilnTensor *kiln_atan2(KilnTensor *y, KilnTensor *x)
{
    return kiln_record_mapped(&kiln_op_atan2, y, x, NULL, 0.0, 0.0);
}

/* ---- Powers ---------------------------------------------------------------------------------- */

static void gradient_pow(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    const KilnNumberAttrs *attrs = node->attrs;

    if (attrs->p == 0.0) {
        dx[0] = kiln_graph_full(dy[0]->graph, node->inputs[0]->shape, 0.0);
        return;
    }
    KilnTensor *slope = kiln_scale(kiln_pow(node->inputs[0], attrs->p - 1.0), attrs->p);

    dx[0] = kiln_mul(dy[0], slope);
}

/* As in PyTorch: the derivative is 0 for an exponent of 0, and the exponent's derivative is 0 for a
 * base of 0 and an exponent >= 0. */
static void gradient_power(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    KilnTensor *x = node->inputs[0], *exponent = node->inputs[1], *y = node->outputs[0];
    KilnTensor *zero = kiln_graph_full(x->graph, KILN_SCALAR, 0.0);

    if (x->wants_grad) {
        KilnTensor *slope = kiln_mul(exponent, kiln_power(x, kiln_shift(exponent, -1.0)));

        dx[0] = flow(node, 0, kiln_where(exponent, kiln_mul(dy[0], slope), zero));
    }
    if (exponent->wants_grad) {
        KilnTensor *flat = kiln_mul(kiln_eq(x, zero), kiln_ge(exponent, zero));

        dx[1] = flow(node, 1, kiln_mul(dy[0], kiln_where(flat, zero, kiln_mul(y, kiln_log(x)))));
    }
}

KILN_MAPPED(pow, POW, 1, gradient_pow, F32, 1)
KILN_MAPPED(power, POWER, 2, gradient_power, F32, 0)

KilnTensor *kiln_pow(KilnTensor *x, double exponent)
{
    if (exponent == 2.0)
        return kiln_square(x);
    if (exponent == 1.0)
        return x;
    if (exponent == 0.5)
        return kiln_sqrt(x);
    if (exponent == -1.0)
        return kiln_reciprocal(x);
    return kiln_record_mapped(&kiln_op_pow, x, NULL, NULL, exponent, 0.0);
}

KilnTensor *kiln_power(KilnTensor *x, KilnTensor *exponent)
{
    return kiln_record_mapped(&kiln_op_power, x, exponent, NULL, 0.0, 0.0);
}

/* ---- Types and shapes ---------------------------------------------------------------- */

static KilnStatus infer_to_float(KilnNode *node, KilnError *err)
{
    const KilnTensor *x = node->inputs[0];

    if (x->dtype != KILN_I32 && x->dtype != KILN_U8)
        return kiln_error_set(err, KILN_E_SHAPE, "the tensor must be i32 or u8, got %s",
                              kiln_dtype_name(x->dtype));
    kiln_infer_like(node, 0);
    return KILN_OK;
}

static KilnStatus infer_broadcast(KilnNode *node, KilnError *err)
{
    const KilnShapeAttrs *attrs = node->attrs;
    const KilnShape *x = &node->inputs[0]->shape;
    const int more = attrs->shape.rank - x->rank;
    char from[KILN_SHAPE_TEXT], to[KILN_SHAPE_TEXT];
    bool fits = more >= 0;

    for (int axis = 0; axis < x->rank && fits; axis++)
        fits = x->dim[axis] == 1 || x->dim[axis] == attrs->shape.dim[more + axis];
    if (!fits)
        return kiln_error_set(err, KILN_E_SHAPE, "%s does not broadcast to %s",
                              kiln_shape_text(x, from, sizeof(from)),
                              kiln_shape_text(&attrs->shape, to, sizeof(to)));
    if (kiln_check_float(node, 0, "the tensor", err) < 0)
        return err->status;
    kiln_infer_output(node, 0, kiln_node_float(node), &attrs->shape);
    return KILN_OK;
}

static void gradient_broadcast(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    dx[0] = flow(node, 0, dy[0]);
}

KILN_MAPPED_OP(to_float, COPY, 1, infer_to_float, NULL, ~0u, F32, 0)
KILN_MAPPED_CONSTANT(detach, COPY, 1)

KILN_MAPPED_RULE(broadcast, COPY)
const KilnOp kiln_op_broadcast = {
    .name = "broadcast",
    .n_inputs = 1,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnShapeAttrs),
    .infer = infer_broadcast,
    .gradient = gradient_broadcast,
    .map = map_broadcast,
    .autocast = KILN_AUTOCAST_FOLLOW,
    .bf16_inputs = 1,
    .bf16_outputs = 1,
};

KilnTensor *kiln_to_float(KilnTensor *x)
{
    return kiln_record_mapped(&kiln_op_to_float, x, NULL, NULL, 0.0, 0.0);
}

KilnTensor *kiln_detach(KilnTensor *x)
{
    return kiln_record_mapped(&kiln_op_detach, x, NULL, NULL, 0.0, 0.0);
}

KilnTensor *kiln_broadcast_to(KilnTensor *x, KilnShape shape)
{
    KilnShapeAttrs attrs;

    if (x->poisoned)
        return x->graph->poison;
    if (shape.rank < 0 || shape.rank > KILN_MAX_RANK)
        return kiln_graph_poison(x->graph, "broadcast: %d axes; 0 to %d are possible", shape.rank,
                                 KILN_MAX_RANK);
    if (kiln_shape_equal(&x->shape, &shape))
        return x;
    memset(&attrs, 0, sizeof(attrs));
    kiln_shape_store(&attrs.shape, &shape);
    return kiln_graph_record(x->graph, &kiln_op_broadcast, &x, 1, &attrs);
}

/* ---- fill, equal --------------------------------------------------------------------- */

static KilnStatus infer_fill(KilnNode *node, KilnError *err)
{
    const KilnFillAttrs *attrs = node->attrs;

    (void)err;
    kiln_infer_output(node, 0, attrs->dtype, &attrs->shape);
    return KILN_OK;
}

static KilnStatus infer_equal(KilnNode *node, KilnError *err)
{
    const KilnShape *a = &node->inputs[0]->shape, *b = &node->inputs[1]->shape;
    char text_a[KILN_SHAPE_TEXT], text_b[KILN_SHAPE_TEXT];

    if (!kiln_shape_equal(a, b))
        return kiln_error_set(err, KILN_E_SHAPE, "both must have the same shape, got %s and %s",
                              kiln_shape_text(a, text_a, sizeof(text_a)),
                              kiln_shape_text(b, text_b, sizeof(text_b)));
    if (kiln_check_dtype(node, 0, "the first", KILN_I32, err) < 0 ||
        kiln_check_dtype(node, 1, "the second", KILN_I32, err) < 0)
        return err->status;
    kiln_infer_output(node, 0, kiln_node_float(node), a);
    return KILN_OK;
}

const KilnOp kiln_op_fill = {
    .name = "fill",
    .n_inputs = 0,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnFillAttrs),
    .infer = infer_fill,
};

const KilnOp kiln_op_equal = {
    .name = "equal",
    .n_inputs = 2,
    .n_outputs = 1,
    .infer = infer_equal,
};

KilnTensor *kiln_graph_full(KilnGraph *graph, KilnShape shape, double value)
{
    KilnFillAttrs attrs;

    memset(&attrs, 0, sizeof(attrs));
    attrs.value = value;
    attrs.dtype = graph->float_type;
    kiln_shape_store(&attrs.shape, &shape);
    return kiln_graph_record(graph, &kiln_op_fill, NULL, 0, &attrs);
}

KilnTensor *kiln_equal(KilnTensor *a, KilnTensor *b)
{
    return kiln_graph_record(a->graph, &kiln_op_equal, (KilnTensor *[]) { a, b }, 2, NULL);
}
