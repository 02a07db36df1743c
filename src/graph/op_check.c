/* Checks that the operations share, and their messages. */
#include "graph/op_check.h"

#include <inttypes.h>

#include "graph/graph.h"
#include "graph/ops/sequence/embedding.h"

KilnDType kiln_node_float(const KilnNode *node)
{
    const KilnTensor *any = node->n_outputs > 0 ? node->outputs[0] : node->inputs[0];

    return any->graph->float_type;
}

KilnStatus kiln_check_dtype(const KilnNode *node, int i, const char *name, KilnDType dtype,
                            KilnError *err)
{
    const KilnTensor *x = node->inputs[i];

    if (x == NULL || x->dtype == dtype)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_SHAPE, "%s must be %s, got %s", name, kiln_dtype_name(dtype),
                          kiln_dtype_name(x->dtype));
}

KilnStatus kiln_check_float(const KilnNode *node, int i, const char *name, KilnError *err)
{
    return kiln_check_dtype(node, i, name, kiln_node_float(node), err);
}

KilnStatus kiln_check_rank(const KilnNode *node, int i, const char *name, int rank,
                           const char *form, KilnError *err)
{
    const KilnTensor *x = node->inputs[i];
    char text[KILN_SHAPE_TEXT];

    if (x != NULL && x->shape.rank != rank)
        return kiln_error_set(err, KILN_E_SHAPE, "%s must be %s, got %s", name, form,
                              kiln_shape_text(&x->shape, text, sizeof(text)));
    return kiln_check_float(node, i, name, err);
}

KilnStatus kiln_check_shape(const KilnNode *node, int i, const char *name, const KilnShape *shape,
                            KilnError *err)
{
    const KilnTensor *x = node->inputs[i];
    char want[KILN_SHAPE_TEXT], got[KILN_SHAPE_TEXT];

    if (x != NULL && !kiln_shape_equal(&x->shape, shape))
        return kiln_error_set(err, KILN_E_SHAPE, "%s must be %s, got %s", name,
                              kiln_shape_text(shape, want, sizeof(want)),
                              kiln_shape_text(&x->shape, got, sizeof(got)));
    return kiln_check_float(node, i, name, err);
}

KilnStatus kiln_check_rows(const KilnNode *node, int i, const char *name, KilnError *err)
{
    const KilnTensor *x = node->inputs[i];

    if (x != NULL && x->shape.rank < 1)
        return kiln_error_set(err, KILN_E_SHAPE, "%s must have at least one axis, got a scalar",
                              name);
    return kiln_check_float(node, i, name, err);
}

KilnStatus kiln_check_position(const KilnNode *node, int i, int64_t batch, KilnError *err)
{
    char text[KILN_SHAPE_TEXT];
    const KilnTensor *position = node->inputs[i];

    if (kiln_check_dtype(node, i, "the position", KILN_I32, err) < 0)
        return err->status;
    if (kiln_shape_equal(&position->shape, &KILN_SHAPE(1)) ||
        kiln_shape_equal(&position->shape, &KILN_SHAPE(batch)))
        return KILN_OK;
    return kiln_error_set(err, KILN_E_SHAPE, "the position must be [1] or [%" PRId64 "], got %s",
                          batch, kiln_shape_text(&position->shape, text, sizeof(text)));
}

void kiln_infer_output(KilnNode *node, int i, KilnDType dtype, const KilnShape *shape)
{
    node->outputs[i]->dtype = dtype;
    kiln_shape_store(&node->outputs[i]->shape, shape);
}

void kiln_infer_like(KilnNode *node, int i)
{
    kiln_infer_output(node, 0, kiln_node_float(node), &node->inputs[i]->shape);
}

void kiln_shape_store(KilnShape *attr, const KilnShape *shape)
{
    attr->rank = shape->rank;
    for (int i = 0; i < KILN_MAX_RANK; i++)
        attr->dim[i] = i < shape->rank ? shape->dim[i] : 0;
}

KilnStatus kiln_check_sparse_rows(const KilnNode *node, int i, int64_t rows, KilnError *err)
{
    const KilnTensor *sparse_rows = node->inputs[i];
    char text[KILN_SHAPE_TEXT];

    if (sparse_rows == NULL)
        return KILN_OK;
    if (sparse_rows->shape.rank != 1 || sparse_rows->shape.dim[0] != kiln_sparse_rows_words(rows))
        return kiln_error_set(
            err, KILN_E_SHAPE, "the list of sparse rows must be [%" PRId64 "], got %s",
            kiln_sparse_rows_words(rows), kiln_shape_text(&sparse_rows->shape, text, sizeof(text)));
    return kiln_check_dtype(node, i, "the list of sparse rows", KILN_I32, err);
}
