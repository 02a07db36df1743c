/* Conversion between types, as PyTorch's Tensor.to(dtype). The precision pass inserts it where
 * producer and reader differ. */
#include "graph/op_check.h"
#include "graph/graph.h"

static KilnStatus infer_cast(KilnNode *node, KilnError *err)
{
    const KilnCastAttrs *attrs = node->attrs;

    (void)err;
    kiln_infer_output(node, 0, (KilnDType)attrs->dtype, &node->inputs[0]->shape);
    return KILN_OK;
}

/* Gradients have the graph's float type, whatever type the values have. */
static void gradient_cast(KilnNode *node, KilnTensor *const *dy, KilnTensor **dx)
{
    (void)node;
    dx[0] = dy[0];
}

const KilnOp kiln_op_cast = {
    .name = "cast",
    .n_inputs = 1,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnCastAttrs),
    .infer = infer_cast,
    .gradient = gradient_cast,
};

KilnTensor *kiln_cast(KilnTensor *x, KilnDType dtype)
{
    const KilnCastAttrs attrs = { .dtype = (int32_t)dtype };

    return kiln_graph_record(x->graph, &kiln_op_cast, &x, 1, &attrs);
}

/* ---- store ---------------------------------------------------------------------- */

static KilnStatus infer_store(KilnNode *node, KilnError *err)
{
    const KilnShape *want = &node->inputs[0]->shape, *got = &node->inputs[1]->shape;
    char want_text[KILN_SHAPE_TEXT], got_text[KILN_SHAPE_TEXT];

    if (kiln_shape_equal(want, got))
        return KILN_OK;
    return kiln_error_set(err, KILN_E_SHAPE, "the value must be %s like the variable, got %s",
                          kiln_shape_text(want, want_text, sizeof(want_text)),
                          kiln_shape_text(got, got_text, sizeof(got_text)));
}

const KilnOp kiln_op_store = {
    .name = "store",
    .n_inputs = 2,
    .updates = 1u << 0,
    .infer = infer_store,
};

void kiln_store(KilnTensor *variable, KilnTensor *x)
{
    kiln_graph_record(variable->graph, &kiln_op_store, (KilnTensor *[]) { variable, x }, 2, NULL);
}
