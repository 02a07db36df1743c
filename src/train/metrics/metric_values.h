/* The last and the best value of every metric, and which of them loggers have not received yet. */
#ifndef KILN_TRAIN_METRICS_METRIC_VALUES_H
#define KILN_TRAIN_METRICS_METRIC_VALUES_H

#include "kiln/trainer.h"

/* The best value of a metric so far, and when it was. NaN: there is none, because no value was a
 * number, or because the metric does not declare which values are better. */
typedef struct KilnMetricBest {
    double value;
    int64_t epoch, step;
} KilnMetricBest;

/* Arrays of the same length, in the order of first logging. Zeroed at the start. */
typedef struct KilnMetricValues {
    KilnMetric *list;
    KilnMetricBest *best;
    bool *unsent;     /* set since loggers took it last */
    KilnMetric *sent; /* scratch of kiln_metric_values_take */
    size_t n, capacity;
} KilnMetricValues;

void kiln_metric_values_release(KilnMetricValues *values);
/* NULL: there is none of that name. */
KilnMetric *kiln_metric_values_find(const KilnMetricValues *values, const char *name);
/* The number of the metric of that name, added when it is new. */
KILN_NODISCARD KilnStatus kiln_metric_values_get(KilnMetricValues *values, const char *name,
                                                 size_t *ret, KilnError *err);
void kiln_metric_values_put(KilnMetricValues *values, size_t i, double value, unsigned flags,
                            int64_t epoch, int64_t step);
/* Take the unsent values for the loggers: those of this step, or of epochs. Borrowed until the next
 * call. */
size_t kiln_metric_values_take(KilnMetricValues *values, bool of_epochs, int64_t step,
                               const KilnMetric **ret);
/* Which values are better by KilnLogFlags; KILN_MODE_AUTO: they do not say. */
KilnMode kiln_log_mode(unsigned flags);

#endif
