/* Values as they should be for a model that expects a normal distribution. */
#ifndef KILN_NORMALIZE_H
#define KILN_NORMALIZE_H

#include "kiln/base.h"

/* Give `n` finite values mean 0 and variance 1, in the same order and without a long tail: one loss
 * of a diverged run would make all others look the same. Equal values become 0. Values are scaled
 * by their interquartile range, those beyond 10 times of what it is for a standard normal variable
 * become equal, and all are transformed: Yeo and Johnson, "A new family of power transformations to
 * improve normality or symmetry" (2000), with the most likely of the powers 0.5, 0.625, ..., 3. */
KILN_API KILN_NODISCARD KilnStatus kiln_normalize(double *values, size_t n, KilnError *err);

#endif
