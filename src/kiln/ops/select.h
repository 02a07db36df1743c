/* Operations that order, group and select elements, and random numbers. Part of kiln/ops.h. */
#ifndef KILN_OPS_SELECT_H
#define KILN_OPS_SELECT_H

#include "kiln/tensor.h"

/* ---- Sorting ------------------------------------------------------------------
 * Of floats or i32. NaN is above all numbers, as in PyTorch; equal elements stay in
 * their order. Indices are i32; the gradient goes to the elements that were taken. */

typedef struct KilnSorted {
    KilnTensor *values, *indices;
} KilnSorted;

/* Along an axis, negative ones from the end (torch.sort with stable=True, torch.argsort). */
KILN_API KilnSorted kiln_sort(KilnTensor *x, int axis, bool descending);
KILN_API KilnTensor *kiln_argsort(KilnTensor *x, int axis, bool descending);
/* The k largest, or smallest, elements along an axis in order, the first of equals first
 * (torch.topk, which leaves the order of equals open). */
KILN_API KilnSorted kiln_topk(KilnTensor *x, int64_t k, int axis, bool largest);

/* ---- Groups of rows -------------------------------------------------------------
 * Row i of x [n, ...] belongs to group ids[i] of `count`: ids i32 [n], in any order. A
 * negative id leaves the row out; if one is `count` or more, row 0 of the result becomes
 * NaN. -> [count, ...]; an empty group is 0. PyTorch's scatter_reduce with include_self=
 * False on zeros; torch_scatter's and TensorFlow's unsorted segments. */

KILN_API KilnTensor *kiln_segment_sum(KilnTensor *x, KilnTensor *ids, int64_t count);
KILN_API KilnTensor *kiln_segment_mean(KilnTensor *x, KilnTensor *ids, int64_t count);
/* NaN if one is; equals share the gradient evenly. */
KILN_API KilnTensor *kiln_segment_max(KilnTensor *x, KilnTensor *ids, int64_t count);

/* ---- Results whose size is data -------------------------------------------------------
 * Shapes are fixed, so these give the first `count` of a fixed number of places, and
 * `count`, an i32 [1]. It may exceed the places: then some are missing. */

typedef struct KilnPlaces {
    KilnTensor *index, *count;
} KilnPlaces;
typedef struct KilnPicked {
    KilnTensor *values, *count;
} KilnPicked;
typedef struct KilnUnique {
    KilnTensor *values, *inverse, *counts, *count;
} KilnUnique;

/* Where x, of any type, is not 0: i32 [limit], increasing numbers of elements in plain
 * order; -1 in unused places (torch.nonzero of a flat tensor). */
KILN_API KilnPlaces kiln_nonzero(KilnTensor *x, int64_t limit);
/* The elements of x, a float, where the mask of its shape is not 0: [limit], 0 in unused
 * places. They pass a gradient (torch.masked_select). */
KILN_API KilnPicked kiln_masked_select(KilnTensor *x, KilnTensor *mask, int64_t limit);
/* The different elements of x, float or i32 with n elements, in order: values [n], 0 in
 * unused places; `inverse`, of x's shape, has the place of each element; `counts` [n] how
 * often each is there (torch.unique). NaNs differ from each other. No gradient. */
KILN_API KilnUnique kiln_unique(KilnTensor *x);

/* ---- Random numbers ---------------------------------------------------------------
 * Functions of `key`, `stream` and the element alone, so the same for any number of
 * threads and in a resumed run. `key` is i32 [2], changed by the caller every step
 * (kiln_step_dropout_key); `stream`, at least 0, separates the draws of one step, and is
 * independent of the streams of kiln_dropout. Constants: they have no gradient. */

/* Uniform in [low, high), with 24 random bits. */
KILN_API KilnTensor *kiln_uniform(KilnShape shape, double low, double high, KilnTensor *key,
                                  int64_t stream);
KILN_API KilnTensor *kiln_normal(KilnShape shape, double mean, double std, KilnTensor *key,
                                 int64_t stream);
/* 1.0 with the probability that p has at that place, else 0.0 (torch.bernoulli). The
 * gradient of p is 0. */
KILN_API KilnTensor *kiln_bernoulli(KilnTensor *p, KilnTensor *key, int64_t stream);

#endif
