/* Graphs as data: removing items, printing. */
#include "tests/fuzz/graphs/spec.h"

#include <inttypes.h>
#include <string.h>

#include "tests/fuzz/graphs/execute.h"

static bool writes_variable(const Spec *spec, const Item *item)
{
    for (int k = 0; k < SPEC_INPUTS; k++) {
        if (item->row == NULL || item->in[k] < 0)
            continue;
        const Item *input = &spec->items[item->in[k] / SPEC_OUTPUTS];
        if (input->row == NULL &&
            (input->leaf.kind == LEAF_VARIABLE || input->leaf.kind == LEAF_COUNTER))
            return true;
    }
    return false;
}

static int moved(const int *place, int value)
{
    return value < 0 ? value : place[value / SPEC_OUTPUTS] * SPEC_OUTPUTS + value % SPEC_OUTPUTS;
}

/* Keeps the items marked, in order. */
static void compact(Spec *spec, const bool *kept)
{
    int place[SPEC_ITEMS + 1], n = 0;

    for (int i = 0; i < spec->n; i++) {
        place[i] = n;
        if (!kept[i])
            continue;
        spec->items[n] = spec->items[i];
        for (int k = 0; k < SPEC_INPUTS && spec->items[n].row != NULL; k++)
            spec->items[n].in[k] = moved(place, spec->items[n].in[k]);
        n++;
    }
    place[spec->n] = n;
    for (int o = 0; o < spec->n_outputs; o++)
        spec->outputs[o] = moved(place, spec->outputs[o]);
    for (int b = 0; b < 2; b++)
        spec->block[b] = place[spec->block[b] < spec->n ? spec->block[b] : spec->n];
    spec->n = n;
}

bool spec_has_infinite_leaf(const Spec *spec)
{
    for (int i = 0; i < spec->n; i++)
        if (spec->items[i].row == NULL && spec->items[i].leaf.values == VALUES_INFINITE)
            return true;
    return false;
}

void spec_remove_unused(Spec *spec)
{
    bool kept[SPEC_ITEMS] = { false };

    for (int o = 0; o < spec->n_outputs; o++)
        kept[spec->outputs[o] / SPEC_OUTPUTS] = true;
    for (int i = spec->n - 1; i >= 0; i--) {
        const Item *item = &spec->items[i];

        kept[i] |= writes_variable(spec, item);
        for (int k = 0; k < SPEC_INPUTS && item->row != NULL && kept[i]; k++)
            if (item->in[k] >= 0)
                kept[item->in[k] / SPEC_OUTPUTS] = true;
    }
    compact(spec, kept);
}

/* ---- Printing -------------------------------------------------------------------------------- */

static const char *const kind_names[] = {
    [LEAF_INPUT] = "input", [LEAF_PARAM] = "param", [LEAF_VARIABLE] = "variable",
    [LEAF_INDEX] = "index", [LEAF_MASK] = "mask",   [LEAF_COUNTER] = "counter",
    [LEAF_ENDS] = "ends",
};

static const char *const values_names[] = {
    [VALUES_POSITIVE] = "positive", [VALUES_NORMAL] = "normal",     [VALUES_INTEGERS] = "integers",
    [VALUES_OFFSET] = "offset",     [VALUES_FAR] = "far",           [VALUES_TINY] = "tiny",
    [VALUES_LARGE] = "large",       [VALUES_INFINITE] = "infinite",
};

static void print_leaf(const Leaf *leaf, FILE *file)
{
    fprintf(file, "%s", kind_names[leaf->kind]);
    if (leaf_is_float(leaf))
        fprintf(file, " of %s values", values_names[leaf->values]);
    else if (leaf->kind == LEAF_INDEX)
        fprintf(file, " in [%" PRId64 ", %" PRId64 ")", leaf->low, leaf->limit);
    if (leaf->unaligned)
        fprintf(file, ", unaligned");
}

static void print_value(int value, FILE *file)
{
    fprintf(file, value % SPEC_OUTPUTS == 0 ? "%%%d" : "%%%d.%d", value / SPEC_OUTPUTS,
            value % SPEC_OUTPUTS);
}

static void print_operation(const Item *item, FILE *file)
{
    int last = SPEC_ARGS - 1, inputs = SPEC_INPUTS - 1;

    while (inputs > 0 && item->in[inputs] < 0)
        inputs--;
    fprintf(file, "%s(", item->row->name);
    for (int k = 0; k <= inputs; k++) {
        fprintf(file, k > 0 ? ", " : "");
        if (item->in[k] >= 0)
            print_value(item->in[k], file);
        else
            fprintf(file, "-");
    }
    fprintf(file, ")");
    while (last >= 0 && item->arg[last] == 0)
        last--;
    for (int k = 0; k <= last; k++)
        fprintf(file, "%s%" PRId64, k == 0 ? " arg " : " ", item->arg[k]);
    if (item->num[0] != 0.0)
        fprintf(file, " num %g", item->num[0]);
}

static void print_outputs(KilnTensor *const *values, int i, FILE *file)
{
    char text[KILN_SHAPE_TEXT];

    for (int k = 0; k < SPEC_OUTPUTS; k++) {
        const KilnTensor *y = values[i * SPEC_OUTPUTS + k];
        if (y != NULL)
            fprintf(file, " %s%s", kiln_dtype_name(kiln_tensor_dtype(y)),
                    kiln_shape_text(kiln_tensor_shape(y), text, sizeof(text)));
    }
}

void spec_print(const Spec *spec, FILE *file)
{
    static const char *const precisions[] = { "32-true", "bf16-mixed", "bf16-true", "64-true" };
    KilnTensor *values[SPEC_ITEMS * SPEC_OUTPUTS] = { NULL };
    KilnGraph *graph = execute_shapes_graph();

    fprintf(file, "seed %" PRIu64 ", %s%s%s\n", spec->seed, precisions[spec->precision],
            spec->backward ? ", backward" : "", spec->accumulates ? ", accumulates" : "");
    kiln_graph_begin(graph);
    for (int i = 0; i < spec->n; i++) {
        const Item *item = &spec->items[i];

        execute_item(graph, spec, i, NULL, values);
        fprintf(file, "  %c%%%d = ",
                i >= spec->block[0] && i < spec->block[1] && item->row != NULL ? '|' : ' ', i);
        if (item->row == NULL)
            print_leaf(&item->leaf, file);
        else
            print_operation(item, file);
        fprintf(file, " ->");
        print_outputs(values, i, file);
        fprintf(file, "\n");
    }
    fprintf(file, "   outputs");
    for (int o = 0; o < spec->n_outputs; o++) {
        fprintf(file, " ");
        print_value(spec->outputs[o], file);
    }
    fprintf(file, "\n");
}
