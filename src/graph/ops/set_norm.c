/* Normalization with statistics of each sample: layer, rms and group norm. */
#include <inttypes.h>
#include <string.h>

#include "graph/op_check.h"
#include "graph/graph.h"

KilnSets kiln_sets(const KilnSetNormAttrs *attrs, const KilnShape *x)
{
    const int64_t all = kiln_shape_count(x);
    KilnSets sets = { .pixels = 1, .groups = 1 };

    if (attrs->groups > 0) {
        sets.stride = x->dim[x->rank - 1];
        sets.groups = attrs->groups;
        sets.run = sets.stride / attrs->groups;
        sets.count = x->dim[0] * attrs->groups;
        sets.pixels = all / x->dim[0] / sets.stride;
        return sets;
    }
    sets.run = 1;
    for (int64_t i = 0; i < attrs->axes; i++)
        sets.run *= x->dim[x->rank - 1 - (int)i];
    sets.stride = sets.run;
    sets.count = all / sets.run;
    return sets;
}

/* ---- Shapes -------------------------------------------------------------------- */

/* The shape of weight and bias: the last axes, or the channels. */
static KilnShape weight_shape(const KilnSetNormAttrs *attrs, const KilnShape *x)
{
    const int axes = attrs->groups > 0 ? 1 : (int)attrs->axes;
    KilnShape shape = { .rank = axes };

    for (int i = 0; i < axes; i++)
        shape.dim[i] = x->dim[x->rank - axes + i];
    return shape;
}

static KilnStatus check_rows(const KilnNode *node, KilnError *err)
{
    const KilnSetNormAttrs *attrs = node->attrs;
    const KilnShape *x = &node->inputs[0]->shape;
    char text[KILN_SHAPE_TEXT];

    if (kiln_check_rows(node, 0, "x", err) < 0)
        return err->status;
    if (attrs->axes < 1 || attrs->axes > x->rank)
        return kiln_error_set(err, KILN_E_SHAPE, "%s has no %" PRId64 " last axes",
                              kiln_shape_text(x, text, sizeof(text)), attrs->axes);
    return KILN_OK;
}

static KilnStatus check_groups(const KilnNode *node, KilnError *err)
{
    const KilnSetNormAttrs *attrs = node->attrs;
    const KilnShape *x = &node->inputs[0]->shape;
    char text[KILN_SHAPE_TEXT];

    if (kiln_check_float(node, 0, "x", err) < 0)
        return err->status;
    if (x->rank < 2)
        return kiln_error_set(err, KILN_E_SHAPE, "x must be [N, ..., C], got %s",
                              kiln_shape_text(x, text, sizeof(text)));
    if (attrs->groups < 1 || x->dim[x->rank - 1] % attrs->groups != 0)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "the %" PRId64 " channels cannot be split into %" PRId64
                              " groups of equal size",
                              x->dim[x->rank - 1], attrs->groups);
    return KILN_OK;
}

/* y, and one number per set for every other output. */
static KilnStatus infer_sets(KilnNode *node, KilnError *err)
{
    const KilnSetNormAttrs *attrs = node->attrs;
    const KilnShape *x = &node->inputs[0]->shape;
    const bool groups = node->op == &kiln_op_group_norm;

    if ((groups ? check_groups(node, err) : check_rows(node, err)) < 0)
        return err->status;
    const KilnShape weight = weight_shape(attrs, x);
    if (kiln_check_shape(node, 1, "weight", &weight, err) < 0 ||
        (node->n_inputs > 2 && kiln_check_shape(node, 2, "bias", &weight, err) < 0))
        return err->status;
    const KilnShape each = KILN_SHAPE(kiln_sets(attrs, x).count);
    kiln_infer_like(node, 0);
    for (int i = 1; i < node->n_outputs; i++)
        kiln_infer_output(node, i, kiln_node_float(node), &each);
    return KILN_OK;
}

static KilnStatus infer_sets_grad(KilnNode *node, KilnError *err)
{
    const KilnShape *x = &node->inputs[1]->shape;
    const KilnShape weight = weight_shape(node->attrs, x);

    if (kiln_check_shape(node, 0, "dy", x, err) < 0)
        return err->status;
    kiln_infer_like(node, 1);
    for (int i = 1; i < node->n_outputs; i++)
        kiln_infer_output(node, i, kiln_node_float(node), &weight);
    return KILN_OK;
}

/* ---- Gradients ----------------------------------------------------------------- */

static void record_gradient(const KilnOp *op, KilnNode *node, KilnTensor *dy, KilnTensor **dx)
{
    KilnTensor *inputs[5] = { dy, node->inputs[0], node->inputs[1] };
    const int n_stats = node->n_outputs - 1;

    /* The statistics are for the gradient only. */
    if (dy == NULL)
        return;
    for (int i = 0; i < n_stats; i++)
        inputs[3 + i] = node->outputs[1 + i];
    KilnTensor *first = kiln_graph_record(dy->graph, op, inputs, 3 + n_stats, node->attrs);
    if (first->poisoned)
        return;
    for (int i = 0; i < node->n_inputs; i++)
        dx[i] = first->node->outputs[i];
}

static void gradient_layer_norm(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    record_gradient(&kiln_op_layer_norm_grad, node, dy[0], dx);
}

static void gradient_rms_norm(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    record_gradient(&kiln_op_rms_norm_grad, node, dy[0], dx);
}

static void gradient_group_norm(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    record_gradient(&kiln_op_group_norm_grad, node, dy[0], dx);
}

/* ---- Descriptors --------------------------------------------------------------- */

#define SET_NORM(op_name, inputs)                                                                  \
    const KilnOp kiln_op_##op_name = {                                                             \
        .name = #op_name,                                                                          \
        .n_inputs = (inputs),                                                                      \
        .n_outputs = (inputs),                                                                     \
        .attrs_size = sizeof(KilnSetNormAttrs),                                                    \
        .infer = infer_sets,                                                                       \
        .gradient = gradient_##op_name,                                                            \
        .autocast = KILN_AUTOCAST_FOLLOW,                                                          \
        .bf16_inputs = 1u << 0,                                                                    \
        .bf16_outputs = 1u << 0,                                                                   \
    };                                                                                             \
    const KilnOp kiln_op_##op_name##_grad = {                                                      \
        .name = #op_name "_grad",                                                                  \
        .n_inputs = (inputs) + 2,                                                                  \
        .n_outputs = (inputs),                                                                     \
        .attrs_size = sizeof(KilnSetNormAttrs),                                                    \
        .infer = infer_sets_grad,                                                                  \
        .autocast = KILN_AUTOCAST_FOLLOW,                                                          \
        .bf16_inputs = 1u << 0 | 1u << 1,                                                          \
        .bf16_outputs = 1u << 0,                                                                   \
    };

SET_NORM(layer_norm, 3)
SET_NORM(rms_norm, 2)
SET_NORM(group_norm, 3)

/* ---- The public operations ----------------------------------------------------- */

static KilnTensor *record(const KilnOp *op, KilnTensor *x, KilnTensor *weight, KilnTensor *bias,
                          KilnSetNormAttrs attrs)
{
    KilnTensor *inputs[] = { x, weight, bias };

    if (!(attrs.eps > 0.0))
        return kiln_graph_poison(x->graph, "%s: eps must be more than 0, got %g", op->name,
                                 attrs.eps);
    return kiln_graph_record(x->graph, op, inputs, op->n_inputs, &attrs);
}

KilnTensor *kiln_layer_norm(KilnTensor *x, KilnTensor *weight, KilnTensor *bias, int axes,
                            double eps)
{
    return record(&kiln_op_layer_norm, x, weight, bias,
                  (KilnSetNormAttrs) { .eps = eps, .axes = axes });
}

KilnTensor *kiln_rms_norm(KilnTensor *x, KilnTensor *weight, int axes, double eps)
{
    return record(&kiln_op_rms_norm, x, weight, NULL,
                  (KilnSetNormAttrs) { .eps = eps, .axes = axes });
}

KilnTensor *kiln_group_norm(KilnTensor *x, KilnTensor *weight, KilnTensor *bias, int64_t groups,
                            double eps)
{
    if (groups < 1 && !x->poisoned)
        return kiln_graph_poison(
            x->graph, "group_norm: there must be at least 1 group, got %" PRId64, groups);
    return record(&kiln_op_group_norm, x, weight, bias,
                  (KilnSetNormAttrs) { .eps = eps, .groups = groups });
}
