/* Embeddings whose gradient has a memory of the rows that it touched. For layers,
 * which keep that memory beside the parameter. */
#ifndef KILN_GRAPH_SPARSE_ROWS_H
#define KILN_GRAPH_SPARSE_ROWS_H

#include "kiln/ops.h"

/* As kiln_embedding and kiln_embedding_bag; factors may be NULL. `sparse_rows` is a variable i32 [1
 * + V], zeroed once, with a life as long as the gradient's place: while the weight's gradient comes
 * from this operation alone, a step writes only the rows that it and the one before
 * touch. NULL: all rows are written. */
KilnTensor *kiln_embedding_sparse(KilnTensor *weight, KilnTensor *index, int64_t padding_idx,
                                  KilnTensor *sparse_rows);
KilnTensor *kiln_embedding_bag_sparse(KilnTensor *weight, KilnTensor *index, KilnTensor *offsets,
                                      KilnTensor *factors, KilnBagMode mode, int64_t padding_idx,
                                      KilnTensor *sparse_rows);

#endif
