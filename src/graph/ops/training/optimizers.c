/* Optimizer operations: check and record one update of all parameters, in place.
 *
 * Formula and options: nn/optimizers/NAME.c. Kernel: backend/cpu/kernels/optimizers.c; its vector
 * loops: backend/cpu/isa/optimizers.c. Reference: backend/ref/optimizers.c. */
#include <string.h>

#include "graph/op_check.h"
#include "graph/graph.h"

/* Segments need both their ends and their rates, or neither. */
static KilnStatus check_segments(const KilnNode *node, KilnError *err)
{
    const KilnTensor *ends = node->inputs[KILN_FLAT_SEGMENT_ENDS];

    if ((ends == NULL) != (node->inputs[KILN_FLAT_RATES] == NULL))
        return kiln_error_set(err, KILN_E_MISSING,
                              "segment_ends and rates must both be given or both be NULL");
    if (ends == NULL)
        return KILN_OK;
    if (ends->shape.rank != 1)
        return kiln_error_set(err, KILN_E_SHAPE, "segment_ends must be [k]");
    if (kiln_check_dtype(node, KILN_FLAT_SEGMENT_ENDS, "segment_ends", KILN_I64, err) < 0)
        return err->status;
    return kiln_check_shape(node, KILN_FLAT_RATES, "rates", &KILN_SHAPE(ends->shape.dim[0], 2),
                            err);
}

static KilnStatus check_parts(const KilnNode *node, KilnError *err)
{
    const KilnTensor *parts = node->inputs[KILN_FLAT_PART_ENDS];

    if ((parts == NULL) != (node->inputs[KILN_FLAT_NORMS] == NULL))
        return kiln_error_set(err, KILN_E_MISSING,
                              "part_ends and norms must both be given or both be NULL");
    if (parts == NULL)
        return KILN_OK;
    if (parts->shape.rank != 1)
        return kiln_error_set(err, KILN_E_SHAPE, "part_ends must be [p]");
    if (kiln_check_dtype(node, KILN_FLAT_PART_ENDS, "part_ends", KILN_I64, err) < 0)
        return err->status;
    return kiln_check_shape(node, KILN_FLAT_NORMS, "norms", &parts->shape, err);
}

static bool has_rows(const KilnNode *node)
{
    const KilnTensor *rows = node->inputs[KILN_FLAT_ROWS];

    return rows != NULL && rows->dtype == KILN_I32;
}

/* Checks the update of an embedding's rows; `possible`: the optimizer has one. */
static KilnStatus check_rows(const KilnNode *node, bool possible, KilnError *err)
{
    const KilnShape *param = &node->inputs[KILN_FLAT_PARAM]->shape;

    if (!possible)
        return kiln_error_set(err, KILN_E_RANGE,
                              "cannot update single rows; SGD without momentum, Adagrad and Adam "
                              "can");
    if (param->rank < 2)
        return kiln_error_set(err, KILN_E_SHAPE, "param must be [V, ...] where rows are updated");
    if (node->inputs[KILN_FLAT_NORMS] != NULL)
        return kiln_error_set(err, KILN_E_RANGE, "norms need segments, not rows");
    if (kiln_check_shape(node, KILN_FLAT_RATES, "rates", &KILN_SHAPE(1, 2), err) < 0)
        return err->status;
    return kiln_check_sparse_rows(node, KILN_FLAT_ROWS, param->dim[0], err);
}

/* Checks that all optimizers share. `names` are those of the slots; the first `needed` slots are
 * required; `rows`: the optimizer can update single rows. */
static KilnStatus check_flat(const KilnNode *node, int64_t hyper, const char *const *names,
                             int n_names, int needed, bool rows, KilnError *err)
{
    const KilnShape *param = &node->inputs[KILN_FLAT_PARAM]->shape;

    if ((has_rows(node) ? check_rows(node, rows, err)
                        : kiln_check_rank(node, KILN_FLAT_PARAM, "param", 1, "[n]", err)) < 0)
        return err->status;
    if (kiln_check_shape(node, KILN_FLAT_GRAD, "grad", param, err) < 0 ||
        kiln_check_shape(node, KILN_FLAT_HYPER, "hyper", &KILN_SHAPE(hyper), err) < 0 ||
        kiln_check_rank(node, KILN_FLAT_SCALE, "scale", 0, "a scalar", err) < 0 ||
        (!has_rows(node) && check_segments(node, err) < 0) || check_parts(node, err) < 0)
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
    return check_flat(node, 2, names, 1, 0, node->inputs[KILN_FLAT_SLOTS] == NULL, err);
}

static KilnStatus infer_adam(KilnNode *node, KilnError *err)
{
    static const char *const names[] = { "exp_avg", "exp_avg_sq", "max_exp_avg_sq" };
    const KilnAdam *adam = node->attrs;

    return check_flat(node, 3, names, 3, adam->amsgrad ? 3 : 2, true, err);
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
    return check_flat(node, 1, names, 3, 1, false, err);
}

static KilnStatus infer_adagrad(KilnNode *node, KilnError *err)
{
    static const char *const names[] = { "sum" };

    return check_flat(node, 2, names, 1, 1, true, err);
}

static KilnStatus infer_lamb(KilnNode *node, KilnError *err)
{
    static const char *const names[] = { "exp_avg", "exp_avg_sq" };

    return check_flat(node, 3, names, 2, 2, false, err);
}

static KilnStatus infer_lion(KilnNode *node, KilnError *err)
{
    static const char *const names[] = { "exp_avg" };

    return check_flat(node, 1, names, 1, 1, false, err);
}

static KilnStatus infer_adan(KilnNode *node, KilnError *err)
{
    static const char *const names[] = { "exp_avg", "exp_avg_sq", "exp_avg_diff", "pre_grad" };

    return check_flat(node, 5, names, 4, 4, false, err);
}

/* The descriptor of an optimizer with `slots_` slots, all of them written. Parameters, gradients
 * and slots may be bf16. */
#define OPTIMIZER(name_, Attrs, slots_)                                                            \
    const KilnOp kiln_op_##name_##_update = {                                                      \
        .name = #name_ "_update",                                                                  \
        .n_inputs = KILN_FLAT_SLOTS + slots_,                                                      \
        .attrs_size = sizeof(Attrs),                                                               \
        .updates = 1u << KILN_FLAT_PARAM | 1u << KILN_FLAT_NORMS |                                 \
                   ((1u << slots_) - 1u) << KILN_FLAT_SLOTS,                                       \
        .infer = infer_##name_,                                                                    \
        .bf16_inputs = 1u << KILN_FLAT_PARAM | 1u << KILN_FLAT_GRAD |                              \
                       ((1u << slots_) - 1u) << KILN_FLAT_SLOTS,                                   \
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
        [KILN_FLAT_PARAM] = flat->param,         [KILN_FLAT_GRAD] = flat->grad,
        [KILN_FLAT_HYPER] = flat->hyper,         [KILN_FLAT_SEGMENT_ENDS] = flat->segment_ends,
        [KILN_FLAT_RATES] = flat->rates,         [KILN_FLAT_SCALE] = flat->scale,
        [KILN_FLAT_PART_ENDS] = flat->part_ends, [KILN_FLAT_NORMS] = flat->norms,
    };

    memcpy(inputs + KILN_FLAT_SLOTS, flat->slots, sizeof(flat->slots));
    kiln_graph_record(flat->param->graph, op, inputs, op->n_inputs, attrs);
}

/* Attributes are compared bytewise, so the padding after flags must be zero. */

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
