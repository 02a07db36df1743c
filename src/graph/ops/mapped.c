/* Shared by elementwise operations: broadcasting and map rules; and the map operation itself. */
#include "graph/ops/mapped.h"

#include <string.h>

#include "graph/op_check.h"
#include "graph/graph.h"

/* ---- Broadcasting -------------------------------------------------------------- */

KilnStatus kiln_broadcast_shapes(const KilnNode *node, KilnShape *ret, KilnError *err)
{
    char first[KILN_SHAPE_TEXT], text[KILN_SHAPE_TEXT];
    KilnShape shape = { .rank = 0 };

    for (int i = 0; i < node->n_inputs; i++) {
        const KilnShape *x = &node->inputs[i]->shape;

        for (; shape.rank < x->rank; shape.rank++) {
            memmove(shape.dim + 1, shape.dim, (KILN_MAX_RANK - 1) * sizeof(shape.dim[0]));
            shape.dim[0] = 1;
        }
        for (int axis = 0; axis < x->rank; axis++) {
            int64_t *dim = &shape.dim[shape.rank - x->rank + axis];

            if (*dim != x->dim[axis] && *dim != 1 && x->dim[axis] != 1)
                return kiln_error_set(
                    err, KILN_E_SHAPE,
                    "%s and %s do not broadcast: from the right, sizes must be equal or 1",
                    kiln_shape_text(&node->inputs[0]->shape, first, sizeof(first)),
                    kiln_shape_text(x, text, sizeof(text)));
            if (*dim == 1)
                *dim = x->dim[axis];
        }
    }
    *ret = shape;
    return KILN_OK;
}

KilnTensor *kiln_sum_to(KilnTensor *dy, const KilnShape *shape)
{
    const int more = dy->shape.rank - shape->rank;
    int axes[KILN_MAX_RANK], n = 0;

    if (kiln_shape_equal(&dy->shape, shape))
        return dy;
    for (int axis = 0; axis < dy->shape.rank; axis++)
        if (axis < more || (shape->dim[axis - more] == 1 && dy->shape.dim[axis] != 1))
            axes[n++] = axis;
    if (n > 0)
        dy = kiln_sum_axes(dy, axes, n, true);
    return kiln_reshape(dy, *shape);
}

/* ---- Shared by mapped operations ------------------------------------------------ */

KilnMapStep kiln_map_step_of(const KilnNode *node, KilnMapCode code)
{
    const KilnNumberAttrs *numbers = node->op->attrs_size == sizeof(*numbers) ? node->attrs : NULL;
    KilnMapStep step = { .code = (int32_t)code };

    step.b = kiln_map_reads(code) > 1 ? 1 : 0;
    step.c = kiln_map_reads(code) > 2 ? 2 : 0;
    if (numbers != NULL) {
        step.p = numbers->p;
        step.q = numbers->q;
    }
    return step;
}

KilnStatus kiln_infer_mapped(KilnNode *node, KilnError *err)
{
    static const char *const names[] = { "the first", "the second", "the third" };
    KilnShape shape;

    for (int i = 0; i < node->n_inputs; i++)
        if (kiln_check_float(node, i, node->n_inputs > 1 ? names[i] : "the tensor", err) < 0)
            return err->status;
    if (kiln_broadcast_shapes(node, &shape, err) < 0)
        return err->status;
    kiln_infer_output(node, 0, kiln_node_float(node), &shape);
    return KILN_OK;
}

KilnTensor *kiln_record_mapped(const KilnOp *op, KilnTensor *a, KilnTensor *b, KilnTensor *c,
                               double p, double q)
{
    const KilnNumberAttrs attrs = { .p = p, .q = q };
    KilnTensor *inputs[] = { a, b, c };

    return kiln_graph_record(a->graph, op, inputs, op->n_inputs,
                             op->attrs_size > 0 ? &attrs : NULL);
}

/* ---- map ---------------------------------------------------------------------------- */

static KilnStatus infer_map(KilnNode *node, KilnError *err)
{
    KilnShape shape;

    if (kiln_broadcast_shapes(node, &shape, err) < 0)
        return err->status;
    for (int i = 0; i < node->n_outputs; i++)
        kiln_infer_output(node, i, kiln_node_float(node), &shape);
    return KILN_OK;
}

/* Fusion makes maps with up to KILN_MAP_RESULTS outputs; recorded directly, a map has one. */
const KilnOp kiln_op_map = {
    .name = "map",
    .n_inputs = KILN_MAX_INPUTS,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnMap),
    .infer = infer_map,
    .autocast = KILN_AUTOCAST_FOLLOW,
    .bf16_inputs = ~0u,
    .bf16_outputs = ~0u,
};
