/* In-place updates except optimizers, and gradient clipping by norm. */
#ifndef KILN_GRAPH_OPS_TRAINING_UPDATES_H
#define KILN_GRAPH_OPS_TRAINING_UPDATES_H

#include "kiln/ops.h"

#define KILN_OPS_UPDATES(X)                                                                        \
    X(ema_update)                                                                                  \
    X(lerp_update)                                                                                 \
    X(clamp_update)                                                                                \
    X(increment)                                                                                   \
    X(l2_norm)                                                                                     \
    X(clip_factor)
/* ema_update          variable*, value ->                 KilnScaleAttrs (momentum); plus
 *                     `correction` (unbiased variance) as factor on value
 * lerp_update         variable*, value, weight ->
 * clamp_update        variable*, rows? ->                 KilnLimitAttrs
 * increment           variable* i64 ->
 * l2_norm             x, rows? -> scalar
 * clip_factor         norm -> scalar                      KilnLimitAttrs
 * (* updated in place; ? optional. rows: i32 [1 + 2V], a list as in ops/sequence/embedding.h: the
 * only rows of x or variable [V, ...] that may be nonzero.) */

typedef struct KilnLimitAttrs {
    double limit;
} KilnLimitAttrs;

#endif
