/* Runs: neighbours in the flat buffers that are updated with the same numbers. */
#ifndef KILN_NN_GROUPS_H
#define KILN_NN_GROUPS_H

#include "kiln/module.h"

typedef struct KilnRuns {
    int64_t *ends; /* [count] */
    float *rates;  /* [count, 2], as KilnFlat has them */
    size_t count;
} KilnRuns;

/* Put every trained parameter into the first of the optimizer's groups that one of
 * whose patterns fits, freeze those with lr_scale 0, and cut the flat buffers into
 * runs; `per_parameter`: one for each parameter. A pattern that fits no parameter is
 * an error (KILN_E_KEY) with the nearest names; so is a network all frozen. */
KILN_NODISCARD KilnStatus kiln_runs_new(KilnParams *params, const KilnOptimizerCommon *common,
                                        bool per_parameter, KilnRuns *ret, KilnError *err);
/* Accepts a zeroed struct. */
void kiln_runs_release(KilnRuns *runs);

#endif
