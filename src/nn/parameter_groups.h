/* Parameter segments: ranges of the flat buffers that are updated with the same rates. */
#ifndef KILN_NN_PARAMETER_GROUPS_H
#define KILN_NN_PARAMETER_GROUPS_H

#include "kiln/module.h"

typedef struct KilnSegments {
    int64_t *ends; /* [count] */
    float *rates;  /* [count, 2], as in KilnFlat */
    size_t count;
} KilnSegments;

/* Whether a parameter's name fits one of the patterns (NULL-terminated; NULL fits all). */
bool kiln_name_fits(const char *const *patterns, const char *name);

/* Assigns every parameter that the optimizer trains (patterns `trained`, as in kiln_name_fits) to
 * the first group with a fitting pattern, and divides the flat buffers into segments;
 * `per_parameter`: one per parameter. Parameters that are not trained, or in a group with lr_scale
 * 0, have rate 0. A pattern that fits no parameter is an error (KILN_E_KEY) with the nearest names;
 * so is a network that is entirely frozen. */
KILN_NODISCARD KilnStatus kiln_segments_new(const KilnParams *params, const char *const *trained,
                                            const KilnOptimizerCommon *common, bool per_parameter,
                                            KilnSegments *ret, KilnError *err);
/* From the next recorded step on, exactly the parameters with a rate above 0 get gradients. */
void kiln_segments_require_grad(const KilnSegments *segments, KilnParams *params);
/* Accepts a zeroed struct. */
void kiln_segments_release(KilnSegments *segments);

#endif
