/* Keys and values of decoding step by step: written at a position that is data, and masked by it.
 */
#include "graph/ops/sequence/kv_cache.h"

#include <inttypes.h>

#include "graph/graph.h"
#include "graph/op_check.h"

/* x has the cache's shape but for the axis, where it is not longer. */
static KilnStatus check_rows(const KilnNode *node, int64_t axis, KilnError *err)
{
    const KilnShape *cache = &node->inputs[0]->shape, *x = &node->inputs[1]->shape;
    char cache_text[KILN_SHAPE_TEXT], x_text[KILN_SHAPE_TEXT];
    bool fits = cache->rank == x->rank && axis >= 1 && axis < cache->rank;

    for (int i = 0; i < cache->rank && fits; i++)
        fits = i == axis ? x->dim[i] <= cache->dim[i] : x->dim[i] == cache->dim[i];
    if (fits)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_SHAPE,
                          "rows along axis %" PRId64 ", which is not the first, must fit the "
                          "cache: %s into %s",
                          axis, kiln_shape_text(x, x_text, sizeof(x_text)),
                          kiln_shape_text(cache, cache_text, sizeof(cache_text)));
}

static KilnStatus infer_cache_write(KilnNode *node, KilnError *err)
{
    const KilnCacheAttrs *attrs = node->attrs;

    if (kiln_check_float(node, 0, "the cache", err) < 0 ||
        kiln_check_float(node, 1, "what is written", err) < 0 ||
        check_rows(node, attrs->axis, err) < 0)
        return err->status;
    return kiln_check_position(node, 2, node->inputs[0]->shape.dim[0], err);
}

const KilnOp kiln_op_cache_write = {
    .name = "cache_write",
    .n_inputs = 3,
    .attrs_size = sizeof(KilnCacheAttrs),
    .updates = 1u << 0,
    .infer = infer_cache_write,
    .bf16_inputs = 1u << 0 | 1u << 1,
};

void kiln_cache_write(KilnTensor *cache, KilnTensor *x, KilnTensor *position, int axis)
{
    const KilnCacheAttrs attrs = { .axis = axis < 0 ? axis + cache->shape.rank : axis };
    KilnTensor *inputs[] = { cache, x, position };

    kiln_graph_record(cache->graph, &kiln_op_cache_write, inputs, 3, &attrs);
}

KilnTensor *kiln_cache_mask(KilnTensor *position, int64_t queries, int64_t keys)
{
    KilnGraph *graph = position->graph;

    if (position->poisoned)
        return graph->poison;
    KilnTensor *first = kiln_reshape(kiln_to_float(position), KILN_SHAPE(-1, 1, 1, 1));
    KilnTensor *query = kiln_reshape(kiln_arange(graph, graph->float_type, 0.0, 1.0, queries),
                                     KILN_SHAPE(queries, 1));
    KilnTensor *key = kiln_arange(graph, graph->float_type, 0.0, 1.0, keys);

    return kiln_cast(kiln_le(key, kiln_add(first, query)), KILN_U8);
}
