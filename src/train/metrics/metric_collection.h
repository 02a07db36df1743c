/* The metrics of a run with their states: one state for each metric, phase and name. */
#ifndef KILN_TRAIN_METRICS_METRIC_COLLECTION_H
#define KILN_TRAIN_METRICS_METRIC_COLLECTION_H

#include "base/arena.h"
#include "tensor/safetensors.h"
#include "train/loop/phase.h"
#include "train/metrics/metric_state.h"

typedef struct KilnCollectedMetric {
    KilnInstance *metric;
    KilnPhase phase;
    char *name;
    unsigned flags;
    KilnMetricState *state;
} KilnCollectedMetric;

/* Zeroed at the start. */
typedef struct KilnMetricCollection {
    KilnCollectedMetric *list;
    size_t n, capacity;
} KilnMetricCollection;

void kiln_metric_collection_release(KilnMetricCollection *collection);
/* The number of that metric, phase and name, added when it is new. KILN_E_SHAPE when its state is
 * for rows of another width. */
KILN_NODISCARD KilnStatus kiln_metric_collection_get(KilnMetricCollection *collection,
                                                     KilnPhase phase, KilnInstance *metric,
                                                     const char *name, unsigned flags,
                                                     const KilnMetricForm *form, size_t *ret,
                                                     KilnError *err);
/* Reset the states of a phase. */
void kiln_metric_collection_reset(KilnMetricCollection *collection, KilnPhase phase);

/* The states of a phase as tensors of a checkpoint: "metrics.<name>.<array>" for each array that is
 * not empty, at most KILN_METRIC_STATE_ARRAYS for each state. `names` holds the texts. */
KILN_NODISCARD KilnStatus kiln_metric_collection_save(const KilnMetricCollection *collection,
                                                      KilnPhase phase, KilnArena *names,
                                                      KilnStView *views, size_t *n, KilnError *err);
/* Restore them. A state that the file lacks stays empty. */
KILN_NODISCARD KilnStatus kiln_metric_collection_load(KilnMetricCollection *collection,
                                                      KilnPhase phase, const KilnSafetensors *file,
                                                      KilnError *err);

#endif
