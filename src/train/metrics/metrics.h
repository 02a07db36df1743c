/* Everything that a run measures: names that steps log (logged_names.h), metrics with their states
 * (metric_collection.h), and the values that both lead to (metric_values.h). */
#ifndef KILN_TRAIN_METRICS_METRICS_H
#define KILN_TRAIN_METRICS_METRICS_H

#include <jansson.h>

#include "kiln/tools/text.h"
#include "kiln/trainer.h"
#include "train/loop/phase.h"
#include "train/metrics/logged_names.h"
#include "train/metrics/metric_collection.h"
#include "train/metrics/metric_values.h"

typedef struct KilnMetrics {
    KilnLoggedNames names;
    KilnMetricCollection collection;
    KilnMetricValues values;
} KilnMetrics;

KILN_NODISCARD KilnStatus kiln_metrics_new(KilnMetrics **ret, KilnError *err);
/* Accepts NULL. */
void kiln_metrics_free(KilnMetrics *metrics);

/* ---- Logging ---------------------------------------------------------------------------- */

/* The number of the name that a step of `phase` logs with these flags (not 0 for the step's
 * default: see kiln_log_flags), added when it is new; -1 when memory is out. */
int kiln_metrics_declare(KilnMetrics *metrics, KilnPhase phase, const char *name, unsigned flags);
/* Flags with the default of the phase filled in. */
unsigned kiln_log_flags(KilnPhase phase, unsigned flags);
/* Add a value of the declared name from a step of `weight` samples. */
KILN_NODISCARD KilnStatus kiln_metrics_add(KilnMetrics *metrics, int declared, double value,
                                           double weight, int64_t epoch, int64_t step,
                                           KilnError *err);
/* Set the step value of the declared name alone. */
KILN_NODISCARD KilnStatus kiln_metrics_set_step(KilnMetrics *metrics, int declared, double value,
                                                int64_t epoch, int64_t step, KilnError *err);
/* Set a value outside of steps, under exactly this name. */
KILN_NODISCARD KilnStatus kiln_metrics_set(KilnMetrics *metrics, const char *name, double value,
                                           unsigned flags, int64_t epoch, int64_t step,
                                           KilnError *err);
/* The number in metrics->collection of the state that steps of `phase` update for `metric` under
 * `name`. When it is new, it is added, and the names of its values are declared. */
KILN_NODISCARD KilnStatus kiln_metrics_get_state(KilnMetrics *metrics, KilnPhase phase,
                                                 KilnInstance *metric, const char *name,
                                                 unsigned flags, const KilnMetricForm *form,
                                                 size_t *ret, KilnError *err);
/* Compute the epoch's values of a phase, and reset its sums and states. */
KILN_NODISCARD KilnStatus kiln_metrics_end_epoch(KilnMetrics *metrics, KilnPhase phase,
                                                 int64_t epoch, int64_t step, KilnError *err);
/* Reset the sums and states of a phase. */
void kiln_metrics_clear(KilnMetrics *metrics, KilnPhase phase);

/* ---- Reading ---------------------------------------------------------------------------- */

/* The metric of that name; or the later one of NAME_step and NAME_epoch (at the end of an epoch,
 * the epoch's). NULL: nothing was logged under it. */
const KilnMetric *kiln_metrics_find(const KilnMetrics *metrics, const char *name);
/* Whether it is the step value of a name that has an epoch value, too. */
bool kiln_metrics_has_epoch_value(const KilnMetrics *metrics, const KilnMetric *metric);
size_t kiln_metrics_list(const KilnMetrics *metrics, const KilnMetric **ret);
/* In the order of the list. */
const KilnMetricBest *kiln_metrics_best(const KilnMetrics *metrics);
/* kiln_log_mode of the declared metric that `name` finds. */
KilnMode kiln_metrics_mode(const KilnMetrics *metrics, const char *name);
/* Whether a step of `phase` declared a name that `name` finds. */
bool kiln_metrics_declared(const KilnMetrics *metrics, KilnPhase phase, const char *name);
/* The i-th name that any step declared; NULL past the end. */
const char *kiln_metrics_declared_at(const KilnMetrics *metrics, size_t i);
/* Take the values that loggers have not received: those of this step, or of epochs. Borrowed until
 * the next call on `metrics`. */
size_t kiln_metrics_take(KilnMetrics *metrics, bool of_epochs, int64_t step,
                         const KilnMetric **ret);

/* ---- Of several ranks (metrics_merge.c) ------------------------------------------------------ */

/* Append what steps of `phase` have logged and counted since the last reset, with the values of
 * global step `step`. */
void kiln_metrics_pack(const KilnMetrics *metrics, KilnPhase phase, int64_t step, KilnText *ret);
/* Add what another rank packed. */
KILN_NODISCARD KilnStatus kiln_metrics_merge(KilnMetrics *metrics, KilnPhase phase, int64_t epoch,
                                             int64_t step, const char *packed, size_t bytes,
                                             KilnError *err);

/* ---- In a checkpoint (metrics_json.c) ------------------------------------------------------ */

/* Values and sums as JSON, exactly; owned by the caller, NULL when memory is out. */
json_t *kiln_metrics_save(const KilnMetrics *metrics);
KILN_NODISCARD KilnStatus kiln_metrics_load(KilnMetrics *metrics, const json_t *saved,
                                            KilnError *err);

#endif
