/* Rotary position embedding. */
#ifndef KILN_GRAPH_OPS_SEQUENCE_ROTARY_H
#define KILN_GRAPH_OPS_SEQUENCE_ROTARY_H

#include "kiln/ops.h"

#define KILN_OPS_ROTARY(X) X(rotary)

/* rotary              x [B, T, H, D], position? i32 [B] or [1] -> y        KilnRotaryAttrs
 *
 * Its gradient is the same operation with the opposite rotation. */
typedef struct KilnRotaryAttrs {
    double base;
    int64_t first; /* position of row 0, or what is added to it */
    int32_t interleaved, heads_first, back, zero;
} KilnRotaryAttrs;

#endif
