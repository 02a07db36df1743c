/* Declares elementwise operations, descriptor and map rule in one line, and their shared functions.
 */
#ifndef KILN_GRAPH_OPS_MAPPED_H
#define KILN_GRAPH_OPS_MAPPED_H

#include "graph/op.h"

/* The shape that all inputs broadcast to, by PyTorch's rules. */
KILN_NODISCARD KilnStatus kiln_broadcast_shapes(const KilnNode *node, KilnShape *ret,
                                                KilnError *err);
/* The sum of dy over the axes along which `shape` was broadcast to dy's. */
KilnTensor *kiln_sum_to(KilnTensor *dy, const KilnShape *shape);
/* The map step of a mapped operation: inputs in order, numbers from attrs. */
KilnMapStep kiln_map_step_of(const KilnNode *node, KilnMapCode code);
/* Float inputs that broadcast; a float result. */
KILN_NODISCARD KilnStatus kiln_infer_mapped(KilnNode *node, KilnError *err);
/* Records as many of a, b, c as the operation has inputs, and p, q if it has attributes. */
KilnTensor *kiln_record_mapped(const KilnOp *op, KilnTensor *a, KilnTensor *b, KilnTensor *c,
                               double p, double q);

#define KILN_MAPPED_RULE(NAME, CODE)                                                               \
    static bool map_##NAME(const KilnNode *node, KilnMapStep *ret)                                 \
    {                                                                                              \
        *ret = kiln_map_step_of(node, KILN_MAP_##CODE);                                            \
        return true;                                                                               \
    }

/* CONSTANT: as in KilnOp. NUMBERS: 1 if the attributes are KilnNumberAttrs, 0 if there are none. */
#define KILN_MAPPED_OP(NAME, CODE, INPUTS, INFER, GRADIENT, CONSTANT, AUTOCAST, NUMBERS)           \
    KILN_MAPPED_RULE(NAME, CODE)                                                                   \
    const KilnOp kiln_op_##NAME = {                                                                \
        .name = #NAME,                                                                             \
        .n_inputs = (INPUTS),                                                                      \
        .n_outputs = 1,                                                                            \
        .attrs_size = (NUMBERS) * sizeof(KilnNumberAttrs),                                         \
        .infer = (INFER),                                                                          \
        .gradient = (GRADIENT),                                                                    \
        .constant = (CONSTANT),                                                                    \
        .map = map_##NAME,                                                                         \
        .autocast = KILN_AUTOCAST_##AUTOCAST,                                                      \
        .bf16_inputs = ~0u,                                                                        \
        .bf16_outputs = 1,                                                                         \
    };

#define KILN_MAPPED(NAME, CODE, INPUTS, GRADIENT, AUTOCAST, NUMBERS)                               \
    KILN_MAPPED_OP(NAME, CODE, INPUTS, kiln_infer_mapped, GRADIENT, 0, AUTOCAST, NUMBERS)
/* The derivative is 0 everywhere. */
#define KILN_MAPPED_CONSTANT(NAME, CODE, INPUTS)                                                   \
    KILN_MAPPED_OP(NAME, CODE, INPUTS, kiln_infer_mapped, NULL, ~0u, FOLLOW, 0)

#endif
