/* Checks the gradient of an operation or a network against finite differences, in double precision
 * on the reference backend. */
#ifndef KILN_GRAPH_GRADCHECK_H
#define KILN_GRAPH_GRADCHECK_H

#include "kiln/ops.h"

/* Records a scalar from the variables. Called many times; must record the same each time. */
typedef KilnTensor *KilnGradFunction(KilnGraph *graph, KilnTensor *const *variables, void *ctx);

/* A variable and the point at which to take its gradient. */
typedef struct KilnGradVariable {
    KilnShape shape;
    double *values; /* changed during the check, restored after it */
} KilnGradVariable;

enum { KILN_GRADCHECK_VARIABLES = 8 };

/* The largest error found, |a - d| / max(1, |a|, |d|) for a gradient a and a difference d, and its
 * element. */
typedef struct KilnGradWorst {
    double error, gradient, difference;
    size_t variable;
    int64_t element;
} KilnGradWorst;

/* Compares kiln_graph_backward with central differences of half width `step`, for each element of
 * each variable (at most KILN_GRADCHECK_VARIABLES). `backend` computes in f64. */
KILN_NODISCARD KilnStatus kiln_gradcheck(KilnBackend *backend, KilnGradFunction *function,
                                         void *ctx, const KilnGradVariable *variables, size_t n,
                                         double step, KilnGradWorst *ret, KilnError *err);

#endif
