/* Connectionist temporal classification. */
#ifndef KILN_GRAPH_OPS_SEQUENCE_CTC_H
#define KILN_GRAPH_OPS_SEQUENCE_CTC_H

#include "kiln/ops.h"

#define KILN_OPS_CTC(X)                                                                            \
    X(ctc)                                                                                         \
    X(ctc_grad)

/* ctc       log_probs [T,N,C], targets i32 [N,S], input_lengths i32 [N],
 *           target_lengths i32 [N] -> loss, scalar or [N]           KilnCtcAttrs
 * ctc_grad  dloss, log_probs, targets, input_lengths, target_lengths
 *           -> dlog_probs                                           KilnCtcAttrs */
typedef struct KilnCtcAttrs {
    int64_t blank, zero_infinity, reduction; /* reduction: KilnReduction */
} KilnCtcAttrs;

#endif
