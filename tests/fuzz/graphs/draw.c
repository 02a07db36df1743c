/* Draws a random graph: operations one after the other, each over earlier results and new leaves.
 * What is drawn is recorded at once, without data, because the shapes of results decide what may
 * follow. */
#include "tests/fuzz/graphs/draw.h"

#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/graphs/execute.h"

enum { MOST_ELEMENTS = 6000, MOST_OPERATIONS = 9 };

static const Rows *const all_rows[] = {
    &rows_elementwise, &rows_shape,    &rows_reduce, &rows_product, &rows_image,
    &rows_norm,        &rows_sequence, &rows_select, &rows_loss,    &rows_update,
};

int64_t draw_below(Draw *draw, int64_t n)
{
    return (int64_t)kiln_rng_below(&draw->rng, (uint32_t)n);
}

int64_t draw_between(Draw *draw, int64_t low, int64_t high)
{
    return low + draw_below(draw, high - low + 1);
}

bool draw_chance(Draw *draw, int percent)
{
    return draw_below(draw, 100) < percent;
}

int64_t draw_size(Draw *draw, int64_t most)
{
    static const int64_t sizes[] = { 1,  2,  3,  4,  5,  6,  7,  8,  9,  12,  15,  16,
                                     17, 24, 31, 32, 33, 48, 63, 64, 65, 127, 130, 257 };
    const int64_t some = draw_chance(draw, 70) ? 12 : (int64_t)KILN_COUNT(sizes);
    const int64_t size = sizes[draw_below(draw, some)];

    return size < most ? size : most;
}

KilnShape draw_shape(Draw *draw, int least_rank, int most_rank)
{
    KilnShape shape = { .rank = (int)draw_between(draw, least_rank, most_rank) };
    int64_t left = draw_chance(draw, 5) ? 16 * MOST_ELEMENTS : MOST_ELEMENTS;

    for (int i = shape.rank - 1; i >= 0; i--) {
        shape.dim[i] = draw_size(draw, left);
        left /= shape.dim[i];
    }
    return shape;
}

KilnShape draw_shape_of(const Draw *draw, int value)
{
    return *kiln_tensor_shape(draw->values[value]);
}

int draw_rank_of(const Draw *draw, int value)
{
    return draw_shape_of(draw, value).rank;
}

int64_t draw_count_of(const Draw *draw, int value)
{
    return kiln_shape_count(kiln_tensor_shape(draw->values[value]));
}

int64_t draw_dim_of(const Draw *draw, int value, int axis)
{
    return kiln_tensor_dim(draw->values[value], axis);
}

int draw_axis(Draw *draw, int value)
{
    return (int)draw_below(draw, draw_rank_of(draw, value));
}

/* ---- Leaves ------------------------------------------------------------------------------ */

static int append(Draw *draw, const Item *item)
{
    Spec *spec = draw->spec;
    const int i = spec->n;

    spec->items[i] = *item;
    execute_item(draw->graph, spec, i, NULL, draw->values);
    spec->n++;
    return i * SPEC_OUTPUTS;
}

static bool full(const Draw *draw)
{
    return draw->spec->n >= SPEC_ITEMS - SPEC_INPUTS;
}

static int add_leaf(Draw *draw, Leaf leaf)
{
    Item item = { .leaf = leaf };

    item.leaf.seed = (uint64_t)kiln_rng_u32(&draw->rng) << 32 | kiln_rng_u32(&draw->rng);
    item.leaf.unaligned = draw_chance(draw, 15);
    return append(draw, &item);
}

static Values draw_values(Draw *draw)
{
    static const Values common[] = { VALUES_INTEGERS, VALUES_INTEGERS, VALUES_OFFSET,  VALUES_FAR,
                                     VALUES_TINY,     VALUES_LARGE,    VALUES_INFINITE };

    if (draw->plain || draw_chance(draw, 60))
        return VALUES_NORMAL;
    return common[draw_below(draw, KILN_COUNT(common))];
}

int draw_leaf(Draw *draw, LeafKind kind, Values values, KilnShape shape)
{
    return add_leaf(draw, (Leaf) { .kind = kind, .values = values, .shape = shape });
}

int draw_param(Draw *draw, KilnShape shape)
{
    const LeafKind kind = draw_chance(draw, 75) ? LEAF_PARAM : LEAF_INPUT;

    return draw_leaf(draw, kind, draw_values(draw), shape);
}

int draw_positive(Draw *draw, KilnShape shape)
{
    return draw_leaf(draw, LEAF_INPUT, VALUES_POSITIVE, shape);
}

int draw_variable(Draw *draw, KilnShape shape)
{
    return draw_leaf(draw, LEAF_VARIABLE, VALUES_POSITIVE, shape);
}

int draw_index(Draw *draw, KilnShape shape, int64_t low, int64_t limit)
{
    return add_leaf(draw,
                    (Leaf) { .kind = LEAF_INDEX, .shape = shape, .low = low, .limit = limit });
}

int draw_mask(Draw *draw, KilnShape shape)
{
    return add_leaf(draw, (Leaf) { .kind = LEAF_MASK, .shape = shape });
}

/* ---- Values that are there --------------------------------------------------------------- */

typedef bool Fits(const KilnShape *shape, const void *what);

/* A float value that fits; -1: none. Later ones are more likely. */
static int draw_existing(Draw *draw, Fits *fits, const void *what)
{
    const int n = draw->spec->n * SPEC_OUTPUTS;
    int found = -1;

    for (int value = 0; value < n; value++) {
        const KilnTensor *tensor = draw->values[value];

        if (tensor == NULL || !spec_is_float(kiln_tensor_dtype(tensor)) ||
            !fits(kiln_tensor_shape(tensor), what))
            continue;
        if (found < 0 || draw_chance(draw, 35))
            found = value;
    }
    return found;
}

static bool fits_rank(const KilnShape *shape, const void *what)
{
    const int *ranks = what;

    return shape->rank >= ranks[0] && shape->rank <= ranks[1];
}

static bool fits_shape(const KilnShape *shape, const void *what)
{
    return kiln_shape_equal(shape, what);
}

int draw_float(Draw *draw, int least_rank, int most_rank)
{
    const int ranks[] = { least_rank, most_rank };
    const int existing = draw_chance(draw, 80) ? draw_existing(draw, fits_rank, ranks) : -1;

    return existing >= 0 ? existing : draw_param(draw, draw_shape(draw, least_rank, most_rank));
}

int draw_like(Draw *draw, KilnShape shape)
{
    const int existing = draw_chance(draw, 60) ? draw_existing(draw, fits_shape, &shape) : -1;

    return existing >= 0 ? existing : draw_param(draw, shape);
}

int draw_broadcast(Draw *draw, KilnShape shape)
{
    if (draw_chance(draw, 40))
        return draw_like(draw, shape);
    const int drop = (int)draw_below(draw, shape.rank + 1);
    KilnShape small = { .rank = shape.rank - drop };
    for (int i = 0; i < small.rank; i++)
        small.dim[i] = draw_chance(draw, 40) ? 1 : shape.dim[i + drop];
    return draw_like(draw, small);
}

/* ---- Graphs ------------------------------------------------------------------------------ */

static const Row *draw_row(Draw *draw, const char *only)
{
    const Rows *rows = all_rows[draw_below(draw, KILN_COUNT(all_rows))];

    if (only == NULL)
        return &rows->rows[draw_below(draw, (int64_t)rows->count)];
    for (size_t t = 0; t < KILN_COUNT(all_rows); t++)
        for (size_t i = 0; i < all_rows[t]->count; i++)
            if (strcmp(all_rows[t]->rows[i].name, only) == 0)
                return &all_rows[t]->rows[i];
    fprintf(stderr, "fuzz_graphs: no row has the name %s\n", only);
    exit(2);
}

/* An operation that does not fit leaves the graph poisoned: record the rest once more. */
static void record_again(Draw *draw)
{
    kiln_graph_begin(draw->graph);
    memset(draw->values, 0, sizeof(draw->values));
    for (int i = 0; i < draw->spec->n; i++)
        execute_item(draw->graph, draw->spec, i, NULL, draw->values);
}

static void draw_operation(Draw *draw, const char *only)
{
    Item item = { .row = draw_row(draw, only) };
    Spec *spec = draw->spec;

    for (int i = 0; i < SPEC_INPUTS; i++)
        item.in[i] = -1;
    if (!item.row->draw(draw, &item))
        return;
    append(draw, &item);
    KilnError err = { 0 };
    if (kiln_graph_check(draw->graph, &err) < 0) {
        spec->n--;
        record_again(draw);
    }
}

/* Whether an item reads the value. */
static bool is_read(const Spec *spec, int value)
{
    for (int i = value / SPEC_OUTPUTS + 1; i < spec->n; i++)
        for (int k = 0; spec->items[i].row != NULL && k < SPEC_INPUTS; k++)
            if (spec->items[i].in[k] == value)
                return true;
    return false;
}

/* Outputs: mostly results that nobody reads, now and then others, so that something is kept in the
 * middle of what a pass would merge. */
static void draw_outputs(Draw *draw)
{
    Spec *spec = draw->spec;

    for (int i = spec->n - 1; i >= 0; i--) {
        for (int k = 0; k < SPEC_OUTPUTS && spec->items[i].row != NULL; k++) {
            const int value = i * SPEC_OUTPUTS + k;
            const int percent = is_read(spec, value) ? 15 : 80;

            if (draw->values[value] != NULL && draw_chance(draw, percent) &&
                spec->n_outputs < (int)KILN_COUNT(spec->outputs))
                spec->outputs[spec->n_outputs++] = value;
        }
    }
}

void spec_draw(Spec *spec, uint64_t seed, const char *only)
{
    static const KilnPrecision precisions[] = { KILN_PRECISION_32, KILN_PRECISION_32,
                                                KILN_BF16_MIXED,   KILN_BF16_MIXED,
                                                KILN_BF16_TRUE,    KILN_PRECISION_64 };
    static Draw state;
    Draw *draw = &state;

    memset(spec, 0, sizeof(*spec));
    memset(draw, 0, sizeof(*draw));
    spec->seed = seed;
    draw->spec = spec;
    draw->graph = execute_shapes_graph();
    kiln_rng_init(&draw->rng, seed, KILN_RNG_USER, 0, 0);
    kiln_graph_begin(draw->graph);
    spec->precision = precisions[draw_below(draw, KILN_COUNT(precisions))];
    spec->backward = draw_chance(draw, 75);
    spec->accumulates = draw_chance(draw, 15);
    draw->plain = draw_chance(draw, 50);
    const int64_t operations = draw_between(draw, 1, MOST_OPERATIONS);
    for (int64_t i = 0; i < operations && !full(draw); i++)
        draw_operation(draw, only);
    draw_outputs(draw);
    spec_remove_unused(spec);
    if (draw_chance(draw, 20)) {
        spec->block[0] = (int)draw_below(draw, spec->n + 1);
        spec->block[1] = (int)draw_between(draw, spec->block[0], spec->n);
    }
}
