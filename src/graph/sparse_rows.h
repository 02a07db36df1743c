/* Embeddings with sparse gradients: a list of touched rows stored beside the parameter, so that a
 * step writes only those rows. */
#ifndef KILN_GRAPH_SPARSE_ROWS_H
#define KILN_GRAPH_SPARSE_ROWS_H

#include "kiln/ops.h"

/* Like kiln_embedding and kiln_embedding_bag; factors may be NULL. `sparse_rows` is an i32 variable
 * [1 + V], zeroed once, that lives as long as the gradient's destination. While the weight's
 * gradient comes from this operation alone, a step writes only the rows that it and the previous
 * step touch. NULL: all rows are written. */
KilnTensor *kiln_embedding_sparse(KilnTensor *weight, KilnTensor *index, int64_t padding_idx,
                                  KilnTensor *sparse_rows);
KilnTensor *kiln_embedding_bag_sparse(KilnTensor *weight, KilnTensor *index, KilnTensor *offsets,
                                      KilnTensor *factors, KilnBagMode mode, int64_t padding_idx,
                                      KilnTensor *sparse_rows);

#endif
