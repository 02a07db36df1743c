/* In-place updates except optimizers: running averages, counters and limits; also the
 * gradient norm and the clipping factor. In-place operations have no output, and none has a
 * gradient. Optimizers are in graph/ops/training/optimizers.c; kernels in
 * backend/cpu/kernels/updates.c. */
#include "graph/op_check.h"
#include "graph/graph.h"
#include "graph/sparse_rows.h"

/* ---- Averages, counters, limits ------------------------------------------------- */

static KilnStatus infer_variable(KilnNode *node, KilnError *err)
{
    return kiln_check_float(node, 0, "the variable", err);
}

/* Input 1, a list of the sparse rows of input 0, if there is one. */
static KilnStatus check_rows(const KilnNode *node, KilnError *err)
{
    const KilnShape *x = &node->inputs[0]->shape;

    return kiln_check_sparse_rows(node, 1, x->rank > 0 ? x->dim[0] : 0, err);
}

static KilnStatus infer_clamp_update(KilnNode *node, KilnError *err)
{
    return infer_variable(node, err) < 0 ? err->status : check_rows(node, err);
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
    .bf16_inputs = 1u << 0,
};

const KilnOp kiln_op_lerp_update = {
    .name = "lerp_update",
    .n_inputs = 3,
    .updates = 1u << 0,
    .infer = infer_lerp_update,
    .bf16_inputs = 1u << 0 | 1u << 1,
};

const KilnOp kiln_op_clamp_update = {
    .name = "clamp_update",
    .n_inputs = 2,
    .attrs_size = sizeof(KilnLimitAttrs),
    .updates = 1u << 0,
    .infer = infer_clamp_update,
    .bf16_inputs = 1u << 0,
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
    kiln_clamp_update_sparse(variable, NULL, limit);
}

void kiln_clamp_update_sparse(KilnTensor *gradient, KilnTensor *sparse_rows, double limit)
{
    KilnLimitAttrs attrs = { .limit = limit };

    kiln_graph_record(gradient->graph, &kiln_op_clamp_update,
                      (KilnTensor *[]) { gradient, sparse_rows }, 2, &attrs);
}

void kiln_increment(KilnTensor *variable)
{
    kiln_graph_record(variable->graph, &kiln_op_increment, &variable, 1, NULL);
}

/* ---- Clipping by norm -------------------------------------------------------------- */

static KilnStatus infer_l2_norm(KilnNode *node, KilnError *err)
{
    if (kiln_check_float(node, 0, "the tensor", err) < 0 || check_rows(node, err) < 0)
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
    .n_inputs = 2,
    .n_outputs = 1,
    .infer = infer_l2_norm,
    .bf16_inputs = 1u << 0,
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
    return kiln_l2_norm_sparse(x, NULL);
}

KilnTensor *kiln_l2_norm_sparse(KilnTensor *gradient, KilnTensor *sparse_rows)
{
    return kiln_graph_record(gradient->graph, &kiln_op_l2_norm,
                             (KilnTensor *[]) { gradient, sparse_rows }, 2, NULL);
}

KilnTensor *kiln_clip_factor(KilnTensor *norm, double max_norm)
{
    KilnLimitAttrs attrs = { .limit = max_norm };

    return kiln_graph_record(norm->graph, &kiln_op_clip_factor, &norm, 1, &attrs);
}
