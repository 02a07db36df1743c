/* A datamodule for tests of whole runs: points on both sides of a line. */
#ifndef KILN_TESTS_SUPPORT_POINTS_DATA_H
#define KILN_TESTS_SUPPORT_POINTS_DATA_H

#include "kiln_embed.h"

typedef struct PointsOpts {
    KILN_LOADING_OPTIONS;
    int64_t train_count, val_count, test_count, nan_at, skip_at, broken_at, sample_ms;
} PointsOpts;

extern const KilnField points_fields[14];

KilnStatus points_get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample, KilnError *err);

KilnStatus points_setup(KilnInstance *self, const KilnDataContext *context, KilnError *err);

KilnStatus points_spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err);

KilnStatus points_dataset(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                          KilnError *err);

void points_loading(const KilnInstance *self, KilnLoading *ret);

extern const KilnComponent points_component;

#endif
