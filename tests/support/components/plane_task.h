/* A task for tests of whole runs: classifies the points of points_data.h with one hidden layer. */
#ifndef KILN_TESTS_SUPPORT_PLANE_TASK_H
#define KILN_TESTS_SUPPORT_PLANE_TASK_H

#include "kiln_embed.h"

typedef struct PlaneOpts {
    KilnInstance *optimizer, *scheduler;
    KilnInstance **metrics;
    size_t metrics_count;
    int64_t hidden;
    bool misfit;
} PlaneOpts;

typedef struct PlaneState {
    KilnLinear hidden, out;
} PlaneState;

extern const KilnField plane_fields[6];

KilnStatus plane_setup(KilnInstance *self, const KilnScope *scope, const KilnDataSpec *data,
                       KilnError *err);

KilnTensor *plane_forward(KilnInstance *self, KilnStep *step);

KilnTensor *plane_train(KilnInstance *self, KilnStep *step);

void plane_validate(KilnInstance *self, KilnStep *step);

void plane_test(KilnInstance *self, KilnStep *step);

void plane_predict(KilnInstance *self, KilnStep *step);

KilnStatus plane_optimizers(KilnInstance *self, KilnOptimizers *ret, KilnError *err);

extern const KilnComponent plane_component;

#endif
