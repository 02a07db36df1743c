/* Runs: neighbours in the flat buffers that are updated with the same numbers. */
#ifndef KILN_NN_PARAMETER_GROUPS_H
#define KILN_NN_PARAMETER_GROUPS_H

#include "kiln/module.h"

typedef struct KilnSegments {
    int64_t *ends; /* [count] */
    float *rates;  /* [count, 2], as KilnFlat has them */
    size_t count;
} KilnSegments;

/* Whether a parameter's name fits one of the patterns (NULL-terminated; NULL: all do). */
bool kiln_name_fits(const char *const *patterns, const char *name);

/* Put every parameter that the optimizer trains (patterns `trained`, as kiln_name_fits) into the
 * first of its groups that one of whose patterns fits, and cut the flat buffers into runs;
 * `per_parameter`: one for each parameter. The rate of those that are not trained, or in a
 * group with lr_scale 0, is 0. A pattern that fits no parameter is an error (KILN_E_KEY) with the
 * nearest names; so is a network all frozen. */
KILN_NODISCARD KilnStatus kiln_segments_new(const KilnParams *params, const char *const *trained,
                                            const KilnOptimizerCommon *common, bool per_parameter,
                                            KilnSegments *ret, KilnError *err);
/* From the next recorded step on, parameters whose rate is 0 get no gradients, and others do. */
void kiln_segments_require_grad(const KilnSegments *segments, KilnParams *params);
/* Accepts a zeroed struct. */
void kiln_segments_release(KilnSegments *segments);

#endif
