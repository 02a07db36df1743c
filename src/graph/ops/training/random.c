/* Random numbers in the graph: uniform, normal, bernoulli. */
#include "graph/ops/training/random.h"

#include <string.h>

#include "graph/graph.h"
#include "graph/op_check.h"

static KilnStatus infer_random(KilnNode *node, KilnError *err)
{
    const KilnRandomAttrs *attrs = node->attrs;
    const KilnTensor *key = node->inputs[0];
    char text[KILN_SHAPE_TEXT];

    if (kiln_check_dtype(node, 0, "key", KILN_I32, err) < 0)
        return err->status;
    if (!kiln_shape_equal(&key->shape, &KILN_SHAPE(2)))
        return kiln_error_set(err, KILN_E_SHAPE, "key must be [2], got %s",
                              kiln_shape_text(&key->shape, text, sizeof(text)));
    kiln_infer_output(node, 0, kiln_node_float(node), &attrs->shape);
    return KILN_OK;
}

const KilnOp kiln_op_random = {
    .name = "random",
    .n_inputs = 1,
    .n_outputs = 1,
    .attrs_size = sizeof(KilnRandomAttrs),
    .infer = infer_random,
};

static KilnTensor *record_random(KilnShape shape, bool normal, KilnTensor *key, int64_t stream)
{
    KilnRandomAttrs attrs;

    memset(&attrs, 0, sizeof(attrs));
    attrs.stream = stream;
    attrs.normal = normal;
    kiln_shape_store(&attrs.shape, &shape);
    return kiln_graph_record(key->graph, &kiln_op_random, &key, 1, &attrs);
}

KilnTensor *kiln_uniform(KilnShape shape, double low, double high, KilnTensor *key, int64_t stream)
{
    KilnTensor *y = record_random(shape, false, key, stream);

    return low == 0.0 && high == 1.0 ? y : kiln_shift(kiln_scale(y, high - low), low);
}

KilnTensor *kiln_normal(KilnShape shape, double mean, double std, KilnTensor *key, int64_t stream)
{
    KilnTensor *y = record_random(shape, true, key, stream);

    return mean == 0.0 && std == 1.0 ? y : kiln_shift(kiln_scale(y, std), mean);
}

KilnTensor *kiln_bernoulli(KilnTensor *p, KilnTensor *key, int64_t stream)
{
    return kiln_lt(kiln_uniform(p->shape, 0.0, 1.0, key, stream), p);
}
