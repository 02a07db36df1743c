/* Regression trees over a unit cube with categories. A tree is known by its leaves. */
#ifndef KILN_SWEEP_REPORT_REGRESSION_TREE_H
#define KILN_SWEEP_REPORT_REGRESSION_TREE_H

#include "base/arena.h"
#include "kiln/rng.h"

enum {
    KILN_TREE_CATEGORIES = 64, /* the most of a dimension */
    KILN_TREE_SAMPLE = 1000    /* the most points of a bootstrap sample */
};

/* What trees learn. */
typedef struct KilnTreeData {
    size_t n, dims;
    const double *x;          /* [n, dims]: in [0, 1), or the index of a category */
    const double *y;          /* [n] */
    const size_t *categories; /* [dims]; 0: the dimension is ordered */
} KilnTreeData;

/* The part of a dimension that a leaf covers. */
typedef struct KilnTreeRange {
    double low, high; /* ordered: [low, high) */
    uint64_t set;     /* categories, a bit each */
} KilnTreeRange;

typedef struct KilnTree {
    size_t n_leaves, dims;
    double *values;       /* [n_leaves] */
    KilnTreeRange *boxes; /* [n_leaves, dims] */
} KilnTree;

/* Grow a tree from a bootstrap sample, to leaves of at least `least` points. `drawn` [n] is set to
 * how often each point is in the sample. The tree lives in the arena. */
KILN_NODISCARD KilnStatus kiln_tree_grow(const KilnTreeData *data, size_t least, KilnRng *rng,
                                         KilnArena *arena, size_t *drawn, KilnTree *ret,
                                         KilnError *err);
/* The value at a point. */
double kiln_tree_value(const KilnTree *tree, const KilnTreeData *data, const double *x);

#endif
