/* What was logged: last and best value of every metric, means over the epoch,
 * and what loggers have not yet heard of. */
#ifndef KILN_TRAIN_METRICS_METRICS_H
#define KILN_TRAIN_METRICS_METRICS_H

#include <jansson.h>

#include "kiln/trainer.h"
#include "train/metrics/metric_states.h"

/* Who logs; a name is a mean of its own in each. */
typedef enum KilnPhase {
    KILN_PHASE_FIT,
    KILN_PHASE_VALIDATE,
    KILN_PHASE_TEST,
    KILN_PHASE_SANITY,
    KILN_PHASE_PREDICT
} KilnPhase;

/* The best value so far of the metric at the same index, and when it was. NaN: there is none,
 * because no value was a number or because which way is better is not known. */
typedef struct KilnMetricBest {
    double value;
    int64_t epoch, step;
} KilnMetricBest;

enum { KILN_LOG_ALL = 2 * KILN_LOG_CELL - 1 }; /* all of KilnLogFlags */

typedef struct KilnMetrics KilnMetrics;

KILN_NODISCARD KilnStatus kiln_metrics_new(KilnMetrics **ret, KilnError *err);
void kiln_metrics_free(KilnMetrics *metrics);

/* The number of the name that a step of `phase` logs with these flags (not 0
 * for the step's default: see kiln_log_flags), made when it is new; -1 when
 * memory is out. */
int kiln_metrics_declare(KilnMetrics *metrics, KilnPhase phase, const char *name, unsigned flags);
/* Flags with the default of the phase put in. */
unsigned kiln_log_flags(KilnPhase phase, unsigned flags);
/* A value of the declared name from a step of `weight` samples. */
KILN_NODISCARD KilnStatus kiln_metrics_add(KilnMetrics *metrics, int declared, double value,
                                           double weight, int64_t epoch, int64_t step,
                                           KilnError *err);
/* A value outside of steps, under this very name. */
KILN_NODISCARD KilnStatus kiln_metrics_set(KilnMetrics *metrics, const char *name, double value,
                                           unsigned flags, int64_t epoch, int64_t step,
                                           KilnError *err);
/* The tally that steps of `phase` count for the metric under `name`, and its number;
 * made, and the names of its values declared, when it is new. */
KILN_NODISCARD KilnStatus kiln_metrics_tally(KilnMetrics *metrics, KilnPhase phase,
                                             KilnInstance *metric, const char *name, unsigned flags,
                                             const KilnMetricForm *form, size_t *ret,
                                             KilnError *err);
/* All tallies, for counting and for checkpoints. */
KilnMetricStates *kiln_metrics_tallies(KilnMetrics *metrics);
/* Turn the sums and tallies of a phase into the epoch's values, and start new ones. */
KILN_NODISCARD KilnStatus kiln_metrics_end_epoch(KilnMetrics *metrics, KilnPhase phase,
                                                 int64_t epoch, int64_t step, KilnError *err);
/* Drop the sums and tallies of a phase. */
void kiln_metrics_clear(KilnMetrics *metrics, KilnPhase phase);

/* The metric of that name, or the later one of those with _epoch and _step after it (at the end of
 * an epoch its mean); NULL when nothing was logged under it. */
const KilnMetric *kiln_metrics_find(const KilnMetrics *metrics, const char *name);
/* Whether it is the value of the last step of what has a mean of the epoch as well. */
bool kiln_metrics_has_mean(const KilnMetrics *metrics, const KilnMetric *metric);
size_t kiln_metrics_list(const KilnMetrics *metrics, const KilnMetric **ret);
/* In the order of the list. */
const KilnMetricBest *kiln_metrics_best(const KilnMetrics *metrics);
/* Which values are better, as KilnLogFlags say; KILN_MODE_AUTO: they don't. */
KilnMode kiln_log_mode(unsigned flags);
/* The same of the declared metric that `name` finds. */
KilnMode kiln_metrics_mode(const KilnMetrics *metrics, const char *name);
/* True when a step of `phase` declared a name that `name` finds. */
bool kiln_metrics_declared(const KilnMetrics *metrics, KilnPhase phase, const char *name);
/* The i-th name that any step declared; NULL past the end. */
const char *kiln_metrics_declared_at(const KilnMetrics *metrics, size_t i);

/* Metrics that were set since they were taken last: those of this very step,
 * or those of epochs. Borrowed until the next call on `metrics`. */
size_t kiln_metrics_take(KilnMetrics *metrics, bool epoch_values, int64_t step,
                         const KilnMetric **ret);

/* Everything as JSON, exactly; owned by the caller, NULL when memory is out. */
json_t *kiln_metrics_save(const KilnMetrics *metrics);
KILN_NODISCARD KilnStatus kiln_metrics_load(KilnMetrics *metrics, const json_t *saved,
                                            KilnError *err);

#endif
