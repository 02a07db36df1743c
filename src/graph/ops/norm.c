/* Batch normalization over all axes except the last. */
#include "graph/op_check.h"
#include "graph/graph.h"

/* Checks x, weight and bias, for training and evaluation. */
static KilnStatus check_affine(const KilnNode *node, KilnError *err)
{
    const KilnShape *x = &node->inputs[0]->shape;

    if (kiln_check_rows(node, 0, "x", err) < 0)
        return err->status;
    KilnShape channels = KILN_SHAPE(x->dim[x->rank - 1]);
    if (kiln_check_shape(node, 1, "weight", &channels, err) < 0 ||
        kiln_check_shape(node, 2, "bias", &channels, err) < 0)
        return err->status;
    return KILN_OK;
}

/* ---- Training: batch_norm ------------------------------------------------------ */

static KilnStatus infer_batch_norm(KilnNode *node, KilnError *err)
{
    const KilnShape *x = &node->inputs[0]->shape;
    char text[KILN_SHAPE_TEXT];

    if (check_affine(node, err) < 0)
        return err->status;
    KilnShape channels = KILN_SHAPE(x->dim[x->rank - 1]);
    if (kiln_shape_count(x) == channels.dim[0])
        return kiln_error_set(err, KILN_E_SHAPE,
                              "%s has one value per channel; training needs at least two, "
                              "so a larger batch or larger images",
                              kiln_shape_text(x, text, sizeof(text)));
    kiln_infer_like(node, 0);
    kiln_infer_output(node, 1, kiln_node_float(node), &channels);
    kiln_infer_output(node, 2, kiln_node_float(node), &channels);
    return KILN_OK;
}

static void gradient_batch_norm(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    KilnTensor *inputs[] = { dy[0], node->inputs[0], node->inputs[1], node->outputs[1],
                             node->outputs[2] };

    /* The batch statistics feed only the running ones and have no gradient. */
    if (dy[0] == NULL)
        return;
    KilnTensor *first = kiln_graph_record(dy[0]->graph, &kiln_op_batch_norm_grad, inputs, 5,
                                          node->attrs);
    if (first->poisoned)
        return;
    for (int i = 0; i < 3; i++)
        dx[i] = first->node->outputs[i];
}

static KilnStatus infer_batch_norm_grad(KilnNode *node, KilnError *err)
{
    const KilnTensor *x = node->inputs[1], *weight = node->inputs[2];

    if (kiln_check_shape(node, 0, "dy", &x->shape, err) < 0)
        return err->status;
    kiln_infer_like(node, 1);
    kiln_infer_output(node, 1, kiln_node_float(node), &weight->shape);
    kiln_infer_output(node, 2, kiln_node_float(node), &weight->shape);
    return KILN_OK;
}

const KilnOp kiln_op_batch_norm = {
    .name = "batch_norm",
    .n_inputs = 4,
    .n_outputs = 3,
    .attrs_size = sizeof(KilnBatchNormAttrs),
    .infer = infer_batch_norm,
    .gradient = gradient_batch_norm,
    .autocast = KILN_AUTOCAST_FOLLOW,
    .bf16_inputs = 1u << 0 | 1u << 3,
    .bf16_outputs = 1u << 0,
};

const KilnOp kiln_op_batch_norm_grad = {
    .name = "batch_norm_grad",
    .n_inputs = 8,
    .n_outputs = 3,
    .attrs_size = sizeof(KilnBatchNormAttrs),
    .infer = infer_batch_norm_grad,
    .autocast = KILN_AUTOCAST_FOLLOW,
    .bf16_inputs = 1u << 0 | 1u << 1 | 1u << 6 | 1u << 7,
    .bf16_outputs = 1u << 0 | 1u << 3,
};

/* ---- Evaluation: batch_norm_eval ----------------------------------------------- */

static KilnStatus infer_batch_norm_eval(KilnNode *node, KilnError *err)
{
    if (check_affine(node, err) < 0 ||
        kiln_check_shape(node, 3, "running_mean", &node->inputs[1]->shape, err) < 0 ||
        kiln_check_shape(node, 4, "running_var", &node->inputs[1]->shape, err) < 0)
        return err->status;
    kiln_infer_like(node, 0);
    return KILN_OK;
}

static KilnTensor *record_eval(KilnTensor *const inputs[5], const KilnBatchNormAttrs *attrs)
{
    return kiln_graph_record(inputs[0]->graph, &kiln_op_batch_norm_eval, inputs, 5, attrs);
}

/* With fixed statistics the operation is linear in x and in weight, so its gradients are the
 * operation itself: on dy without shift, and on x unscaled. */
static void gradient_batch_norm_eval(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    KilnTensor *x = node->inputs[0], *weight = node->inputs[1], *mean = node->inputs[3],
               *var = node->inputs[4];
    KilnTensor *zero = kiln_graph_full(x->graph, weight->shape, 0.0);

    if (x->wants_grad)
        dx[0] = record_eval((KilnTensor *[]) { dy[0], weight, zero, zero, var }, node->attrs);
    if (weight->wants_grad) {
        KilnTensor *one = kiln_graph_full(x->graph, weight->shape, 1.0);
        KilnTensor *unscaled = record_eval((KilnTensor *[]) { x, one, zero, mean, var },
                                           node->attrs);

        dx[1] = kiln_sum_rows(kiln_mul(dy[0], unscaled));
    }
    if (node->inputs[2]->wants_grad)
        dx[2] = kiln_sum_rows(dy[0]);
}

const KilnOp kiln_op_batch_norm_eval = {
    .name = "batch_norm_eval",
    .n_inputs = 6,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnBatchNormAttrs),
    .infer = infer_batch_norm_eval,
    .gradient = gradient_batch_norm_eval,
    .autocast = KILN_AUTOCAST_FOLLOW,
    .bf16_inputs = 1u << 0 | 1u << 5,
    .bf16_outputs = 1u << 0,
};

/* ---- The public operation ------------------------------------------------------ */

/* running = (1-m)·running + m·batch; as in PyTorch the variance is unbiased: n/(n-1) times the
 * batch's. */
static void update_running(KilnTensor *running, KilnTensor *batch, double momentum,
                           double correction)
{
    KilnScaleAttrs attrs = { .factor = momentum, .correction = correction };

    kiln_graph_record(running->graph, &kiln_op_ema_update, (KilnTensor *[]) { running, batch }, 2,
                      &attrs);
}

KilnTensor *kiln_batch_norm(KilnTensor *x, KilnTensor *weight, KilnTensor *bias,
                            KilnTensor *running_mean, KilnTensor *running_var, KilnBatchNorm norm)
{
    KilnTensor *inputs[] = { x, weight, bias, running_mean, running_var };
    KilnBatchNormAttrs attrs = { .eps = norm.eps };

    if (!(norm.eps > 0.0))
        return kiln_graph_poison(x->graph, "batch_norm: eps must be more than 0, got %g", norm.eps);
    if (!norm.training)
        return record_eval(inputs, &attrs);
    KilnTensor *y = kiln_graph_record(x->graph, &kiln_op_batch_norm, inputs, 3, &attrs);
    if (y->poisoned)
        return y;
    double n = (double)(kiln_shape_count(&x->shape) / weight->shape.dim[0]);
    update_running(running_mean, y->node->outputs[1], norm.momentum, 1.0);
    update_running(running_var, y->node->outputs[2], norm.momentum, n / (n - 1.0));
    return y;
}
