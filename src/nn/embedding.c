/* The embedding layers. */
#include "graph/graph.h"
#include "graph/lookup_factors.h"
#include "graph/sparse_rows.h"
#include "nn/layer.h"
#include "nn/params.h"

KilnStatus kiln_nn_embedding_init(KilnEmbedding *layer, const KilnScope *scope, const char *name,
                                  int64_t rows, int64_t width, int64_t padding_idx, KilnError *err)
{
    const KilnScope own = kiln_scope(scope, "%s", name);
    const KilnInit init = { .kind = KILN_INIT_NORMAL, .a = 1.0 };

    *layer = (KilnEmbedding) { .padding_idx = padding_idx };
    kiln_layer_path(layer->path, &own);
    if (padding_idx < -1 || padding_idx >= rows)
        return kiln_error_set(err, KILN_E_RANGE,
                              "%s: padding_idx must be from 0 to %lld, or -1 for none, got %lld",
                              own.path, (long long)rows - 1, (long long)padding_idx);
    KilnStatus status = kiln_param_new(&own, "weight", KILN_SHAPE(rows, width), init,
                                       &layer->weight, err);
    if (status < 0)
        return status;
    if (padding_idx >= 0) {
        layer->weight->zero_first = padding_idx * width;
        layer->weight->zero_count = width;
    }
    kiln_param_add_sparse_rows(layer->weight, rows);
    return KILN_OK;
}

static KilnTensor *sparse_rows_of(const KilnEmbedding *layer, KilnGraph *graph)
{
    return kiln_graph_variable_at(
        graph, KILN_I32, KILN_SHAPE(kiln_param_sparse_rows_words(layer->weight)),
        kiln_param_sparse_rows_location(layer->weight), false, (KilnLocation) { 0 });
}

KilnTensor *kiln_nn_embedding(const KilnEmbedding *layer, KilnTensor *index)
{
    KilnGraph *graph = kiln_tensor_graph(index);
    const char *before = kiln_layer_enter(index, layer->path);
    KilnTensor *y = kiln_embedding_sparse(kiln_param_tensor(layer->weight, graph), index,
                                          layer->padding_idx, sparse_rows_of(layer, graph));
    KilnTensor *factors = kiln_lookup_factors(index);

    if (factors != NULL)
        y = kiln_mul(y, kiln_unsqueeze(factors, -1));
    kiln_graph_layer(graph, before);
    return y;
}

/* One over the number of ids that count in each bag, [bags, 1] or a scalar. */
static KilnTensor *shares(const KilnEmbedding *layer, KilnTensor *index)
{
    KilnGraph *graph = kiln_tensor_graph(index);
    KilnTensor *ids = kiln_to_float(index);
    const double length = (double)kiln_tensor_dim(index, 1);
    KilnTensor *padding = kiln_arange(graph, kiln_tensor_dtype(ids), (double)layer->padding_idx,
                                      1.0, 1);
    KilnTensor *padded = kiln_sum_axes(kiln_eq(ids, padding), (const int[]) { 1 }, 1, true);
    KilnTensor *count = kiln_sub(kiln_graph_scalar(graph, length), padded);

    return kiln_div(kiln_graph_scalar(graph, 1.0), kiln_clamp(count, 1.0, length));
}

/* The factors of a bag's sum that make it the `mode` of vectors with lookup factors. */
static KilnTensor *bag_factors(const KilnEmbedding *layer, KilnTensor *index, KilnTensor *lookup,
                               KilnTensor *factors, KilnBagMode mode)
{
    if (mode == KILN_BAG_MEAN)
        return kiln_mul(lookup, shares(layer, index));
    return factors != NULL ? kiln_mul(lookup, factors) : lookup;
}

/* `factors` may be NULL. */
static KilnTensor *bags(const KilnEmbedding *layer, KilnTensor *index, KilnTensor *offsets,
                        KilnTensor *factors, KilnBagMode mode)
{
    KilnGraph *graph = kiln_tensor_graph(index);
    const char *before = kiln_layer_enter(index, layer->path);
    KilnTensor *lookup = offsets == NULL && mode != KILN_BAG_MAX ? kiln_lookup_factors(index)
                                                                 : NULL;

    if (lookup != NULL) {
        factors = bag_factors(layer, index, lookup, factors, mode);
        mode = KILN_BAG_SUM;
    }
    KilnTensor *y = kiln_embedding_bag_sparse(kiln_param_tensor(layer->weight, graph), index,
                                              offsets, factors, mode, layer->padding_idx,
                                              sparse_rows_of(layer, graph));

    kiln_graph_layer(graph, before);
    return y;
}

KilnTensor *kiln_nn_embedding_bag(const KilnEmbedding *layer, KilnTensor *index,
                                  KilnTensor *offsets, KilnBagMode mode)
{
    return bags(layer, index, offsets, NULL, mode);
}

KilnTensor *kiln_nn_embedding_bag_weighted(const KilnEmbedding *layer, KilnTensor *index,
                                           KilnTensor *offsets, KilnTensor *factors)
{
    return bags(layer, index, offsets, factors, KILN_BAG_SUM);
}
