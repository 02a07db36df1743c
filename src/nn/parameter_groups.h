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

/* The error (KILN_E_KEY) of a pattern of `option` that matches none of the names: `what` they are,
 * the nearest one and the first few. */
KilnStatus kiln_no_such_parameter(const char *option, const char *pattern, const char *what,
                                  const char *const *names, size_t n, KilnError *err);

/* For each parameter, in the order of the store, how many layers it lies below the last one. Layers
 * are numbered parts of names ("blocks.3", "layers.encoder_layer_3", "layer1.0"), in order of
 * declaration; what is declared before the first (embeddings) is below all of them, what follows
 * one (a norm, a head) is a layer above it. With numbered layers 0 .. n - 1 and a head, that is the
 * layer-wise decay of BEiT (Bao et al. 2021) and timm. `ret` has params->count elements. */
KILN_NODISCARD KilnStatus kiln_layer_depths(const KilnParams *params, int64_t *ret, KilnError *err);

/* Assigns every parameter that the optimizer trains (patterns `trained`, as in kiln_name_fits) to
 * the first group with a fitting pattern, and divides the flat buffers into segments;
 * `per_parameter`: one per parameter. Parameters that are not trained, or in a group with lr_scale
 * 0, have rate 0. A pattern that fits no parameter is an error (KILN_E_KEY) with the nearest names;
 * so is a network that is entirely frozen. */
KILN_NODISCARD KilnStatus kiln_segments_new(const KilnParams *params, const char *const *trained,
                                            const KilnOptimizerCommon *common, bool per_parameter,
                                            KilnSegments *ret, KilnError *err);
/* The factor on the learning rate of a trained parameter. */
float kiln_segments_lr_scale(const KilnSegments *segments, const KilnParam *param);
/* From the next recorded step on, exactly the parameters with a rate above 0 get gradients. */
void kiln_segments_require_grad(const KilnSegments *segments, KilnParams *params);
/* Accepts a zeroed struct. */
void kiln_segments_release(KilnSegments *segments);

#endif
