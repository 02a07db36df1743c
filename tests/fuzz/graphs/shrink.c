#include "tests/fuzz/graphs/shrink.h"

#include <string.h>

#include "graph/passes/pass_list.h"

/* The graph being shrunk and the difference that it shows. */
typedef struct Shrink {
    Spec *best;
    Difference *difference;
    bool progress;
} Shrink;

/* Whether an input of the item is a value that nothing makes any more. */
static bool misses_input(const Item *item, KilnTensor *const *values)
{
    for (int k = 0; k < SPEC_INPUTS && item->row != NULL; k++)
        if (item->in[k] >= 0 && values[item->in[k]] == NULL)
            return true;
    return false;
}

/* Whether it can be recorded. */
static bool is_valid(const Spec *spec)
{
    KilnTensor *values[SPEC_ITEMS * SPEC_OUTPUTS] = { NULL };
    KilnGraph *graph = execute_shapes_graph();
    KilnError err = { 0 };

    kiln_graph_begin(graph);
    for (int i = 0; i < spec->n; i++) {
        if (misses_input(&spec->items[i], values))
            return false;
        execute_item(graph, spec, i, NULL, values);
    }
    for (int o = 0; o < spec->n_outputs; o++)
        if (values[spec->outputs[o]] == NULL)
            return false;
    return kiln_graph_check(graph, &err) == KILN_OK;
}

/* Takes the candidate if it still differs. */
static bool try(Shrink *shrink, const Spec *candidate, const Way *way)
{
    Difference difference = { .way = *way };

    if (!is_valid(candidate) || !check_differs(candidate, way, 1, &difference))
        return false;
    *shrink->best = *candidate;
    *shrink->difference = difference;
    shrink->progress = true;
    return true;
}

static bool try_spec(Shrink *shrink, const Spec *candidate)
{
    return try(shrink, candidate, &shrink->difference->way);
}

static void fewer_outputs(Shrink *shrink)
{
    for (int o = shrink->best->n_outputs - 1; o >= 0 && shrink->best->n_outputs > 0; o--) {
        Spec candidate = *shrink->best;

        candidate.n_outputs--;
        memmove(&candidate.outputs[o], &candidate.outputs[o + 1],
                (size_t)(candidate.n_outputs - o) * sizeof(int));
        spec_remove_unused(&candidate);
        try_spec(shrink, &candidate);
    }
}

/* Inputs of item i as outputs in its place. */
static void without_item(Shrink *shrink, int i)
{
    Spec candidate = *shrink->best;
    int n = 0;

    for (int o = 0; o < candidate.n_outputs; o++)
        if (candidate.outputs[o] / SPEC_OUTPUTS != i)
            candidate.outputs[n++] = candidate.outputs[o];
    for (int k = 0; k < SPEC_INPUTS && n < (int)KILN_COUNT(candidate.outputs); k++) {
        const int value = candidate.items[i].in[k];
        if (value >= 0 && candidate.items[value / SPEC_OUTPUTS].row != NULL)
            candidate.outputs[n++] = value;
    }
    candidate.n_outputs = n;
    for (int k = i + 1; k < candidate.n; k++)
        for (int j = 0; j < SPEC_INPUTS && candidate.items[k].row != NULL; j++)
            if (candidate.items[k].in[j] / SPEC_OUTPUTS == i && candidate.items[k].in[j] >= 0)
                return;
    for (int k = 0; k < SPEC_INPUTS; k++)
        candidate.items[i].in[k] = -1;
    spec_remove_unused(&candidate);
    if (n > 0)
        try_spec(shrink, &candidate);
}

/* A leaf of the same shape in place of a result. */
static void leaf_for_item(Shrink *shrink, int i, LeafKind kind)
{
    Spec candidate = *shrink->best;
    KilnTensor *values[SPEC_ITEMS * SPEC_OUTPUTS] = { NULL };
    KilnGraph *graph = execute_shapes_graph();

    kiln_graph_begin(graph);
    for (int k = 0; k <= i; k++)
        execute_item(graph, &candidate, k, NULL, values);
    const KilnTensor *y = values[i * SPEC_OUTPUTS];
    if (y == NULL || !spec_is_float(kiln_tensor_dtype(y)))
        return;
    candidate.items[i] = (Item) { .leaf = { .kind = kind,
                                            .values = VALUES_NORMAL,
                                            .shape = *kiln_tensor_shape(y),
                                            .seed = (uint64_t)i + 1 } };
    spec_remove_unused(&candidate);
    try_spec(shrink, &candidate);
}

static void fewer_items(Shrink *shrink)
{
    for (int i = shrink->best->n - 1; i >= 0; i--) {
        if (i < shrink->best->n && shrink->best->items[i].row != NULL)
            leaf_for_item(shrink, i, LEAF_INPUT);
        if (i < shrink->best->n && shrink->best->items[i].row != NULL)
            leaf_for_item(shrink, i, LEAF_PARAM);
        if (i < shrink->best->n && shrink->best->items[i].row != NULL)
            without_item(shrink, i);
    }
}

/* Optional inputs left out. */
static void fewer_inputs(Shrink *shrink)
{
    for (int i = 0; i < shrink->best->n; i++) {
        for (int k = 0; k < SPEC_INPUTS && i < shrink->best->n; k++) {
            Spec candidate = *shrink->best;
            if (candidate.items[i].row == NULL || candidate.items[i].in[k] < 0 ||
                (candidate.items[i].row->optional >> k & 1) == 0)
                continue;
            candidate.items[i].in[k] = -1;
            spec_remove_unused(&candidate);
            try_spec(shrink, &candidate);
        }
    }
}

/* One size, wherever it is among the shapes of leaves and the attributes, becomes another. */
static void resized(Shrink *shrink, int64_t from, int64_t to)
{
    Spec candidate = *shrink->best;

    for (int i = 0; i < candidate.n; i++) {
        Item *item = &candidate.items[i];
        for (int d = 0; item->row == NULL && d < item->leaf.shape.rank; d++)
            if (item->leaf.shape.dim[d] == from)
                item->leaf.shape.dim[d] = to;
        if (item->row == NULL && item->leaf.limit == from && item->leaf.low < to)
            item->leaf.limit = to;
        for (int k = 0; item->row != NULL && k < SPEC_ARGS; k++)
            if (item->arg[k] == from && from > 3)
                item->arg[k] = to;
    }
    try_spec(shrink, &candidate);
}

static void smaller_sizes(Shrink *shrink)
{
    for (int i = 0; i < shrink->best->n; i++) {
        for (int d = 0; d < shrink->best->items[i].leaf.shape.rank; d++) {
            for (int step = 0; step < 3; step++) {
                const int64_t size = shrink->best->items[i].leaf.shape.dim[d];
                const int64_t to = step == 0 ? 1 : step == 1 ? size / 2 : size - 1;
                if (shrink->best->items[i].row == NULL && size > 1 && to > 0)
                    resized(shrink, size, to);
            }
        }
    }
}

/* Ordinary values, aligned. */
static void simpler_leaves(Shrink *shrink)
{
    for (int i = 0; i < shrink->best->n; i++) {
        Spec candidate = *shrink->best;
        Leaf *leaf = &candidate.items[i].leaf;

        if (candidate.items[i].row != NULL)
            continue;
        if (leaf->unaligned) {
            leaf->unaligned = false;
            try_spec(shrink, &candidate);
        }
        if (leaf_is_float(leaf) && leaf->values > VALUES_NORMAL) {
            candidate = *shrink->best;
            leaf->values = VALUES_NORMAL;
            try_spec(shrink, &candidate);
        }
        if (leaf->kind == LEAF_PARAM) {
            candidate = *shrink->best;
            leaf->kind = LEAF_INPUT;
            try_spec(shrink, &candidate);
        }
    }
}

static void simpler_options(Shrink *shrink)
{
    Spec candidate = *shrink->best;

    candidate.backward = false;
    if (shrink->best->backward)
        try_spec(shrink, &candidate);
    candidate = *shrink->best;
    candidate.accumulates = false;
    if (shrink->best->accumulates)
        try_spec(shrink, &candidate);
    candidate = *shrink->best;
    candidate.block[0] = candidate.block[1] = 0;
    if (shrink->best->block[1] > 0)
        try_spec(shrink, &candidate);
    candidate = *shrink->best;
    candidate.precision = KILN_PRECISION_32;
    if (shrink->best->precision != KILN_PRECISION_32)
        try_spec(shrink, &candidate);
}

/* One thread, and as few passes as there must be. */
static void simpler_way(Shrink *shrink)
{
    Way way = shrink->difference->way;

    way.threads = 1;
    if (shrink->difference->way.threads > 1)
        try(shrink, shrink->best, &way);
    for (int pass = 0; pass <= KILN_PASS_share_memory; pass++) {
        way = shrink->difference->way;
        way.passes_off |= 1u << pass;
        if (pass != KILN_PASS_precision && way.passes_off != shrink->difference->way.passes_off)
            try(shrink, shrink->best, &way);
    }
}

void shrink(Spec *spec, Difference *difference)
{
    Shrink state = { .best = spec, .difference = difference, .progress = true };

    for (int round = 0; round < 20 && state.progress; round++) {
        state.progress = false;
        fewer_outputs(&state);
        fewer_items(&state);
        fewer_inputs(&state);
        simpler_options(&state);
        simpler_leaves(&state);
        smaller_sizes(&state);
        simpler_way(&state);
    }
}
