/* Grows regression trees: each split is the one that lowers the squared error the most. */
#include "sweep/report/regression_tree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 64 };

typedef struct Item {
    double key; /* to sort by */
    double y;
} Item;

typedef struct Growing {
    const KilnTreeData *data;
    size_t least;
    KilnRng *rng;
    KilnArena *arena;
    size_t *sample; /* points, those of a node next to each other */
    Item *items;    /* scratch */
    KilnTreeRange *box;
    KilnTree *tree;
} Growing;

/* The best split of a node; gain 0: none. */
typedef struct Split {
    double gain;
    size_t dim;
    double threshold; /* ordered: below goes left */
    uint64_t left;    /* categories */
} Split;

static double x_of(const Growing *growing, size_t point, size_t dim)
{
    return growing->data->x[point * growing->data->dims + dim];
}

static int compare_items(const void *a, const void *b)
{
    const Item *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->y > y->y) - (x->y < y->y); /* sums do not depend on the order of the sort */
}

/* ---- Splits --------------------------------------------------------------------------- */

/* Where to split n sorted items, whose sum is known: after *ret_at of them. The gain is what the
 * squared error loses. */
static double best_cut(const Item *items, size_t n, size_t least, size_t *ret_at)
{
    double sum = 0.0, left = 0.0, best = 0.0;

    for (size_t i = 0; i < n; i++)
        sum += items[i].y;
    for (size_t i = 1; i < n; i++) {
        left += items[i - 1].y;
        if (items[i].key == items[i - 1].key || i < least || n - i < least)
            continue;
        const double right = sum - left;
        const double gain = left * left / (double)i + right * right / (double)(n - i) -
                            sum * sum / (double)n;
        if (gain > best) {
            best = gain;
            *ret_at = i;
        }
    }
    return best;
}

static void try_ordered(Growing *growing, size_t begin, size_t end, size_t dim, Split *split)
{
    const size_t n = end - begin;
    size_t at = 0;

    for (size_t i = 0; i < n; i++)
        growing->items[i] = (Item) { .key = x_of(growing, growing->sample[begin + i], dim),
                                     .y = growing->data->y[growing->sample[begin + i]] };
    qsort(growing->items, n, sizeof(Item), compare_items);
    const double gain = best_cut(growing->items, n, growing->least, &at);
    if (!(gain > split->gain))
        return;
    /* Anywhere between two points: the trees of a forest average to a smooth function. */
    const double low = growing->items[at - 1].key, high = growing->items[at].key;
    double threshold = low + (high - low) * (double)kiln_rng_uniform(growing->rng);
    if (!(threshold > low))
        threshold = high;
    *split = (Split) { .gain = gain, .dim = dim, .threshold = threshold };
}

/* Categories in the order of their means: one of these cuts is the best of all subsets (Breiman and
 * others, "Classification and regression trees", 1984). */
static void try_categories(Growing *growing, size_t begin, size_t end, size_t dim, Split *split)
{
    const size_t n = end - begin, count = growing->data->categories[dim];
    double sums[KILN_TREE_CATEGORIES] = { 0 }, mean[KILN_TREE_CATEGORIES] = { 0 };
    size_t counts[KILN_TREE_CATEGORIES] = { 0 }, at = 0;
    uint64_t left = 0;

    for (size_t i = begin; i < end; i++) {
        const size_t category = (size_t)x_of(growing, growing->sample[i], dim);

        sums[category] += growing->data->y[growing->sample[i]];
        counts[category]++;
    }
    for (size_t k = 0; k < count; k++)
        mean[k] = counts[k] > 0 ? sums[k] / (double)counts[k] : 0.0;
    for (size_t i = 0; i < n; i++) {
        const size_t point = growing->sample[begin + i];

        growing->items[i] = (Item) { .key = mean[(size_t)x_of(growing, point, dim)],
                                     .y = growing->data->y[point] };
    }
    qsort(growing->items, n, sizeof(Item), compare_items);
    const double gain = best_cut(growing->items, n, growing->least, &at);
    if (!(gain > split->gain))
        return;
    for (size_t k = 0; k < count; k++) /* a category without points goes to either side */
        if (counts[k] > 0 ? mean[k] < growing->items[at].key : kiln_rng_below(growing->rng, 2) == 0)
            left |= (uint64_t)1 << k;
    *split = (Split) { .gain = gain, .dim = dim, .left = left };
}

static bool goes_left(const Growing *growing, const Split *split, size_t point)
{
    const double x = x_of(growing, point, split->dim);

    return growing->data->categories[split->dim] == 0 ? x < split->threshold
                                                      : (split->left >> (size_t)x & 1) != 0;
}

/* Put the points of the left side first; returns where the right side begins. */
static size_t partition(Growing *growing, size_t begin, size_t end, const Split *split)
{
    size_t middle = begin;

    for (size_t i = begin; i < end; i++) {
        const size_t point = growing->sample[i];

        if (!goes_left(growing, split, point))
            continue;
        growing->sample[i] = growing->sample[middle];
        growing->sample[middle++] = point;
    }
    return middle;
}

/* ---- Growing ---------------------------------------------------------------------------- */

static void add_leaf(Growing *growing, size_t begin, size_t end)
{
    KilnTree *tree = growing->tree;
    const size_t leaf = tree->n_leaves++, dims = tree->dims;
    double sum = 0.0;

    for (size_t i = begin; i < end; i++)
        sum += growing->data->y[growing->sample[i]];
    tree->values[leaf] = sum / (double)(end - begin);
    memcpy(tree->boxes + leaf * dims, growing->box, dims * sizeof(*growing->box));
}

static void grow(Growing *growing, size_t begin, size_t end, int depth)
{
    Split split = { .gain = 0.0 };

    for (size_t dim = 0; depth < MAX_DEPTH && dim < growing->data->dims; dim++) {
        if (growing->data->categories[dim] == 0)
            try_ordered(growing, begin, end, dim, &split);
        else
            try_categories(growing, begin, end, dim, &split);
    }
    if (!(split.gain > 1e-12)) { /* of values with a variance of 1 */
        add_leaf(growing, begin, end);
        return;
    }
    const size_t middle = partition(growing, begin, end, &split);
    KilnTreeRange *range = &growing->box[split.dim];
    const KilnTreeRange whole = *range;
    range->high = split.threshold;
    range->set &= split.left;
    grow(growing, begin, middle, depth + 1);
    *range = whole;
    range->low = split.threshold;
    range->set &= ~split.left;
    grow(growing, middle, end, depth + 1);
    *range = whole;
}

static size_t draw_sample(Growing *growing, size_t *drawn)
{
    const size_t n = growing->data->n, size = n < KILN_TREE_SAMPLE ? n : KILN_TREE_SAMPLE;

    memset(drawn, 0, n * sizeof(*drawn));
    for (size_t i = 0; i < size; i++) {
        growing->sample[i] = kiln_rng_below(growing->rng, (uint32_t)n);
        drawn[growing->sample[i]]++;
    }
    return size;
}

KilnStatus kiln_tree_grow(const KilnTreeData *data, size_t least, KilnRng *rng, KilnArena *arena,
                          size_t *drawn, KilnTree *ret, KilnError *err)
{
    const size_t n = data->n < KILN_TREE_SAMPLE ? data->n : KILN_TREE_SAMPLE,
                 leaves = n / least + 1;
    Growing growing = {
        .data = data,
        .least = least,
        .rng = rng,
        .arena = arena,
        .sample = kiln_arena_alloc(arena, n * sizeof(*growing.sample)),
        .items = kiln_arena_alloc(arena, n * sizeof(*growing.items)),
        .box = kiln_arena_alloc(arena, data->dims * sizeof(*growing.box)),
        .tree = ret,
    };

    *ret = (KilnTree) {
        .dims = data->dims,
        .values = kiln_arena_alloc(arena, leaves * sizeof(*ret->values)),
        .boxes = kiln_arena_alloc(arena, leaves * data->dims * sizeof(*ret->boxes)),
    };
    if (growing.sample == NULL || growing.items == NULL || growing.box == NULL ||
        ret->values == NULL || ret->boxes == NULL)
        return kiln_error_nomem(err, leaves * data->dims * sizeof(*ret->boxes));
    for (size_t dim = 0; dim < data->dims; dim++) {
        const size_t count = data->categories[dim];

        growing.box[dim] = (KilnTreeRange) { .high = 1.0,
                                             .set = count < 64 ? ((uint64_t)1 << count) - 1
                                                               : UINT64_MAX };
    }
    grow(&growing, 0, draw_sample(&growing, drawn), 0);
    return KILN_OK;
}

double kiln_tree_value(const KilnTree *tree, const KilnTreeData *data, const double *x)
{
    for (size_t leaf = 0; leaf < tree->n_leaves; leaf++) {
        const KilnTreeRange *box = tree->boxes + leaf * tree->dims;
        size_t dim = 0;

        while (dim < tree->dims &&
               (data->categories[dim] == 0 ? x[dim] >= box[dim].low && x[dim] < box[dim].high
                                           : (box[dim].set >> (size_t)x[dim] & 1) != 0))
            dim++;
        if (dim == tree->dims)
            return tree->values[leaf];
    }
    return (double)NAN; /* the leaves cover the space */
}
