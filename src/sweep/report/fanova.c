/* The variance of a random forest, decomposed over its leaves. */
#include "sweep/report/fanova.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TREES = 64, SEED = 1, POINTS_PER_LEAST = 150 };

/* A dimension, cut at all borders of leaves: on each cell a tree is constant along it. */
typedef struct Cells {
    size_t n;
    double *borders; /* ordered: [n + 1] */
    double *widths;  /* [n]: probabilities */
} Cells;

/* Cells next to each other: [begin, end). */
typedef struct Run {
    size_t begin, end;
} Run;

typedef struct Analysis {
    const KilnTreeData *data;
    const double *const *weights;
    KilnArena *arena; /* of one tree */
    KilnTree tree;
    Cells *cells;    /* [dims] */
    double *volumes; /* [n_leaves, dims]: the share of each dimension that a leaf covers */
    double *masses;  /* [n_leaves]: volume times the difference to the mean */
    double variance;
} Analysis;

/* ---- Cells ------------------------------------------------------------------------------- */

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static bool cut_ordered(Analysis *analysis, size_t dim, Cells *cells)
{
    const KilnTree *tree = &analysis->tree;
    size_t n = 0;

    cells->borders = kiln_arena_alloc(analysis->arena, (tree->n_leaves + 1) * sizeof(double));
    cells->widths = kiln_arena_alloc(analysis->arena, (tree->n_leaves + 1) * sizeof(double));
    if (cells->borders == NULL || cells->widths == NULL)
        return false;
    for (size_t leaf = 0; leaf < tree->n_leaves; leaf++) /* every border but 1 is the low one */
        cells->borders[leaf] = tree->boxes[leaf * tree->dims + dim].low;
    qsort(cells->borders, tree->n_leaves, sizeof(double), compare_doubles);
    for (size_t i = 0; i < tree->n_leaves; i++)
        if (n == 0 || cells->borders[i] != cells->borders[n - 1])
            cells->borders[n++] = cells->borders[i];
    cells->borders[n] = 1.0;
    cells->n = n;
    for (size_t i = 0; i < n; i++)
        cells->widths[i] = cells->borders[i + 1] - cells->borders[i];
    return true;
}

static size_t cell_at(const Cells *cells, double border)
{
    size_t low = 0, high = cells->n;

    while (low < high) {
        const size_t middle = (low + high) / 2;

        if (cells->borders[middle] < border)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The cells of a leaf; returns how many runs they are. */
static size_t runs_of(const Analysis *analysis, size_t leaf, size_t dim,
                      Run ret[KILN_TREE_CATEGORIES])
{
    const KilnTreeRange *range = &analysis->tree.boxes[leaf * analysis->tree.dims + dim];
    const Cells *cells = &analysis->cells[dim];
    size_t n = 0;

    if (analysis->data->categories[dim] == 0) {
        ret[0] = (Run) { cell_at(cells, range->low), cell_at(cells, range->high) };
        return 1;
    }
    for (size_t k = 0; k < cells->n; k++) {
        if ((range->set >> k & 1) == 0)
            continue;
        if (n > 0 && ret[n - 1].end == k)
            ret[n - 1].end++;
        else
            ret[n++] = (Run) { k, k + 1 };
    }
    return n;
}

static double volume_of(const Analysis *analysis, size_t leaf, size_t dim)
{
    const KilnTreeRange *range = &analysis->tree.boxes[leaf * analysis->tree.dims + dim];
    double sum = 0.0;

    if (analysis->data->categories[dim] == 0)
        return range->high - range->low;
    for (size_t k = 0; k < analysis->cells[dim].n; k++)
        sum += (range->set >> k & 1) != 0 ? analysis->cells[dim].widths[k] : 0.0;
    return sum;
}

/* ---- Variances ---------------------------------------------------------------------------- */

static KilnStatus measure_leaves(Analysis *analysis, KilnError *err)
{
    const KilnTree *tree = &analysis->tree;
    const size_t dims = tree->dims;
    double mean = 0.0;

    analysis->cells = kiln_arena_alloc(analysis->arena, dims * sizeof(*analysis->cells));
    analysis->volumes = kiln_arena_alloc(analysis->arena, tree->n_leaves * dims * sizeof(double));
    analysis->masses = kiln_arena_alloc(analysis->arena, tree->n_leaves * sizeof(double));
    if (analysis->cells == NULL || analysis->volumes == NULL || analysis->masses == NULL)
        return kiln_error_nomem(err, tree->n_leaves * dims * sizeof(double));
    for (size_t dim = 0; dim < dims; dim++) {
        Cells *cells = &analysis->cells[dim];

        if (analysis->data->categories[dim] > 0)
            *cells = (Cells) { .n = analysis->data->categories[dim],
                               .widths = (double *)analysis->weights[dim] };
        else if (!cut_ordered(analysis, dim, cells))
            return kiln_error_nomem(err, tree->n_leaves * sizeof(double));
    }
    for (size_t leaf = 0; leaf < tree->n_leaves; leaf++) {
        double volume = 1.0;

        for (size_t dim = 0; dim < dims; dim++)
            volume *= analysis->volumes[leaf * dims + dim] = volume_of(analysis, leaf, dim);
        analysis->masses[leaf] = volume;
        mean += volume * tree->values[leaf];
    }
    analysis->variance = 0.0;
    for (size_t leaf = 0; leaf < tree->n_leaves; leaf++) {
        const double off = tree->values[leaf] - mean;

        analysis->variance += analysis->masses[leaf] * off * off;
        analysis->masses[leaf] *= off;
    }
    return KILN_OK;
}

/* The variance of the mean over all other dimensions, as a function of one. `scratch`: cells + 1.
 */
static double single_variance(const Analysis *analysis, size_t dim, double *scratch)
{
    const Cells *cells = &analysis->cells[dim];
    const size_t dims = analysis->tree.dims;
    double variance = 0.0, at = 0.0;
    Run runs[KILN_TREE_CATEGORIES];

    memset(scratch, 0, (cells->n + 1) * sizeof(*scratch));
    for (size_t leaf = 0; leaf < analysis->tree.n_leaves; leaf++) {
        const size_t n = runs_of(analysis, leaf, dim, runs);
        const double mass = analysis->masses[leaf] / analysis->volumes[leaf * dims + dim];

        for (size_t i = 0; i < n; i++) { /* differences between cells, summed below */
            scratch[runs[i].begin] += mass;
            scratch[runs[i].end] -= mass;
        }
    }
    for (size_t i = 0; i < cells->n; i++) {
        at += scratch[i];
        variance += cells->widths[i] * at * at;
    }
    return variance;
}

/* Add a value to a rectangle of cells, as differences. `columns` is of the whole array. */
static void add_rectangle(double *scratch, size_t columns, Run rows, Run cols, double mass)
{
    scratch[rows.begin * columns + cols.begin] += mass;
    scratch[rows.begin * columns + cols.end] -= mass;
    scratch[rows.end * columns + cols.begin] -= mass;
    scratch[rows.end * columns + cols.end] += mass;
}

/* The same as a function of two dimensions. `scratch`: (cells + 1) × (cells + 1). */
static double pair_variance(const Analysis *analysis, size_t a, size_t b, double *scratch)
{
    const Cells *rows = &analysis->cells[a], *cols = &analysis->cells[b];
    const size_t dims = analysis->tree.dims, columns = cols->n + 1;
    double variance = 0.0;
    Run row_runs[KILN_TREE_CATEGORIES], col_runs[KILN_TREE_CATEGORIES];

    memset(scratch, 0, (rows->n + 1) * columns * sizeof(*scratch));
    for (size_t leaf = 0; leaf < analysis->tree.n_leaves; leaf++) {
        const double *volumes = analysis->volumes + leaf * dims;
        const size_t n = runs_of(analysis, leaf, a, row_runs);
        const size_t m = runs_of(analysis, leaf, b, col_runs);

        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < m; k++)
                add_rectangle(scratch, columns, row_runs[i], col_runs[k],
                              analysis->masses[leaf] / (volumes[a] * volumes[b]));
    }
    for (size_t i = 0; i < rows->n; i++) {
        double at = 0.0; /* sum of this row up to here; the rows above were added to it */

        for (size_t k = 0; k < cols->n; k++) {
            if (i > 0)
                scratch[i * columns + k] += scratch[(i - 1) * columns + k];
            at += scratch[i * columns + k];
            variance += rows->widths[i] * cols->widths[k] * at * at;
        }
    }
    return variance;
}

static KilnStatus add_tree(Analysis *analysis, double *variances, KilnFanova *sum, KilnError *err)
{
    const size_t dims = analysis->tree.dims;
    size_t most = 1;
    KilnStatus status = measure_leaves(analysis, err);

    if (status < 0 || !(analysis->variance > 0.0))
        return status;
    for (size_t dim = 0; dim < dims; dim++)
        most = analysis->cells[dim].n > most ? analysis->cells[dim].n : most;
    double *scratch = kiln_arena_alloc(analysis->arena, (most + 1) * (most + 1) * sizeof(double));
    if (scratch == NULL)
        return kiln_error_nomem(err, (most + 1) * (most + 1) * sizeof(double));
    for (size_t dim = 0; dim < dims; dim++) {
        variances[dim] = single_variance(analysis, dim, scratch);
        sum->single[dim] += variances[dim] / analysis->variance;
    }
    for (size_t a = 0; a < dims; a++)
        for (size_t b = a + 1; b < dims; b++) {
            const double both = pair_variance(analysis, a, b, scratch);
            const double added = both - variances[a] - variances[b];

            sum->pairs[a * dims + b] += fmax(added, 0.0) / analysis->variance;
        }
    return KILN_OK;
}

/* ---- The forest --------------------------------------------------------------------------- */

/* What the trees without a point in their sample predict of it. */
typedef struct Unseen {
    double *sums;   /* [n] */
    size_t *counts; /* [n] */
} Unseen;

static void predict_unseen(const KilnTree *tree, const KilnTreeData *data, const size_t *drawn,
                           Unseen *unseen)
{
    for (size_t i = 0; i < data->n; i++) {
        if (drawn[i] > 0)
            continue;
        unseen->sums[i] += kiln_tree_value(tree, data, data->x + i * data->dims);
        unseen->counts[i]++;
    }
}

/* `data` has values with the mean 0 and the variance 1. */
static double explained_of(const KilnTreeData *data, const Unseen *unseen)
{
    double errors = 0.0, all = 0.0;

    for (size_t i = 0; i < data->n; i++) {
        if (unseen->counts[i] == 0)
            continue;
        const double off = data->y[i] - unseen->sums[i] / (double)unseen->counts[i];
        errors += off * off;
        all += data->y[i] * data->y[i];
    }
    return all > 0.0 ? 1.0 - errors / all : 0.0;
}

/* With the mean 0 and the variance 1; false: all values are the same. */
static bool standardize(const double *y, size_t n, double *ret)
{
    double mean = 0.0, variance = 0.0;

    for (size_t i = 0; i < n; i++)
        mean += y[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        variance += (y[i] - mean) * (y[i] - mean) / (double)n;
    for (size_t i = 0; i < n; i++)
        ret[i] = (y[i] - mean) / sqrt(variance);
    return variance > 0.0 && isfinite(variance);
}

static KilnStatus add_trees(const KilnTreeData *data, const double *const *weights,
                            KilnArena *arena, KilnFanova *sum, KilnError *err)
{
    const size_t n = data->n, sample = n < KILN_TREE_SAMPLE ? n : KILN_TREE_SAMPLE;
    size_t *drawn = kiln_arena_alloc(arena, n * sizeof(*drawn));
    double *variances = kiln_arena_alloc(arena, data->dims * sizeof(*variances));
    Unseen unseen = { kiln_arena_alloc(arena, n * sizeof(double)),
                      kiln_arena_alloc(arena, n * sizeof(size_t)) };
    KilnStatus status = drawn == NULL || variances == NULL || unseen.sums == NULL ||
                                unseen.counts == NULL
                            ? kiln_error_nomem(err, n * sizeof(double))
                            : KILN_OK;

    for (size_t i = 0; i < TREES && status >= 0; i++) {
        KilnArena scratch = { 0 };
        Analysis analysis = { .data = data, .weights = weights, .arena = &scratch };
        KilnRng rng;

        kiln_rng_init(&rng, SEED, KILN_RNG_SEARCH, 0, i);
        status = kiln_tree_grow(data, 1 + sample / POINTS_PER_LEAST, &rng, &scratch, drawn,
                                &analysis.tree, err);
        if (status >= 0) {
            predict_unseen(&analysis.tree, data, drawn, &unseen);
            status = add_tree(&analysis, variances, sum, err);
        }
        kiln_arena_release(&scratch);
    }
    if (status >= 0)
        sum->explained = explained_of(data, &unseen);
    return status;
}

KilnStatus kiln_fanova(const KilnTreeData *data, const double *const *weights, KilnArena *arena,
                       KilnFanova *ret, KilnError *err)
{
    const size_t dims = data->dims;
    double *y = kiln_arena_alloc(arena, data->n * sizeof(*y));
    KilnFanova sum = { .single = kiln_arena_alloc(arena, dims * sizeof(double)),
                       .pairs = kiln_arena_alloc(arena, dims * dims * sizeof(double)) };
    KilnTreeData standard = *data;
    KilnStatus status = KILN_OK;

    if (y == NULL || sum.single == NULL || sum.pairs == NULL)
        return kiln_error_nomem(err, dims * dims * sizeof(double));
    standard.y = y;
    if (standardize(data->y, data->n, y))
        status = add_trees(&standard, weights, arena, &sum, err);
    for (size_t a = 0; a < dims; a++) {
        sum.single[a] /= TREES;
        for (size_t b = a + 1; b < dims; b++)
            sum.pairs[b * dims + a] = sum.pairs[a * dims + b] /= TREES;
    }
    if (status >= 0)
        *ret = sum;
    return status;
}
