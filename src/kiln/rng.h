/* Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random
 * numbers: as easy as 1, 2, 3", SC 2011). A stream is a pure function of its
 * key, so the same sample draws the same numbers in any thread, in any order,
 * and after a resume. */
#ifndef KILN_RNG_H
#define KILN_RNG_H

#include "kiln/base.h"

/* What a stream is for; part of the key, so that purposes never share numbers. */
typedef enum KilnPurpose {
    KILN_RNG_INIT = 1,  /* initial parameters; index: hash of the name */
    KILN_RNG_SHUFFLE,   /* order of samples; epoch */
    KILN_RNG_AUGMENT,   /* per sample; epoch, index */
    KILN_RNG_DROPOUT,   /* per step and layer */
    KILN_RNG_DATA,      /* generated data sets; index */
    KILN_RNG_SPLIT,     /* train/validation split */
    KILN_RNG_BATCH,     /* transforms of batches; epoch, batch */
    KILN_RNG_GENERATE,  /* generated text; prompt, position */
    KILN_RNG_SEARCH,    /* points of a sweep; index: trial */
    KILN_RNG_USER = 100 /* first value for plugins */
} KilnPurpose;

typedef struct KilnRng {
    uint32_t key[2];
    uint32_t counter[4];
    uint32_t out[4];
    int left; /* unread words of `out` */
} KilnRng;

/* Start the stream (seed, purpose, epoch, index). */
KILN_API void kiln_rng_init(KilnRng *rng, uint64_t seed, uint32_t purpose, uint32_t epoch,
                            uint64_t index);
KILN_API uint32_t kiln_rng_u32(KilnRng *rng);
/* Uniform in [0, n), unbiased; n > 0. */
KILN_API uint32_t kiln_rng_below(KilnRng *rng, uint32_t n);
/* Uniform in [0, 1) with 24 bits, and in [low, high). */
KILN_API float kiln_rng_uniform(KilnRng *rng);
KILN_API float kiln_rng_range(KilnRng *rng, float low, float high);
/* Standard normal (Box-Muller). */
KILN_API float kiln_rng_normal(KilnRng *rng);
/* Beta(a, b), in [0, 1]: from two gamma variates (Marsaglia and Tsang, "A simple method for
 * generating gamma variables", 2000). a and b are above 0. */
KILN_API double kiln_rng_beta(KilnRng *rng, double a, double b);
/* One block of four words for a key and counter, without state. */
KILN_API void kiln_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t ret[4]);

#endif
