/* Linear-chain conditional random fields. */
#ifndef KILN_GRAPH_OPS_SEQUENCE_CRF_H
#define KILN_GRAPH_OPS_SEQUENCE_CRF_H

#include "kiln/ops.h"

#define KILN_OPS_CRF(X)                                                                            \
    X(crf_loss)                                                                                    \
    X(crf_loss_grad)                                                                               \
    X(crf_decode)

/* crf_loss       emissions [B,T,K], tags i32 [B,T], lengths i32 [B], start [K], end [K],
 *                transitions [K,K] -> loss [B]
 * crf_loss_grad  dloss [B], the inputs of crf_loss -> demissions, dstart, dend, dtransitions
 * crf_decode     emissions, lengths, start, end, transitions -> tags i32 [B,T] */

#endif
