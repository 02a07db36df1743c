/* Rotary position embedding: rotates pairs of elements by an angle that grows with the position. */
#include <inttypes.h>

#include "graph/op_check.h"
#include "graph/graph.h"

static KilnStatus infer_rotary(KilnNode *node, KilnError *err)
{
    const KilnRotaryAttrs *attrs = node->attrs;
    const KilnShape *x = &node->inputs[0]->shape;

    if (kiln_check_rank(node, 0, "x", 4, attrs->heads_first != 0 ? "[B, H, T, D]" : "[B, T, H, D]",
                        err) < 0)
        return err->status;
    if (x->dim[3] % 2 != 0)
        return kiln_error_set(err, KILN_E_SHAPE, "the width of a head must be even, got %" PRId64,
                              x->dim[3]);
    if (!(attrs->base > 0.0))
        return kiln_error_set(err, KILN_E_RANGE, "base must be more than 0, got %g", attrs->base);
    kiln_infer_like(node, 0);
    return node->n_inputs > 1 ? kiln_check_position(node, 1, x->dim[0], err) : KILN_OK;
}

static void gradient_rotary(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    KilnRotaryAttrs attrs = *(const KilnRotaryAttrs *)node->attrs;

    KilnTensor *inputs[] = { dy[0], node->inputs[1] };

    attrs.back = attrs.back == 0;
    dx[0] = kiln_graph_record(dy[0]->graph, &kiln_op_rotary, inputs, node->n_inputs, &attrs);
}

const KilnOp kiln_op_rotary = {
    .name = "rotary",
    .n_inputs = 2,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnRotaryAttrs),
    .infer = infer_rotary,
    .gradient = gradient_rotary,
    .autocast = KILN_AUTOCAST_FOLLOW,
};

static KilnTensor *record_rotary(KilnTensor *x, KilnTensor *position, KilnRotary rotary)
{
    KilnTensor *inputs[] = { x, position };
    const KilnRotaryAttrs attrs = {
        .base = rotary.base != 0.0 ? rotary.base : 10000.0,
        .first = rotary.first,
        .interleaved = rotary.interleaved,
        .heads_first = rotary.heads_first,
    };

    return kiln_graph_record(x->graph, &kiln_op_rotary, inputs, position != NULL ? 2 : 1, &attrs);
}

KilnTensor *kiln_rotary(KilnTensor *x, KilnRotary rotary)
{
    return record_rotary(x, NULL, rotary);
}

KilnTensor *kiln_rotary_at(KilnTensor *x, KilnTensor *position, KilnRotary rotary)
{
    return record_rotary(x, position, rotary);
}
