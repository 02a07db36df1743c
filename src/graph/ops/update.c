/* Operations that write a variable in place: running statistics, counters,
 * optimizers. They have no output and no gradient. */
#include <string.h>

#include "graph/check.h"
#include "graph/graph.h"

/* ---- ema_update, increment ----------------------------------------------------- */

static KilnStatus infer_ema_update(KilnNode *node, KilnError *err)
{
    if (kiln_check_float(node, 0, "the variable", err) < 0)
        return err->status;
    return kiln_check_shape(node, 1, "the value", &node->inputs[0]->shape, err);
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

void kiln_increment(KilnTensor *variable)
{
    kiln_graph_record(variable->graph, &kiln_op_increment, &variable, 1, NULL);
}

/* ---- sgd_update ---------------------------------------------------------------- */

static KilnStatus infer_sgd(KilnNode *node, KilnError *err)
{
    const KilnSgd *sgd = node->attrs;
    const KilnShape *param = &node->inputs[0]->shape;

    if (kiln_check_rank(node, 0, "param", 1, "[n]", err) < 0 ||
        kiln_check_shape(node, 1, "grad", param, err) < 0 ||
        kiln_check_shape(node, 2, "momentum_buffer", param, err) < 0 ||
        kiln_check_shape(node, 3, "hyper", &KILN_SHAPE(2), err) < 0)
        return err->status;
    if (sgd->momentum != 0.0 && node->inputs[2] == NULL)
        return kiln_error_set(err, KILN_E_MISSING, "momentum %g needs a momentum_buffer",
                              sgd->momentum);
    return KILN_OK;
}

const KilnOp kiln_op_sgd_update = {
    .name = "sgd_update",
    .n_inputs = 4,
    .attrs_size = sizeof(KilnSgd),
    .updates = 1u << 0 | 1u << 2,
    .infer = infer_sgd,
};

void kiln_sgd_update(KilnTensor *param, KilnTensor *grad, KilnTensor *momentum_buffer,
                     KilnTensor *hyper, KilnSgd sgd)
{
    KilnTensor *inputs[] = { param, grad, momentum_buffer, hyper };
    KilnSgd attrs;

    memset(&attrs, 0, sizeof(attrs));
    attrs.momentum = sgd.momentum;
    attrs.weight_decay = sgd.weight_decay;
    attrs.nesterov = sgd.nesterov;
    kiln_graph_record(param->graph, &kiln_op_sgd_update, inputs, 4, &attrs);
}

/* ---- adam_update --------------------------------------------------------------- */

static KilnStatus infer_adam(KilnNode *node, KilnError *err)
{
    const KilnShape *param = &node->inputs[0]->shape;

    if (kiln_check_rank(node, 0, "param", 1, "[n]", err) < 0 ||
        kiln_check_shape(node, 1, "grad", param, err) < 0 ||
        kiln_check_shape(node, 2, "exp_avg", param, err) < 0 ||
        kiln_check_shape(node, 3, "exp_avg_sq", param, err) < 0 ||
        kiln_check_shape(node, 4, "hyper", &KILN_SHAPE(3), err) < 0)
        return err->status;
    return KILN_OK;
}

const KilnOp kiln_op_adam_update = {
    .name = "adam_update",
    .n_inputs = 5,
    .attrs_size = sizeof(KilnAdam),
    .updates = 1u << 0 | 1u << 2 | 1u << 3,
    .infer = infer_adam,
};

void kiln_adam_update(KilnTensor *param, KilnTensor *grad, KilnTensor *exp_avg,
                      KilnTensor *exp_avg_sq, KilnTensor *hyper, KilnAdam adam)
{
    KilnTensor *inputs[] = { param, grad, exp_avg, exp_avg_sq, hyper };
    KilnAdam attrs;

    memset(&attrs, 0, sizeof(attrs));
    attrs.beta1 = adam.beta1;
    attrs.beta2 = adam.beta2;
    attrs.eps = adam.eps;
    attrs.weight_decay = adam.weight_decay;
    attrs.decoupled = adam.decoupled;
    kiln_graph_record(param->graph, &kiln_op_adam_update, inputs, 5, &attrs);
}
