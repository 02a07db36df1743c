/* Fully connected layers with ReLU between them, as a part of models. */
#ifndef KILN_LINEAR_STACK_H
#define KILN_LINEAR_STACK_H

#include "kiln/nn.h"

typedef struct KilnLinearStack {
    KilnLinear *layers; /* [n]; owned */
    size_t n;
} KilnLinearStack;

/* Declare SCOPE.0, SCOPE.1, ...: linear layers from `in` features to widths[0], ..., widths[n - 1].
 * n may be 0. */
KILN_API KILN_NODISCARD KilnStatus kiln_linear_stack_init(KilnLinearStack *ret,
                                                          const KilnScope *scope, int64_t in,
                                                          const int64_t *widths, size_t n,
                                                          KilnError *err);
/* x [..., in]: the last layer's result, with ReLU if `relu_last`; x itself without layers. */
KILN_API KilnTensor *kiln_linear_stack(const KilnLinearStack *stack, KilnTensor *x, bool relu_last);
/* Accepts a zeroed struct. */
KILN_API void kiln_linear_stack_release(KilnLinearStack *stack);

#endif
