/* Checks that operations share, with uniform messages. Recording prefixes the layer and the
 * operation. */
#ifndef KILN_GRAPH_OP_CHECK_H
#define KILN_GRAPH_OP_CHECK_H

#include "graph/op.h"

/* Rank, sizes of at least 1, and less than 2^31 elements. */
KILN_NODISCARD KilnStatus kiln_shape_check(const KilnShape *shape, KilnError *err);

/* Checks of input i, which messages call `name`. All succeed on an absent input, as only optional
 * inputs can be absent. */
KILN_NODISCARD KilnStatus kiln_check_dtype(const KilnNode *node, int i, const char *name,
                                           KilnDType dtype, KilnError *err);
/* The graph's float type. */
KILN_NODISCARD KilnStatus kiln_check_float(const KilnNode *node, int i, const char *name,
                                           KilnError *err);
/* Float, and of this rank; `form` names the axes: "[N, H, W, C]". */
KILN_NODISCARD KilnStatus kiln_check_rank(const KilnNode *node, int i, const char *name, int rank,
                                          const char *form, KilnError *err);
/* Float, and of exactly this shape. */
KILN_NODISCARD KilnStatus kiln_check_shape(const KilnNode *node, int i, const char *name,
                                           const KilnShape *shape, KilnError *err);
/* Float, at least one axis: [..., C]. */
KILN_NODISCARD KilnStatus kiln_check_rows(const KilnNode *node, int i, const char *name,
                                          KilnError *err);

/* A position that is data: i32 [1], or [batch]. */
KILN_NODISCARD KilnStatus kiln_check_position(const KilnNode *node, int i, int64_t batch,
                                              KilnError *err);

/* Sets type and shape of output i. */
void kiln_infer_output(KilnNode *node, int i, KilnDType dtype, const KilnShape *shape);
/* Makes output 0 a float of input i's shape. */
void kiln_infer_like(KilnNode *node, int i);
/* The graph's float type. */
KilnDType kiln_node_float(const KilnNode *node);

/* Copies a shape into zeroed attributes; unused axes stay zero. */
void kiln_shape_store(KilnShape *attr, const KilnShape *shape);

/* Input i, unless absent, is a list of the sparse rows of a tensor [rows, ...], as
 * ops/sequence/embedding.h describes. */
KILN_NODISCARD KilnStatus kiln_check_sparse_rows(const KilnNode *node, int i, int64_t rows,
                                                 KilnError *err);

#endif
