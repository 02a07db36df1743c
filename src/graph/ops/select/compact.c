/* Results whose size is data: nonzero, masked_select, unique. */
#include "graph/ops/select/compact.h"

#include "graph/graph.h"
#include "graph/op_check.h"

static const KilnShape one = { .rank = 1, .dim = { 1 } };

/* The output i of the node that gave `first`. */
static KilnTensor *output_of(KilnTensor *first, int i)
{
    return first->poisoned ? first : first->node->outputs[i];
}

static KilnTensor *flat(KilnTensor *x)
{
    return kiln_reshape(x, KILN_SHAPE(-1));
}

/* ---- nonzero ------------------------------------------------------------------------ */

static KilnStatus infer_nonzero(KilnNode *node, KilnError *err)
{
    const KilnNonzeroAttrs *attrs = node->attrs;

    (void)err;
    kiln_infer_output(node, 0, KILN_I32, &KILN_SHAPE(attrs->limit));
    kiln_infer_output(node, 1, KILN_I32, &one);
    return KILN_OK;
}

const KilnOp kiln_op_nonzero = {
    .name = "nonzero",
    .n_inputs = 1,
    .n_outputs = 2,
    .attrs_size = sizeof(KilnNonzeroAttrs),
    .infer = infer_nonzero,
};

static KilnTensor *record_nonzero(KilnTensor *x, int64_t limit, int64_t fill)
{
    const KilnNonzeroAttrs attrs = { .limit = limit, .fill = fill };

    return kiln_graph_record(x->graph, &kiln_op_nonzero, &x, 1, &attrs);
}

KilnPlaces kiln_nonzero(KilnTensor *x, int64_t limit)
{
    KilnTensor *index = record_nonzero(x, limit, -1);

    return (KilnPlaces) { index, output_of(index, 1) };
}

/* Unused places read element 0, and then become 0, so that its gradient is not touched. */
KilnPicked kiln_masked_select(KilnTensor *x, KilnTensor *mask, int64_t limit)
{
    KilnGraph *graph = x->graph;
    char want[KILN_SHAPE_TEXT], got[KILN_SHAPE_TEXT];

    if (!x->poisoned && !mask->poisoned && !kiln_shape_equal(&x->shape, &mask->shape)) {
        KilnTensor *poison =
            kiln_graph_poison(graph, "masked_select: the mask must be %s like the tensor, got %s",
                              kiln_shape_text(&x->shape, want, sizeof(want)),
                              kiln_shape_text(&mask->shape, got, sizeof(got)));

        return (KilnPicked) { poison, poison };
    }
    KilnTensor *index = record_nonzero(mask, limit, 0), *count = output_of(index, 1);
    KilnTensor *place = kiln_arange(graph, graph->float_type, 0.0, 1.0, limit);
    KilnTensor *used = kiln_lt(place, kiln_to_float(count));
    KilnTensor *zero = kiln_graph_full(graph, KILN_SCALAR, 0.0);

    return (KilnPicked) { kiln_where(used, kiln_gather(flat(x), 0, index), zero), count };
}

/* ---- unique -------------------------------------------------------------------------- */

static KilnStatus infer_unique(KilnNode *node, KilnError *err)
{
    const KilnTensor *values = node->inputs[0];

    (void)err;
    kiln_infer_output(node, 0, values->dtype, &values->shape);
    kiln_infer_output(node, 1, KILN_I32, &values->shape);
    kiln_infer_output(node, 2, KILN_I32, &values->shape);
    kiln_infer_output(node, 3, KILN_I32, &one);
    return KILN_OK;
}

const KilnOp kiln_op_unique = {
    .name = "unique",
    .n_inputs = 2,
    .n_outputs = 4,
    .infer = infer_unique,
};

KilnUnique kiln_unique(KilnTensor *x)
{
    const KilnSorted sorted = kiln_sort(flat(x), 0, false);
    KilnTensor *inputs[] = { sorted.values, sorted.indices };
    KilnTensor *values = kiln_graph_record(x->graph, &kiln_op_unique, inputs, 2, NULL);

    return (KilnUnique) {
        .values = values,
        .inverse = values->poisoned ? values : kiln_reshape(output_of(values, 1), x->shape),
        .counts = output_of(values, 2),
        .count = output_of(values, 3),
    };
}
