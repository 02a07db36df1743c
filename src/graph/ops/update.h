/* Operations that write a variable in place. */
#ifndef KILN_GRAPH_OPS_UPDATE_H
#define KILN_GRAPH_OPS_UPDATE_H

#include "kiln/ops.h"

#define KILN_OPS_UPDATE(X)                                                                         \
    X(ema_update)                                                                                  \
    X(increment)                                                                                   \
    X(sgd_update)                                                                                  \
    X(adam_update)

/* ema_update          variable*, value ->                 KilnScaleAttrs (momentum); plus
 *                     `correction` (unbiased variance) as factor on value
 * increment           variable* i64 ->
 * sgd_update          param*, grad, momentum_buffer*?, hyper ->        KilnSgd
 * adam_update         param*, grad, exp_avg*, exp_avg_sq*, hyper ->    KilnAdam
 * (* updated in place; ? optional) */

#endif
