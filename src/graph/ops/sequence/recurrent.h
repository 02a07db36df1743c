/* Recurrent layers: everything after the product with the inputs. */
#ifndef KILN_GRAPH_OPS_SEQUENCE_RECURRENT_H
#define KILN_GRAPH_OPS_SEQUENCE_RECURRENT_H

#include "kiln/ops.h"

#define KILN_OPS_RECURRENT(X)                                                                      \
    X(lstm)                                                                                        \
    X(lstm_grad)                                                                                   \
    X(gru)                                                                                         \
    X(gru_grad)

/* lstm       p [T, B, 4H], weight [4H, H], h0 [B, H]?, c0 [B, H]?, lengths i32 [B]?
 *            -> gates [T, B, 4H], y [T, B, H], h [B, H], c [B, H], cells [T, B, H]
 * lstm_grad  gates, dy?, dh?, dc?, weight, h0?, c0?, lengths?, y, cells
 *            -> dp, dweight, dh0, dc0                                 KilnRecurrentAttrs
 * gru        p [T, B, 3H], weight [3H, H], h0?, lengths?, bias [3H]?
 *            -> gates [T, B, 3H], y, h, hidden [T, B, H]
 * gru_grad   gates, dy?, dh?, weight, h0?, lengths?, y, hidden
 *            -> dp, dweight, dh0, dbias
 *
 * p is the inputs' contribution to the gates, computed outside the recurrence. gates are stored
 * after sigmoid and tanh; cells are the cells after each step; hidden is the hidden state's
 * contribution to the third gate, before the first gate multiplies it. batch_first swaps the first
 * two axes. */
typedef struct KilnRecurrentAttrs {
    int32_t reverse, batch_first;
} KilnRecurrentAttrs;

#endif
