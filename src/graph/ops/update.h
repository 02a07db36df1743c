/* Operations that write a variable in place, and what clipping needs. */
#ifndef KILN_GRAPH_OPS_UPDATE_H
#define KILN_GRAPH_OPS_UPDATE_H

#include "kiln/ops.h"

#define KILN_OPS_UPDATE(X)                                                                         \
    X(ema_update)                                                                                  \
    X(lerp_update)                                                                                 \
    X(clamp_update)                                                                                \
    X(increment)                                                                                   \
    X(l2_norm)                                                                                     \
    X(clip_factor)                                                                                 \
    X(sgd_update)                                                                                  \
    X(adam_update)                                                                                 \
    X(rmsprop_update)                                                                              \
    X(adagrad_update)                                                                              \
    X(lamb_update)                                                                                 \
    X(lion_update)                                                                                 \
    X(adan_update)

/* ema_update          variable*, value ->                 KilnScaleAttrs (momentum); plus
 *                     `correction` (unbiased variance) as factor on value
 * lerp_update         variable*, value, weight ->
 * clamp_update        variable* ->                        KilnLimitAttrs
 * increment           variable* i64 ->
 * l2_norm             x -> scalar
 * clip_factor         norm -> scalar                      KilnLimitAttrs
 * <optimizer>_update  param*, grad, hyper, ends? i64, rates?, scale?, parts? i64, norms*?, slots*?
 * -> Kiln<Optimizer>
 * (* updated in place; ? optional) */

typedef struct KilnLimitAttrs {
    double limit;
} KilnLimitAttrs;

/* Inputs of the optimizers' updates, in order; slot i is KILN_FLAT_SLOTS + i. */
enum {
    KILN_FLAT_PARAM,
    KILN_FLAT_GRAD,
    KILN_FLAT_HYPER,
    KILN_FLAT_ENDS,
    KILN_FLAT_RATES,
    KILN_FLAT_SCALE,
    KILN_FLAT_PARTS,
    KILN_FLAT_NORMS,
    KILN_FLAT_SLOTS,
    KILN_FLAT_INPUTS = KILN_FLAT_SLOTS + KILN_MAX_SLOTS
};

#endif
