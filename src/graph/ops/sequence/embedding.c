/* Rows selected by index: alone (embedding) and in bags. The gradients can be sparse: only rows
 * that this step or the previous one touches are written (embedding.h). */
#include "graph/ops/sequence/embedding.h"

#include <inttypes.h>
#include <string.h>

#include "graph/op_check.h"
#include "graph/graph.h"
#include "graph/sparse_rows.h"

/* ---- Gradients in place ---------------------------------------------------------- */

/* Whether lookups with a list of sparse rows are the weight's only uses in the forward pass. */
static bool only_looked_up(const KilnTensor *weight)
{
    const KilnGraph *graph = weight->graph;

    for (size_t n = 0; n < graph->n_forward; n++) {
        const KilnNode *node = graph->nodes[n];
        const int list = node->op == &kiln_op_index_select    ? 2
                         : node->op == &kiln_op_embedding_bag ? 3
                                                              : -1;

        for (int i = 0; i < node->n_inputs; i++)
            if (node->inputs[i] == weight && (i > 0 || list < 0 || node->inputs[list] == NULL))
                return false;
    }
    return true;
}

/* The destination of the weight's gradient, if this gradient is to be added there: to that of
 * another lookup in this step, or of an earlier step. NULL: it is written as any other. */
static KilnTensor *sum_in_place(const KilnTensor *weight, const KilnTensor *sparse_rows)
{
    const KilnLocation *at = &weight->grad_dest;

    if (sparse_rows == NULL || weight->stored_bf16 || kiln_location_address(at) == 0 ||
        (weight->grad == NULL && !weight->graph->accumulates) || !only_looked_up(weight))
        return NULL;
    return kiln_graph_variable_at(weight->graph, weight->dtype, weight->shape, *at, false,
                                  (KilnLocation) { 0 });
}

/* Records a gradient. One that is added in place takes the place of the weight's gradient so far.
 */
static KilnTensor *record_gradient(const KilnOp *op, KilnTensor **inputs, KilnTensor *weight,
                                   const void *attrs)
{
    KilnTensor *sum = inputs[op->n_inputs - 1], *before = weight->grad;
    KilnTensor *gradient = kiln_graph_record(weight->graph, op, inputs, op->n_inputs, attrs);

    if (sum == NULL)
        return gradient;
    weight->grad = NULL;
    return before != NULL ? before : sum;
}

/* Sets the gradient's output, which one that is added in place lacks. */
static KilnStatus infer_gradient(KilnNode *node, const KilnShape *shape, KilnError *err)
{
    const int sum = node->op->n_inputs - 1;

    kiln_infer_output(node, 0, kiln_node_float(node), shape);
    node->n_outputs = node->inputs[sum] == NULL;
    return kiln_check_shape(node, sum, "the sum", shape, err);
}

/* ---- index_select -------------------------------------------------------------- */

/* x's shape with the index's axes replacing one axis. */
static KilnStatus selected_shape(const KilnSelectAttrs *attrs, const KilnShape *index,
                                 KilnShape *ret, KilnError *err)
{
    const KilnShape *x = &attrs->shape;
    char text[KILN_SHAPE_TEXT];

    if (attrs->axis < 0 || attrs->axis >= x->rank)
        return kiln_error_set(err, KILN_E_SHAPE, "%s has no axis %" PRId64,
                              kiln_shape_text(x, text, sizeof(text)), attrs->axis);
    if (x->rank + index->rank - 1 > KILN_MAX_RANK)
        return kiln_error_set(err, KILN_E_SHAPE, "the result would have %d axes; %d are possible",
                              x->rank + index->rank - 1, KILN_MAX_RANK);
    *ret = (KilnShape) { .rank = 0 };
    for (int i = 0; i < attrs->axis; i++)
        ret->dim[ret->rank++] = x->dim[i];
    for (int i = 0; i < index->rank; i++)
        ret->dim[ret->rank++] = index->dim[i];
    for (int i = (int)attrs->axis + 1; i < x->rank; i++)
        ret->dim[ret->rank++] = x->dim[i];
    return KILN_OK;
}

static KilnStatus infer_index_select(KilnNode *node, KilnError *err)
{
    const KilnSelectAttrs *attrs = node->attrs;
    const KilnTensor *x = node->inputs[0];
    KilnShape shape;

    if (selected_shape(attrs, &node->inputs[1]->shape, &shape, err) < 0 ||
        kiln_check_dtype(node, 1, "the index", KILN_I32, err) < 0 ||
        kiln_check_sparse_rows(node, 2, x->shape.dim[attrs->axis], err) < 0)
        return err->status;
    if (attrs->padding < -1 || attrs->padding >= x->shape.dim[attrs->axis])
        return kiln_error_set(err, KILN_E_RANGE,
                              "the padding index must be one of the %" PRId64
                              " rows, or -1, got %" PRId64,
                              x->shape.dim[attrs->axis], attrs->padding);
    kiln_infer_output(node, 0, x->dtype, &shape);
    return KILN_OK;
}

static void gradient_index_select(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    KilnTensor *x = node->inputs[0];
    KilnTensor *inputs[] = { dy[0], node->inputs[1], node->inputs[2],
                             sum_in_place(x, node->inputs[2]) };

    dx[0] = record_gradient(&kiln_op_index_select_grad, inputs, x, node->attrs);
}

static KilnStatus infer_index_select_grad(KilnNode *node, KilnError *err)
{
    const KilnSelectAttrs *attrs = node->attrs;
    KilnShape shape;

    if (selected_shape(attrs, &node->inputs[1]->shape, &shape, err) < 0 ||
        kiln_check_shape(node, 0, "dy", &shape, err) < 0 ||
        kiln_check_dtype(node, 1, "the index", KILN_I32, err) < 0 ||
        kiln_check_sparse_rows(node, 2, attrs->shape.dim[attrs->axis], err) < 0)
        return err->status;
    return infer_gradient(node, &attrs->shape, err);
}

const KilnOp kiln_op_index_select = {
    .name = "index_select",
    .n_inputs = 3,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnSelectAttrs),
    .infer = infer_index_select,
    .gradient = gradient_index_select,
    .autocast = KILN_AUTOCAST_FOLLOW,
    .bf16_inputs = 1,
    .bf16_outputs = 1,
};

const KilnOp kiln_op_index_select_grad = {
    .name = "index_select_grad",
    .n_inputs = 4,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnSelectAttrs),
    .updates = 1u << 2 | 1u << 3,
    .infer = infer_index_select_grad,
};

static KilnTensor *select_rows(KilnTensor *x, int axis, KilnTensor *index, int64_t padding,
                               KilnTensor *sparse_rows)
{
    KilnTensor *inputs[] = { x, index, sparse_rows };
    KilnSelectAttrs attrs;

    memset(&attrs, 0, sizeof(attrs));
    kiln_shape_store(&attrs.shape, &x->shape);
    attrs.axis = axis < 0 ? axis + x->shape.rank : axis;
    attrs.padding = padding;
    return kiln_graph_record(x->graph, &kiln_op_index_select, inputs, 3, &attrs);
}

KilnTensor *kiln_index_select(KilnTensor *x, int axis, KilnTensor *index)
{
    return select_rows(x, axis, index, -1, NULL);
}

KilnTensor *kiln_embedding(KilnTensor *weight, KilnTensor *index, int64_t padding_idx)
{
    return kiln_embedding_sparse(weight, index, padding_idx, NULL);
}

KilnTensor *kiln_embedding_sparse(KilnTensor *weight, KilnTensor *index, int64_t padding_idx,
                                  KilnTensor *sparse_rows)
{
    char text[KILN_SHAPE_TEXT];

    if (!weight->poisoned && weight->shape.rank != 2)
        return kiln_graph_poison(weight->graph, "embedding: the weight must be [V, D], got %s",
                                 kiln_shape_text(&weight->shape, text, sizeof(text)));
    return select_rows(weight, 0, index, padding_idx, sparse_rows);
}

/* ---- embedding_bag ------------------------------------------------------------- */

/* Checks the shapes of index and offsets, given by input number, and counts the bags. */
static KilnStatus check_bags(const KilnNode *node, int index_at, int offsets_at, int64_t *ret_bags,
                             KilnError *err)
{
    const KilnShape *index = &node->inputs[index_at]->shape;
    const KilnTensor *offsets = node->inputs[offsets_at];
    char text[KILN_SHAPE_TEXT];

    if (offsets != NULL && offsets->shape.rank != 1)
        return kiln_error_set(err, KILN_E_SHAPE, "offsets must be [B], got %s",
                              kiln_shape_text(&offsets->shape, text, sizeof(text)));
    if (index->rank != (offsets != NULL ? 1 : 2))
        return kiln_error_set(err, KILN_E_SHAPE, "the index must be %s, got %s",
                              offsets != NULL ? "[n] beside offsets" : "[B, L] without offsets",
                              kiln_shape_text(index, text, sizeof(text)));
    *ret_bags = offsets != NULL ? offsets->shape.dim[0] : index->dim[0];
    if (kiln_check_dtype(node, index_at, "the index", KILN_I32, err) < 0)
        return err->status;
    return kiln_check_dtype(node, offsets_at, "offsets", KILN_I32, err);
}

static KilnStatus infer_embedding_bag(KilnNode *node, KilnError *err)
{
    const KilnBagAttrs *attrs = node->attrs;
    const KilnShape *weight = &node->inputs[0]->shape;
    int64_t bags = 0;

    if (kiln_check_rank(node, 0, "the weight", 2, "[V, D]", err) < 0 ||
        check_bags(node, 1, 2, &bags, err) < 0 ||
        kiln_check_sparse_rows(node, 3, weight->dim[0], err) < 0 ||
        kiln_check_shape(node, 4, "the factors", &node->inputs[1]->shape, err) < 0)
        return err->status;
    if (node->inputs[4] != NULL && attrs->mode != KILN_BAG_SUM)
        return kiln_error_set(err, KILN_E_RANGE, "factors need mode sum");
    if (attrs->padding < -1 || attrs->padding >= attrs->rows)
        return kiln_error_set(err, KILN_E_RANGE,
                              "the padding index must be one of the %" PRId64
                              " rows, or -1, got %" PRId64,
                              attrs->rows, attrs->padding);
    kiln_infer_output(node, 0, kiln_node_float(node), &KILN_SHAPE(bags, weight->dim[1]));
    kiln_infer_output(node, 1, KILN_I32, &KILN_SHAPE(bags, weight->dim[1]));
    node->n_outputs = attrs->mode == KILN_BAG_MAX ? 2 : 1;
    return KILN_OK;
}

static void gradient_embedding_bag(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    KilnTensor *winners = node->n_outputs > 1 ? node->outputs[1] : NULL;
    KilnTensor *const *in = node->inputs;
    KilnTensor *inputs[] = {
        dy[0], in[1], in[2], winners, in[3], in[4], sum_in_place(in[0], in[3])
    };
    KilnTensor *others[] = { dy[0], in[1], in[2], in[0] };

    dx[0] = record_gradient(&kiln_op_embedding_bag_grad, inputs, in[0], node->attrs);
    if (in[4] != NULL && in[4]->wants_grad)
        dx[4] = kiln_graph_record(dy[0]->graph, &kiln_op_embedding_bag_factors_grad, others, 4,
                                  node->attrs);
}

static KilnStatus infer_embedding_bag_grad(KilnNode *node, KilnError *err)
{
    const KilnBagAttrs *attrs = node->attrs;
    int64_t bags = 0;

    if (kiln_check_rank(node, 0, "dy", 2, "[B, D]", err) < 0 ||
        check_bags(node, 1, 2, &bags, err) < 0 ||
        kiln_check_sparse_rows(node, 4, attrs->rows, err) < 0 ||
        kiln_check_shape(node, 5, "the factors", &node->inputs[1]->shape, err) < 0)
        return err->status;
    if (attrs->mode == KILN_BAG_MAX && node->inputs[3] == NULL)
        return kiln_error_set(err, KILN_E_MISSING, "the maximum needs the winning rows");
    return infer_gradient(node, &KILN_SHAPE(attrs->rows, node->inputs[0]->shape.dim[1]), err);
}

static KilnStatus infer_embedding_bag_factors_grad(KilnNode *node, KilnError *err)
{
    int64_t bags = 0;

    if (kiln_check_rank(node, 0, "dy", 2, "[B, D]", err) < 0 ||
        kiln_check_rank(node, 3, "the weight", 2, "[V, D]", err) < 0 ||
        check_bags(node, 1, 2, &bags, err) < 0)
        return err->status;
    kiln_infer_output(node, 0, kiln_node_float(node), &node->inputs[1]->shape);
    return KILN_OK;
}

const KilnOp kiln_op_embedding_bag = {
    .name = "embedding_bag",
    .n_inputs = 5,
    .n_outputs = 2,
    .attrs_size = sizeof(KilnBagAttrs),
    .infer = infer_embedding_bag,
    .gradient = gradient_embedding_bag,
};

const KilnOp kiln_op_embedding_bag_grad = {
    .name = "embedding_bag_grad",
    .n_inputs = 7,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnBagAttrs),
    .updates = 1u << 4 | 1u << 6,
    .infer = infer_embedding_bag_grad,
};

const KilnOp kiln_op_embedding_bag_factors_grad = {
    .name = "embedding_bag_factors_grad",
    .n_inputs = 4,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnBagAttrs),
    .infer = infer_embedding_bag_factors_grad,
};

KilnTensor *kiln_embedding_bag(KilnTensor *weight, KilnTensor *index, KilnTensor *offsets,
                               KilnBagMode mode, int64_t padding_idx)
{
    return kiln_embedding_bag_sparse(weight, index, offsets, NULL, mode, padding_idx, NULL);
}

KilnTensor *kiln_embedding_bag_weighted(KilnTensor *weight, KilnTensor *index, KilnTensor *offsets,
                                        KilnTensor *factors, int64_t padding_idx)
{
    return kiln_embedding_bag_sparse(weight, index, offsets, factors, KILN_BAG_SUM, padding_idx,
                                     NULL);
}

KilnTensor *kiln_embedding_bag_sparse(KilnTensor *weight, KilnTensor *index, KilnTensor *offsets,
                                      KilnTensor *factors, KilnBagMode mode, int64_t padding_idx,
                                      KilnTensor *sparse_rows)
{
    KilnTensor *inputs[] = { weight, index, offsets, sparse_rows, factors };
    KilnBagAttrs attrs = { .rows = weight->shape.dim[0], .mode = mode, .padding = padding_idx };

    return kiln_graph_record(weight->graph, &kiln_op_embedding_bag, inputs, 5, &attrs);
}
