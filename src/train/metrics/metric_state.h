/* The state of a metric: arrays by name, which the metric fills and a checkpoint saves. */
#ifndef KILN_TRAIN_METRICS_METRIC_STATE_H
#define KILN_TRAIN_METRICS_METRIC_STATE_H

#include "kiln/metric.h"

enum { KILN_METRIC_STATE_ARRAYS = 8 };

typedef struct KilnMetricStateArray {
    char name[32];
    KilnDType dtype; /* i64 and f64: zeros after a reset; others: an empty list after it */
    void *data;
    int64_t n, capacity;
} KilnMetricStateArray;

struct KilnMetricState {
    KilnInstance *metric;
    KilnMetricForm form;
    KilnMetricStateArray arrays[KILN_METRIC_STATE_ARRAYS];
    size_t n_arrays;
    KilnMetricResult *values;
    size_t n_values, values_capacity;
};

/* Restore an array. `data` has n elements and is consumed, also on failure. */
KILN_NODISCARD KilnStatus kiln_metric_state_restore(KilnMetricState *state, const char *name,
                                                    KilnDType dtype, void *data, int64_t n,
                                                    KilnError *err);
/* Add another rank's state of the same metric and form. */
KILN_NODISCARD KilnStatus kiln_metric_state_merge(KilnMetricState *state, KilnMetricState *other,
                                                  KilnError *err);

#endif
