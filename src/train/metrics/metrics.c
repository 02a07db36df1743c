/* The way of a measurement: a step logs values and updates metric states, and the end of an epoch
 * turns both into the epoch's values. */
#include "train/metrics/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

KilnStatus kiln_metrics_new(KilnMetrics **ret, KilnError *err)
{
    KilnMetrics *metrics = calloc(1, sizeof(*metrics));

    if (metrics == NULL)
        return kiln_error_nomem(err, sizeof(*metrics));
    *ret = metrics;
    return KILN_OK;
}

void kiln_metrics_free(KilnMetrics *metrics)
{
    if (metrics == NULL)
        return;
    kiln_logged_names_release(&metrics->names);
    kiln_metric_collection_release(&metrics->collection);
    kiln_metric_values_release(&metrics->values);
    free(metrics);
}

/* ---- Logged values -------------------------------------------------------------- */

unsigned kiln_log_flags(KilnPhase phase, unsigned flags)
{
    if ((flags & (KILN_LOG_STEP | KILN_LOG_EPOCH)) == 0)
        flags |= phase == KILN_PHASE_FIT ? KILN_LOG_STEP : KILN_LOG_EPOCH;
    return flags;
}

int kiln_metrics_declare(KilnMetrics *metrics, KilnPhase phase, const char *name, unsigned flags)
{
    return kiln_logged_names_declare(&metrics->names, phase, name, flags);
}

KilnStatus kiln_metrics_set(KilnMetrics *metrics, const char *name, double value, unsigned flags,
                            int64_t epoch, int64_t step, KilnError *err)
{
    size_t i;
    KilnStatus status = kiln_metric_values_get(&metrics->values, name, &i, err);

    if (status >= 0)
        kiln_metric_values_put(&metrics->values, i, value, flags, epoch, step);
    return status;
}

/* Set the value by step or epoch of a declared name; its number is looked up once. */
static KilnStatus set_declared(KilnMetrics *metrics, KilnLoggedName *declared, unsigned by,
                               double value, int64_t epoch, int64_t step, KilnError *err)
{
    size_t *number = by == KILN_LOG_STEP ? &declared->step_value : &declared->epoch_value;
    const unsigned kept = declared->flags &
                          (KILN_LOG_PROG_BAR | KILN_LOG_MEASURED | KILN_LOG_NO_LOGGER |
                           KILN_LOG_HIGHER_IS_BETTER | KILN_LOG_LOWER_IS_BETTER);
    const unsigned forked = kiln_logged_name_is_forked(declared) ? KILN_LOG_FORKED : 0u;
    KilnStatus status = KILN_OK;
    char name[KILN_METRIC_NAME];

    if (*number == KILN_NO_VALUE)
        status = kiln_metric_values_get(&metrics->values,
                                        kiln_logged_name_value(declared, by, name), number, err);
    if (status >= 0)
        kiln_metric_values_put(&metrics->values, *number, value, by | kept | forked, epoch, step);
    return status;
}

KilnStatus kiln_metrics_add(KilnMetrics *metrics, int declared, double value, double weight,
                            int64_t epoch, int64_t step, KilnError *err)
{
    KilnLoggedName *name = &metrics->names.list[declared];

    if ((name->flags & KILN_LOG_EPOCH) != 0)
        kiln_logged_name_accumulate(name, value, weight);
    if ((name->flags & KILN_LOG_STEP) == 0)
        return KILN_OK;
    return set_declared(metrics, name, KILN_LOG_STEP, value, epoch, step, err);
}

KilnStatus kiln_metrics_set_step(KilnMetrics *metrics, int declared, double value, int64_t epoch,
                                 int64_t step, KilnError *err)
{
    return set_declared(metrics, &metrics->names.list[declared], KILN_LOG_STEP, value, epoch, step,
                        err);
}

/* ---- Metric states ---------------------------------------------------------------- */

/* "val/f1", "val/f1/cat" */
static const char *value_name(const KilnCollectedMetric *metric, const KilnMetricResult *result,
                              char buf[KILN_METRIC_NAME])
{
    const bool own = result->name[0] == '\0';

    snprintf(buf, KILN_METRIC_NAME, "%s%s%s", metric->name, own ? "" : "/", result->name);
    return buf;
}

static unsigned flags_of(const KilnCollectedMetric *metric)
{
    const KilnMetricOps *ops = kiln_instance_component(metric->metric)->ops.metric;

    return KILN_LOG_EPOCH | (ops->mode == KILN_MODE_MAX ? KILN_LOG_HIGHER_IS_BETTER : 0) |
           (ops->mode == KILN_MODE_MIN ? KILN_LOG_LOWER_IS_BETTER : 0) |
           (ops->is_matrix ? KILN_LOG_CELL : 0);
}

KilnStatus kiln_metrics_get_state(KilnMetrics *metrics, KilnPhase phase, KilnInstance *metric,
                                  const char *name, unsigned flags, const KilnMetricForm *form,
                                  size_t *ret, KilnError *err)
{
    const KilnMetricResult *results = NULL;
    const size_t before = metrics->collection.n;
    size_t n = 0;
    KilnStatus status = kiln_metric_collection_get(&metrics->collection, phase, metric, name, flags,
                                                   form, ret, err);

    if (status < 0 || metrics->collection.n == before)
        return status;
    const KilnCollectedMetric *added = &metrics->collection.list[*ret];
    status = kiln_metric_state_compute(added->state, &results, &n, err);
    for (size_t i = 0; i < n && status >= 0; i++) {
        char full[KILN_METRIC_NAME];

        if (kiln_metrics_declare(metrics, phase, value_name(added, &results[i], full),
                                 flags_of(added)) < 0)
            status = kiln_error_nomem(err, sizeof(full));
    }
    return status;
}

static KilnStatus set_results(KilnMetrics *metrics, const KilnCollectedMetric *metric,
                              int64_t epoch, int64_t step, KilnError *err)
{
    const KilnMetricResult *results = NULL;
    size_t n = 0;
    const unsigned flags = flags_of(metric);
    KilnStatus status = kiln_metric_state_compute(metric->state, &results, &n, err);

    for (size_t i = 0; i < n && status >= 0; i++) {
        const bool own = results[i].name[0] == '\0';
        char full[KILN_METRIC_NAME];

        status = kiln_metrics_set(metrics, value_name(metric, &results[i], full), results[i].value,
                                  flags | (own ? metric->flags & KILN_LOG_PROG_BAR : 0), epoch,
                                  step, err);
    }
    return status;
}

/* ---- Epochs ------------------------------------------------------------------------ */

KilnStatus kiln_metrics_end_epoch(KilnMetrics *metrics, KilnPhase phase, int64_t epoch,
                                  int64_t step, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < metrics->names.n && status >= 0; i++) {
        KilnLoggedName *name = &metrics->names.list[i];

        if (name->phase == phase && name->weight > 0.0)
            status = set_declared(metrics, name, KILN_LOG_EPOCH, kiln_logged_name_result(name),
                                  epoch, step, err);
    }
    for (size_t i = 0; i < metrics->collection.n && status >= 0; i++) {
        const KilnCollectedMetric *metric = &metrics->collection.list[i];

        if (metric->phase == phase && kiln_metric_state_rows(metric->state) > 0)
            status = set_results(metrics, metric, epoch, step, err);
    }
    /* After an error the sums are kept: they are saved, and the resumed run ends the epoch. */
    if (status >= 0)
        kiln_metrics_clear(metrics, phase);
    return status;
}

void kiln_metrics_clear(KilnMetrics *metrics, KilnPhase phase)
{
    kiln_logged_names_reset(&metrics->names, phase);
    kiln_metric_collection_reset(&metrics->collection, phase);
}

/* ---- Reading ------------------------------------------------------------------------ */

bool kiln_metrics_declared(const KilnMetrics *metrics, KilnPhase phase, const char *name)
{
    for (size_t i = 0; i < metrics->names.n; i++)
        if (metrics->names.list[i].phase == phase &&
            kiln_logged_name_matches(&metrics->names.list[i], name))
            return true;
    return false;
}

KilnMode kiln_metrics_mode(const KilnMetrics *metrics, const char *name)
{
    for (size_t i = 0; i < metrics->names.n; i++)
        if (kiln_logged_name_matches(&metrics->names.list[i], name))
            return kiln_log_mode(metrics->names.list[i].flags);
    return KILN_MODE_AUTO;
}

const char *kiln_metrics_declared_at(const KilnMetrics *metrics, size_t i)
{
    return i < metrics->names.n ? metrics->names.list[i].name : NULL;
}

const KilnMetric *kiln_metrics_find(const KilnMetrics *metrics, const char *name)
{
    const KilnMetricValues *values = &metrics->values;
    const KilnMetric *exact = kiln_metric_values_find(values, name);
    char by_step[KILN_METRIC_NAME], by_epoch[KILN_METRIC_NAME];

    if (exact != NULL)
        return exact;
    snprintf(by_step, sizeof(by_step), "%s_step", name);
    snprintf(by_epoch, sizeof(by_epoch), "%s_epoch", name);
    const KilnMetric *step = kiln_metric_values_find(values, by_step);
    const KilnMetric *epoch = kiln_metric_values_find(values, by_epoch);
    if (step == NULL || epoch == NULL)
        return step != NULL ? step : epoch;
    const bool later = step->epoch > epoch->epoch ||
                       (step->epoch == epoch->epoch && step->step > epoch->step);
    return later ? step : epoch;
}

bool kiln_metrics_has_epoch_value(const KilnMetrics *metrics, const KilnMetric *metric)
{
    static const char ending[] = "_step";
    const size_t length = strlen(metric->name);
    char by_epoch[KILN_METRIC_NAME];

    if ((metric->flags & KILN_LOG_FORKED) == 0 || (metric->flags & KILN_LOG_STEP) == 0 ||
        length < sizeof(ending))
        return false;
    snprintf(by_epoch, sizeof(by_epoch), "%.*s_epoch", (int)(length - strlen(ending)),
             metric->name);
    return kiln_metric_values_find(&metrics->values, by_epoch) != NULL;
}

size_t kiln_metrics_list(const KilnMetrics *metrics, const KilnMetric **ret)
{
    *ret = metrics->values.list;
    return metrics->values.n;
}

const KilnMetricBest *kiln_metrics_best(const KilnMetrics *metrics)
{
    return metrics->values.best;
}

size_t kiln_metrics_take(KilnMetrics *metrics, bool of_epochs, int64_t step, const KilnMetric **ret)
{
    return kiln_metric_values_take(&metrics->values, of_epochs, step, ret);
}
