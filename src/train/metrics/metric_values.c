/* Stores values by name and keeps track of the best; train/metrics/metrics.c sets them. */
#include "train/metrics/metric_values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "kiln/array.h"

void kiln_metric_values_release(KilnMetricValues *values)
{
    for (size_t i = 0; i < values->n; i++)
        free((char *)values->list[i].name);
    free(values->list);
    free(values->best);
    free(values->unsent);
    free(values->sent);
    *values = (KilnMetricValues) { 0 };
}

KilnMetric *kiln_metric_values_find(const KilnMetricValues *values, const char *name)
{
    for (size_t i = 0; i < values->n; i++)
        if (strcmp(values->list[i].name, name) == 0)
            return &values->list[i];
    return NULL;
}

/* Room for one more in all four arrays. */
static bool grow(KilnMetricValues *values)
{
    size_t lists = values->capacity, best = lists, unsent = lists, sent = lists;

    if (values->n < values->capacity)
        return true;
    if (!KILN_RESERVE(values->list, lists, values->n + 1) ||
        !KILN_RESERVE(values->best, best, values->n + 1) ||
        !KILN_RESERVE(values->unsent, unsent, values->n + 1) ||
        !KILN_RESERVE(values->sent, sent, values->n + 1))
        return false;
    values->capacity = lists;
    return true;
}

KilnStatus kiln_metric_values_get(KilnMetricValues *values, const char *name, size_t *ret,
                                  KilnError *err)
{
    const KilnMetric *found = kiln_metric_values_find(values, name);

    if (found != NULL) {
        *ret = (size_t)(found - values->list);
        return KILN_OK;
    }
    char *copy = kiln_strdup(name);
    if (copy == NULL || !grow(values)) {
        free(copy);
        return kiln_error_nomem(err, strlen(name) + 1);
    }
    *ret = values->n++;
    values->list[*ret] = (KilnMetric) { .name = copy };
    values->best[*ret] = (KilnMetricBest) { .value = (double)NAN };
    values->unsent[*ret] = false;
    return KILN_OK;
}

KilnMode kiln_log_mode(unsigned flags)
{
    if ((flags & KILN_LOG_HIGHER_IS_BETTER) != 0)
        return KILN_MODE_MAX;
    return (flags & KILN_LOG_LOWER_IS_BETTER) != 0 ? KILN_MODE_MIN : KILN_MODE_AUTO;
}

void kiln_metric_values_put(KilnMetricValues *values, size_t i, double value, unsigned flags,
                            int64_t epoch, int64_t step)
{
    KilnMetric *metric = &values->list[i];
    KilnMetricBest *best = &values->best[i];
    const KilnMode mode = kiln_log_mode(flags);

    metric->value = value;
    metric->flags = flags;
    metric->epoch = epoch;
    metric->step = step;
    values->unsent[i] = true;
    if (mode == KILN_MODE_AUTO)
        best->value = (double)NAN;
    else if ((mode == KILN_MODE_MAX ? value > best->value : value < best->value) ||
             (isnan(best->value) && !isnan(value)))
        *best = (KilnMetricBest) { .value = value, .epoch = epoch, .step = step };
}

size_t kiln_metric_values_take(KilnMetricValues *values, bool of_epochs, int64_t step,
                               const KilnMetric **ret)
{
    size_t count = 0;

    for (size_t i = 0; i < values->n; i++) {
        const KilnMetric *metric = &values->list[i];

        if (!values->unsent[i] || ((metric->flags & KILN_LOG_EPOCH) != 0) != of_epochs)
            continue;
        values->unsent[i] = false;
        if ((of_epochs || metric->step == step) && (metric->flags & KILN_LOG_NO_LOGGER) == 0)
            values->sent[count++] = *metric;
    }
    *ret = values->sent;
    return count;
}
