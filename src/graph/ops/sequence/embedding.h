/* Rows selected by index, with gradients that touch only those rows. */
#ifndef KILN_GRAPH_OPS_SEQUENCE_EMBEDDING_H
#define KILN_GRAPH_OPS_SEQUENCE_EMBEDDING_H

#include "kiln/ops.h"

#define KILN_OPS_EMBEDDING(X)                                                                      \
    X(index_select)                                                                                \
    X(index_select_grad)                                                                           \
    X(embedding_bag)                                                                               \
    X(embedding_bag_grad)                                                                          \
    X(embedding_bag_factors_grad)

/* index_select        x [outer..., V, inner...], index i32, sparse_rows -> y [outer..., index's
 *                     shape..., inner...]; any type of x               KilnSelectAttrs
 * index_select_grad   dy, index, sparse_rows*, sum* -> dx of attrs' shape
 *                                                                      KilnSelectAttrs
 * embedding_bag       weight [V, D], index, offsets, sparse_rows, factors -> y [B, D]; for the
 *                     maximum also the winning row, i32 [B, D], -1: none
 *                                                                      KilnBagAttrs
 * embedding_bag_grad  dy, index, offsets, winners, sparse_rows*, factors, sum* -> dweight
 *                                                                      KilnBagAttrs
 * embedding_bag_factors_grad  dy, index, offsets, weight -> dfactors   KilnBagAttrs
 *
 * `sparse_rows` (optional, i32 [1 + 2V]) lists rows as KILN_SPARSE_ROWS_ALL describes; only the
 * gradients read and write it. With `sum` (optional, the gradient's destination) they add to it and
 * to the list, and have no output. offsets: NULL when index is [B, L]. factors (optional, shaped as
 * index, for sums) multiply the rows. (* updated in place) */
typedef struct KilnSelectAttrs {
    KilnShape shape; /* of x */
    int64_t axis;
    int64_t padding; /* index without gradient; -1: none */
} KilnSelectAttrs;
typedef struct KilnBagAttrs {
    int64_t rows, mode, padding; /* rows: V; mode: KilnBagMode */
} KilnBagAttrs;

/* Word 0 of `sparse_rows` is the number of row indices that follow, each once: the only rows of the
 * gradient's destination that may be nonzero. This value instead means that any row may be. All
 * zero means that the gradient is all zero. The last V words hold each listed row's place in the
 * list; those of other rows are meaningless (Briggs and Torczon 1993). */
enum { KILN_SPARSE_ROWS_ALL = -1 };

static inline int64_t kiln_sparse_rows_words(int64_t rows)
{
    return 1 + 2 * rows;
}

/* Adds a row, unless it is listed. `rows` is V. */
static inline void kiln_sparse_rows_add(int32_t *list, int64_t rows, int32_t row)
{
    int32_t *place = list + 1 + rows + row;

    if (*place >= 0 && *place < list[0] && list[1 + *place] == row)
        return;
    *place = list[0];
    list[1 + list[0]++] = row;
}

#endif
