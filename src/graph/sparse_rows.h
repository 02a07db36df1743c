/* Embeddings with sparse gradients: a list of touched rows stored beside the parameter, so that a
 * step writes only those rows, and what follows it reads only those. */
#ifndef KILN_GRAPH_SPARSE_ROWS_H
#define KILN_GRAPH_SPARSE_ROWS_H

#include "kiln/ops.h"

/* Like kiln_embedding and kiln_embedding_bag; factors may be NULL. `sparse_rows` is an i32 variable
 * [1 + 2V], zeroed once, that lives as long as the gradient's destination; ops/sequence/embedding.h
 * says what it holds. While the weight's gradient comes from these operations alone, a step writes
 * only the rows that it and the previous step touch. NULL: all rows are written. */
KilnTensor *kiln_embedding_sparse(KilnTensor *weight, KilnTensor *index, int64_t padding_idx,
                                  KilnTensor *sparse_rows);
KilnTensor *kiln_embedding_bag_sparse(KilnTensor *weight, KilnTensor *index, KilnTensor *offsets,
                                      KilnTensor *factors, KilnBagMode mode, int64_t padding_idx,
                                      KilnTensor *sparse_rows);

/* kiln_l2_norm and kiln_clamp_update of a gradient [V, ...], over the listed rows. */
KilnTensor *kiln_l2_norm_sparse(KilnTensor *gradient, KilnTensor *sparse_rows);
void kiln_clamp_update_sparse(KilnTensor *gradient, KilnTensor *sparse_rows, double limit);

#endif
