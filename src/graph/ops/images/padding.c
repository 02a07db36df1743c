/* Padding with the tensor's own edge values, one axis at a time; the order of axes does not matter.
 */
#include "graph/ops/images/padding.h"

#include <inttypes.h>

#include "graph/op_check.h"
#include "graph/graph.h"

int64_t kiln_pad_source(const KilnPadAttrs *attrs, int64_t size, int64_t i)
{
    const int64_t at = i - attrs->before;

    if (attrs->mode == KILN_PAD_REFLECT)
        return at < 0 ? -at : at < size ? at : 2 * (size - 1) - at;
    return at < 0 ? 0 : at < size ? at : size - 1;
}

static KilnStatus infer_pad_axis(KilnNode *node, KilnError *err)
{
    const KilnPadAttrs *attrs = node->attrs;
    const KilnTensor *x = node->inputs[0];
    KilnShape shape = x->shape;
    int64_t *size = &shape.dim[attrs->axis];
    const int64_t most = attrs->mode == KILN_PAD_REFLECT ? *size - 1 : INT64_MAX;

    if (attrs->before < 0 || attrs->after < 0 || attrs->before > most || attrs->after > most)
        return kiln_error_set(
            err, KILN_E_SHAPE,
            "%" PRId64 " before and %" PRId64 " after axis %" PRId64 " of size %" PRId64 "; %s",
            attrs->before, attrs->after, attrs->axis, *size,
            attrs->mode == KILN_PAD_REFLECT ? "from 0 to one less than the size can be reflected"
                                            : "both must be at least 0");
    if (__builtin_add_overflow(*size, attrs->before, size) ||
        __builtin_add_overflow(*size, attrs->after, size))
        return kiln_error_set(err, KILN_E_SHAPE, "the result is too large");
    kiln_infer_output(node, 0, x->dtype, &shape);
    return KILN_OK;
}

static void gradient_pad_axis(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    dx[0] = kiln_graph_record(dy[0]->graph, &kiln_op_pad_axis_grad, dy, 1, node->attrs);
}

static KilnStatus infer_pad_axis_grad(KilnNode *node, KilnError *err)
{
    const KilnPadAttrs *attrs = node->attrs;
    KilnShape shape = node->inputs[0]->shape;

    if (kiln_check_float(node, 0, "dy", err) < 0)
        return err->status;
    shape.dim[attrs->axis] -= attrs->before + attrs->after;
    kiln_infer_output(node, 0, kiln_node_float(node), &shape);
    return KILN_OK;
}

const KilnOp kiln_op_pad_axis = {
    .name = "pad_axis",
    .n_inputs = 1,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnPadAttrs),
    .infer = infer_pad_axis,
    .gradient = gradient_pad_axis,
    .autocast = KILN_AUTOCAST_FOLLOW,
    .bf16_inputs = 1,
    .bf16_outputs = 1,
};

const KilnOp kiln_op_pad_axis_grad = {
    .name = "pad_axis_grad",
    .n_inputs = 1,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnPadAttrs),
    .infer = infer_pad_axis_grad,
    .autocast = KILN_AUTOCAST_FOLLOW,
    .bf16_inputs = 1,
    .bf16_outputs = 1,
};

static KilnTensor *pad_axes(KilnTensor *x, const int64_t *before, const int64_t *after,
                            KilnPadMode mode)
{
    if (x->poisoned)
        return x;
    const int rank = x->shape.rank;
    for (int axis = 0; axis < rank; axis++) {
        const KilnPadAttrs attrs = {
            .axis = axis, .before = before[axis], .after = after[axis], .mode = mode
        };

        if (before[axis] != 0 || after[axis] != 0)
            x = kiln_graph_record(x->graph, &kiln_op_pad_axis, &x, 1, &attrs);
    }
    return x;
}

KilnTensor *kiln_pad_reflect(KilnTensor *x, const int64_t *before, const int64_t *after)
{
    return pad_axes(x, before, after, KILN_PAD_REFLECT);
}

KilnTensor *kiln_pad_replicate(KilnTensor *x, const int64_t *before, const int64_t *after)
{
    return pad_axes(x, before, after, KILN_PAD_REPLICATE);
}
