/* Functional analysis of variance: how much of the variance of a function each of its parameters
 * explains, alone and in pairs (Hutter, Hoos, Leyton-Brown, "An efficient approach for assessing
 * hyperparameter importance", ICML 2014). */
#ifndef KILN_SWEEP_REPORT_FANOVA_H
#define KILN_SWEEP_REPORT_FANOVA_H

#include "sweep/report/regression_tree.h"

typedef struct KilnFanova {
    double *single;   /* [dims]: shares of the variance, 0 to 1 */
    double *pairs;    /* [dims, dims]: what a pair adds to its two */
    double explained; /* the share of the variance that the model predicts of points it has not
                       * seen; at most 1, below 0: worse than the mean */
} KilnFanova;

/* Analyse a function known at points. All of [0, 1) of a dimension is equally likely; `weights`
 * [dims]: of a dimension with categories their probabilities. A function without variance has
 * shares of 0. The same data give the same result. `ret` lives in the arena. */
KILN_NODISCARD KilnStatus kiln_fanova(const KilnTreeData *data, const double *const *weights,
                                      KilnArena *arena, KilnFanova *ret, KilnError *err);

#endif
