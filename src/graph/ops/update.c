/* Operations that write a variable in place: running statistics, counters,
 * optimizers; and the norm and the factor by which gradients are clipped. What is
 * in place has no output; none has a gradient. */
#include <string.h>

#include "graph/op_check.h"
#include "graph/graph.h"

/* ---- Averages, counters, limits ------------------------------------------------- */

static KilnStatus infer_variable(KilnNode *node, KilnError *err)
{
    return kiln_check_float(node, 0, "the variable", err);
}

static KilnStatus infer_ema_update(KilnNode *node, KilnError *err)
{
    if (infer_variable(node, err) < 0)
        return err->status;
    return kiln_check_shape(node, 1, "the value", &node->inputs[0]->shape, err);
}

static KilnStatus infer_lerp_update(KilnNode *node, KilnError *err)
{
    if (infer_ema_update(node, err) < 0)
        return err->status;
    return kiln_check_rank(node, 2, "the weight", 0, "a scalar", err);
}

static KilnStatus infer_increment(KilnNode *node, KilnError *err)
{
    char text[KILN_SHAPE_TEXT];

    if (node->inputs[0]->shape.rank != 0)
        return kiln_error_set(err, KILN_E_SHAPE, "the variable must be a scalar, got %s",
                              kiln_shape_text(&node->inputs[0]->shape, text, sizeof(text)));
    return kiln_check_dtype(node, 0, "the variable", KILN_I64, err);
}

const KilnOp kiln_op_ema_update = {
    .name = "ema_update",
    .n_inputs = 2,
    .attrs_size = sizeof(KilnScaleAttrs),
    .updates = 1u << 0,
    .infer = infer_ema_update,
    .narrow_inputs = 1u << 0,
};

const KilnOp kiln_op_lerp_update = {
    .name = "lerp_update",
    .n_inputs = 3,
    .updates = 1u << 0,
    .infer = infer_lerp_update,
    .narrow_inputs = 1u << 0 | 1u << 1,
};

const KilnOp kiln_op_clamp_update = {
    .name = "clamp_update",
    .n_inputs = 1,
    .attrs_size = sizeof(KilnLimitAttrs),
    .updates = 1u << 0,
    .infer = infer_variable,
    .narrow_inputs = 1u << 0,
};

const KilnOp kiln_op_increment = {
    .name = "increment",
    .n_inputs = 1,
    .updates = 1u << 0,
    .infer = infer_increment,
};

void kiln_ema_update(KilnTensor *variable, KilnTensor *value, double momentum)
{
    KilnScaleAttrs attrs = { .factor = momentum, .correction = 1.0 };

    kiln_graph_record(variable->graph, &kiln_op_ema_update, (KilnTensor *[]) { variable, value }, 2,
                      &attrs);
}

void kiln_lerp_update(KilnTensor *variable, KilnTensor *value, KilnTensor *weight)
{
    kiln_graph_record(variable->graph, &kiln_op_lerp_update,
                      (KilnTensor *[]) { variable, value, weight }, 3, NULL);
}

void kiln_clamp_update(KilnTensor *variable, double limit)
{
    KilnLimitAttrs attrs = { .limit = limit };

    kiln_graph_record(variable->graph, &kiln_op_clamp_update, &variable, 1, &attrs);
}

void kiln_increment(KilnTensor *variable)
{
    kiln_graph_record(variable->graph, &kiln_op_increment, &variable, 1, NULL);
}

/* ---- Clipping by norm -------------------------------------------------------------- */

static KilnStatus infer_l2_norm(KilnNode *node, KilnError *err)
{
    if (kiln_check_float(node, 0, "the tensor", err) < 0)
        return err->status;
    kiln_infer_output(node, 0, kiln_node_float(node), &KILN_SCALAR);
    return KILN_OK;
}

static KilnStatus infer_clip_factor(KilnNode *node, KilnError *err)
{
    if (kiln_check_rank(node, 0, "the norm", 0, "a scalar", err) < 0)
        return err->status;
    kiln_infer_like(node, 0);
    return KILN_OK;
}

const KilnOp kiln_op_l2_norm = {
    .name = "l2_norm",
    .n_inputs = 1,
    .n_outputs = 1,
    .infer = infer_l2_norm,
    .narrow_inputs = 1u << 0,
};

const KilnOp kiln_op_clip_factor = {
    .name = "clip_factor",
    .n_inputs = 1,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnLimitAttrs),
    .infer = infer_clip_factor,
};

KilnTensor *kiln_l2_norm(KilnTensor *x)
{
    return kiln_graph_record(x->graph, &kiln_op_l2_norm, &x, 1, NULL);
}

KilnTensor *kiln_clip_factor(KilnTensor *norm, double max_norm)
{
    KilnLimitAttrs attrs = { .limit = max_norm };

    return kiln_graph_record(norm->graph, &kiln_op_clip_factor, &norm, 1, &attrs);
}

/* ---- Optimizers ---------------------------------------------------------------------- */

/* The numbers of each run come together or not at all. */
static KilnStatus check_runs(const KilnNode *node, KilnError *err)
{
    const KilnTensor *ends = node->inputs[KILN_FLAT_ENDS];

    if ((ends == NULL) != (node->inputs[KILN_FLAT_RATES] == NULL))
        return kiln_error_set(err, KILN_E_MISSING, "ends and rates belong together: one is NULL");
    if (ends == NULL)
        return KILN_OK;
    if (ends->shape.rank != 1)
        return kiln_error_set(err, KILN_E_SHAPE, "ends must be [k]");
    if (kiln_check_dtype(node, KILN_FLAT_ENDS, "ends", KILN_I64, err) < 0)
        return err->status;
    return kiln_check_shape(node, KILN_FLAT_RATES, "rates", &KILN_SHAPE(ends->shape.dim[0], 2),
                            err);
}

static KilnStatus check_parts(const KilnNode *node, KilnError *err)
{
    const KilnTensor *parts = node->inputs[KILN_FLAT_PARTS];

    if ((parts == NULL) != (node->inputs[KILN_FLAT_NORMS] == NULL))
        return kiln_error_set(err, KILN_E_MISSING, "parts and norms belong together: one is NULL");
    if (parts == NULL)
        return KILN_OK;
    if (parts->shape.rank != 1)
        return kiln_error_set(err, KILN_E_SHAPE, "parts must be [p]");
    if (kiln_check_dtype(node, KILN_FLAT_PARTS, "parts", KILN_I64, err) < 0)
        return err->status;
    return kiln_check_shape(node, KILN_FLAT_NORMS, "norms", &parts->shape, err);
}

/* What all updates ask for; `names` are the slots', of which the first `needed`
 * must be there. */
static KilnStatus check_flat(const KilnNode *node, int64_t hyper, const char *const *names,
                             int n_names, int needed, KilnError *err)
{
    if (kiln_check_rank(node, KILN_FLAT_PARAM, "param", 1, "[n]", err) < 0)
        return err->status;

    const KilnShape *param = &node->inputs[KILN_FLAT_PARAM]->shape;

    if (kiln_check_shape(node, KILN_FLAT_GRAD, "grad", param, err) < 0 ||
        kiln_check_shape(node, KILN_FLAT_HYPER, "hyper", &KILN_SHAPE(hyper), err) < 0 ||
        kiln_check_rank(node, KILN_FLAT_SCALE, "scale", 0, "a scalar", err) < 0 ||
        check_runs(node, err) < 0 || check_parts(node, err) < 0)
        return err->status;
    for (int i = 0; i < n_names; i++) {
        if (i < needed && node->inputs[KILN_FLAT_SLOTS + i] == NULL)
            return kiln_error_set(err, KILN_E_MISSING, "%s is missing", names[i]);
        if (kiln_check_shape(node, KILN_FLAT_SLOTS + i, names[i], param, err) < 0)
            return err->status;
    }
    return KILN_OK;
}

static KilnStatus infer_sgd(KilnNode *node, KilnError *err)
{
    static const char *const names[] = { "momentum_buffer" };
    const KilnSgd *sgd = node->attrs;

    if (sgd->momentum != 0.0 && node->inputs[KILN_FLAT_SLOTS] == NULL)
        return kiln_error_set(err, KILN_E_MISSING, "momentum %g needs a momentum_buffer",
                              sgd->momentum);
    return check_flat(node, 2, names, 1, 0, err);
}

static KilnStatus infer_adam(KilnNode *node, KilnError *err)
{
    static const char *const names[] = { "exp_avg", "exp_avg_sq", "max_exp_avg_sq" };
    const KilnAdam *adam = node->attrs;

    return check_flat(node, 3, names, 3, adam->amsgrad ? 3 : 2, err);
}

static KilnStatus infer_rmsprop(KilnNode *node, KilnError *err)
{
    static const char *const names[] = { "square_avg", "momentum_buffer", "grad_avg" };
    const KilnRmsprop *rmsprop = node->attrs;

    if (rmsprop->momentum != 0.0 && node->inputs[KILN_FLAT_SLOTS + 1] == NULL)
        return kiln_error_set(err, KILN_E_MISSING, "momentum %g needs a momentum_buffer",
                              rmsprop->momentum);
    if (rmsprop->centered && node->inputs[KILN_FLAT_SLOTS + 2] == NULL)
        return kiln_error_set(err, KILN_E_MISSING, "centered needs a grad_avg");
    return check_flat(node, 1, names, 3, 1, err);
}

static KilnStatus infer_adagrad(KilnNode *node, KilnError *err)
{
    static const char *const names[] = { "sum" };

    return check_flat(node, 2, names, 1, 1, err);
}

static KilnStatus infer_lamb(KilnNode *node, KilnError *err)
{
    static const char *const names[] = { "exp_avg", "exp_avg_sq" };

    return check_flat(node, 3, names, 2, 2, err);
}

static KilnStatus infer_lion(KilnNode *node, KilnError *err)
{
    static const char *const names[] = { "exp_avg" };

    return check_flat(node, 1, names, 1, 1, err);
}

static KilnStatus infer_adan(KilnNode *node, KilnError *err)
{
    static const char *const names[] = { "exp_avg", "exp_avg_sq", "exp_avg_diff", "pre_grad" };

    return check_flat(node, 5, names, 4, 4, err);
}

/* The descriptor of an update with `slots_` slots: all of them are written. What is
 * as long as the parameters may be bf16. */
#define OPTIMIZER(name_, Attrs, slots_)                                                            \
    const KilnOp kiln_op_##name_##_update = {                                                      \
        .name = #name_ "_update",                                                                  \
        .n_inputs = KILN_FLAT_SLOTS + slots_,                                                      \
        .attrs_size = sizeof(Attrs),                                                               \
        .updates = 1u << KILN_FLAT_PARAM | 1u << KILN_FLAT_NORMS |                                 \
                   ((1u << slots_) - 1u) << KILN_FLAT_SLOTS,                                       \
        .infer = infer_##name_,                                                                    \
        .narrow_inputs = 1u << KILN_FLAT_PARAM | 1u << KILN_FLAT_GRAD |                            \
                         ((1u << slots_) - 1u) << KILN_FLAT_SLOTS,                                 \
    }

OPTIMIZER(sgd, KilnSgd, 1);
OPTIMIZER(adam, KilnAdam, 3);
OPTIMIZER(rmsprop, KilnRmsprop, 3);
OPTIMIZER(adagrad, KilnAdagrad, 1);
OPTIMIZER(lamb, KilnLamb, 2);
OPTIMIZER(lion, KilnLion, 1);
OPTIMIZER(adan, KilnAdan, 4);

static void record_flat(const KilnOp *op, const KilnFlat *flat, const void *attrs)
{
    KilnTensor *inputs[KILN_FLAT_INPUTS] = {
        [KILN_FLAT_PARAM] = flat->param, [KILN_FLAT_GRAD] = flat->grad,
        [KILN_FLAT_HYPER] = flat->hyper, [KILN_FLAT_ENDS] = flat->ends,
        [KILN_FLAT_RATES] = flat->rates, [KILN_FLAT_SCALE] = flat->scale,
        [KILN_FLAT_PARTS] = flat->parts, [KILN_FLAT_NORMS] = flat->norms,
    };

    memcpy(inputs + KILN_FLAT_SLOTS, flat->slots, sizeof(flat->slots));
    kiln_graph_record(flat->param->graph, op, inputs, op->n_inputs, attrs);
}

/* Attributes are compared by their bytes: the padding behind flags must be zero. */

void kiln_sgd_update(const KilnFlat *flat, KilnSgd sgd)
{
    KilnSgd attrs;

    memset(&attrs, 0, sizeof(attrs));
    attrs.momentum = sgd.momentum;
    attrs.dampening = sgd.dampening;
    attrs.nesterov = sgd.nesterov;
    record_flat(&kiln_op_sgd_update, flat, &attrs);
}

void kiln_adam_update(const KilnFlat *flat, KilnAdam adam)
{
    KilnAdam attrs;

    memset(&attrs, 0, sizeof(attrs));
    attrs.beta1 = adam.beta1;
    attrs.beta2 = adam.beta2;
    attrs.eps = adam.eps;
    attrs.decoupled = adam.decoupled;
    attrs.amsgrad = adam.amsgrad;
    record_flat(&kiln_op_adam_update, flat, &attrs);
}

void kiln_rmsprop_update(const KilnFlat *flat, KilnRmsprop rmsprop)
{
    KilnRmsprop attrs;

    memset(&attrs, 0, sizeof(attrs));
    attrs.alpha = rmsprop.alpha;
    attrs.eps = rmsprop.eps;
    attrs.momentum = rmsprop.momentum;
    attrs.centered = rmsprop.centered;
    record_flat(&kiln_op_rmsprop_update, flat, &attrs);
}

void kiln_adagrad_update(const KilnFlat *flat, KilnAdagrad adagrad)
{
    record_flat(&kiln_op_adagrad_update, flat, &adagrad);
}

void kiln_lamb_update(const KilnFlat *flat, KilnLamb lamb)
{
    KilnLamb attrs;

    memset(&attrs, 0, sizeof(attrs));
    attrs.beta1 = lamb.beta1;
    attrs.beta2 = lamb.beta2;
    attrs.eps = lamb.eps;
    attrs.always_adapt = lamb.always_adapt;
    record_flat(&kiln_op_lamb_update, flat, &attrs);
}

void kiln_lion_update(const KilnFlat *flat, KilnLion lion)
{
    record_flat(&kiln_op_lion_update, flat, &lion);
}

void kiln_adan_update(const KilnFlat *flat, KilnAdan adan)
{
    KilnAdan attrs;

    memset(&attrs, 0, sizeof(attrs));
    attrs.beta1 = adan.beta1;
    attrs.beta2 = adan.beta2;
    attrs.beta3 = adan.beta3;
    attrs.eps = adan.eps;
    attrs.no_prox = adan.no_prox;
    record_flat(&kiln_op_adan_update, flat, &attrs);
}
