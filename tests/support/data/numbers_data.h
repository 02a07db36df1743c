/* A data set of numbers, and a loader over it. */
#ifndef KILN_TESTS_SUPPORT_NUMBERS_DATA_H
#define KILN_TESTS_SUPPORT_NUMBERS_DATA_H

#include "tests/support/data/data_fixture.h"
#include "train/loader/loader.h"

enum { COUNT = 53, BATCH = 8, BATCHES = 7 };

/* A data set. Sample i has i, some numbers drawn from its own stream, and a label. */
typedef struct Numbers {
    int64_t skip;  /* every n-th sample is left out; 0: none */
    int64_t fails; /* this sample cannot be read; -1: none */
} Numbers;

KilnStatus numbers_get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample, KilnError *err);

/* `sampler` may be NULL: in order. */
KilnLoaderSpec spec_of(Numbers *numbers, int workers, KilnInstance *sampler);

KilnLoader *loader_of(const KilnLoaderSpec *spec);

Built build_sampler(const char *name, const char *options);

#endif
