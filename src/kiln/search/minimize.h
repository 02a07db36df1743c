/* The minimum of a smooth function of several variables within bounds. */
#ifndef KILN_MINIMIZE_H
#define KILN_MINIMIZE_H

#include "kiln/base.h"

/* A function to minimize. Borrowed for a call. */
typedef struct KilnSmoothFunction {
    size_t n;                 /* variables */
    const double *low, *high; /* bounds of each variable; equal: it stays there */
    /* The value at `x` and its gradient. A value that is not finite is no minimum. */
    double (*value)(void *ctx, const double *x, double *ret_gradient);
    void *ctx;
} KilnSmoothFunction;

/* Go from `x`, which lies within the bounds, downhill to a local minimum, with at most `most` calls
 * of the function, at least 1. `x` becomes the best point found, *ret_value the value there. */
KILN_API KILN_NODISCARD KilnStatus kiln_minimize(const KilnSmoothFunction *function, size_t most,
                                                 double *x, double *ret_value, KilnError *err);

#endif
