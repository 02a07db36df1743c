/* The tallies of a run: one for each metric and name that the steps of a phase count. */
#ifndef KILN_TRAIN_METRICS_METRIC_STATES_H
#define KILN_TRAIN_METRICS_METRIC_STATES_H

#include "base/arena.h"
#include "tensor/safetensors.h"
#include "train/metrics/metric_state.h"

typedef struct KilnCounted {
    KilnInstance *metric;
    int phase; /* KilnPhase */
    char *name;
    unsigned flags;
    KilnMetricState *state;
} KilnCounted;

/* Zeroed at the start. */
typedef struct KilnMetricStates {
    KilnCounted *list;
    size_t n;
} KilnMetricStates;

void kiln_metric_states_release(KilnMetricStates *states);
/* The number of the tally of that metric, phase and name, made when it is new.
 * KILN_E_SHAPE when it was made for rows of another width. */
KILN_NODISCARD KilnStatus kiln_metric_states_get(KilnMetricStates *states, int phase,
                                                 KilnInstance *metric, const char *name,
                                                 unsigned flags, const KilnMetricForm *form,
                                                 size_t *ret, KilnError *err);
void kiln_metric_states_reset(KilnMetricStates *states, int phase);

/* What a checkpoint keeps of the tallies of a phase: a tensor "metrics.<name>.<array>"
 * for each array that is not empty. At most KILN_TALLY_ARRAYS for each tally; `names`
 * gets the texts. */
KILN_NODISCARD KilnStatus kiln_metric_states_save(const KilnMetricStates *states, int phase,
                                                  KilnArena *names, KilnStView *views, size_t *n,
                                                  KilnError *err);
/* And back: of a tally that the file lacks nothing was counted. */
KILN_NODISCARD KilnStatus kiln_metric_states_load(KilnMetricStates *states, int phase,
                                                  const KilnSafetensors *file, KilnError *err);

#endif
