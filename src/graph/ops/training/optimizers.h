/* Optimizer operations. optimizers.c says where formula and kernel of each are. */
#ifndef KILN_GRAPH_OPS_TRAINING_OPTIMIZERS_H
#define KILN_GRAPH_OPS_TRAINING_OPTIMIZERS_H

#include "kiln/ops.h"

#define KILN_OPS_OPTIMIZERS(X)                                                                     \
    X(sgd_update)                                                                                  \
    X(adam_update)                                                                                 \
    X(rmsprop_update)                                                                              \
    X(adagrad_update)                                                                              \
    X(lamb_update)                                                                                 \
    X(lion_update)                                                                                 \
    X(adan_update)

/* NAME_update  param*, grad, hyper, segment_ends? i64, rates?, scale?, part_ends? i64, norms*?,
 *              slots*? ->                                           KilnNAME
 * (* updated in place; ? optional; KilnFlat in kiln/ops.h describes each. segment_ends may instead
 * be i32, a list of rows as in ops/sequence/embedding.h.) */

/* Inputs of an optimizer operation, in order; slot i is KILN_FLAT_SLOTS + i. */
enum {
    KILN_FLAT_PARAM,
    KILN_FLAT_GRAD,
    KILN_FLAT_HYPER,
    KILN_FLAT_SEGMENT_ENDS,
    KILN_FLAT_RATES,
    KILN_FLAT_SCALE,
    KILN_FLAT_PART_ENDS,
    KILN_FLAT_NORMS,
    KILN_FLAT_SLOTS,
    KILN_FLAT_INPUTS = KILN_FLAT_SLOTS + KILN_MAX_SLOTS,
    KILN_FLAT_ROWS = KILN_FLAT_SEGMENT_ENDS, /* i32 */
};

#endif
