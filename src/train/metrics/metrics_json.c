/* Logged values and the sums of the current epoch in a checkpoint, as JSON. The states of metrics
 * are tensors in the trainer's file (train/metrics/metric_collection.c). */
#include <string.h>

#include "train/checkpoint/component_state.h"
#include "train/metrics/metrics.h"

/* Append `item` to `array`; either may be NULL because memory is out. */
static bool append(json_t *array, json_t *item)
{
    return array != NULL && item != NULL && json_array_append_new(array, item) == 0;
}

/* Sums and weights are exact to the bit, so that an epoch that was interrupted has the same means
 * as a whole one. Measured values are left out: checkpoints of identical runs are identical. */
json_t *kiln_metrics_save(const KilnMetrics *metrics)
{
    json_t *values = json_array(), *sums = json_array();
    bool ok = values != NULL && sums != NULL;

    for (size_t i = 0; i < metrics->values.n && ok; i++) {
        const KilnMetric *m = &metrics->values.list[i];
        const KilnMetricBest *best = &metrics->values.best[i];

        if ((m->flags & KILN_LOG_MEASURED) != 0)
            continue;
        ok = append(values,
                    json_pack("{s:s, s:o, s:i, s:I, s:I, s:o, s:I, s:I, s:b}", "name", m->name,
                              "value", kiln_json_f64(m->value), "flags", (int)m->flags, "epoch",
                              (json_int_t)m->epoch, "step", (json_int_t)m->step, "best",
                              kiln_json_f64(best->value), "best_epoch", (json_int_t)best->epoch,
                              "best_step", (json_int_t)best->step, "fresh",
                              metrics->values.unsent[i] ? 1 : 0));
    }
    for (size_t i = 0; i < metrics->names.n && ok; i++) {
        const KilnLoggedName *d = &metrics->names.list[i];

        if (d->weight > 0.0 && (d->flags & KILN_LOG_MEASURED) == 0)
            ok = append(sums, json_pack("{s:s, s:i, s:i, s:o, s:o}", "name", d->name, "phase",
                                        (int)d->phase, "flags", (int)d->flags, "sum",
                                        kiln_json_f64(d->sum), "weight", kiln_json_f64(d->weight)));
    }
    if (!ok) {
        json_decref(values);
        json_decref(sums);
        return NULL;
    }
    return json_pack("{s:o, s:o}", "values", values, "sums", sums);
}

/* Whether steps log the name both by step and by epoch. */
static bool is_forked(const KilnMetrics *metrics, const char *name)
{
    for (size_t i = 0; i < metrics->names.n; i++)
        if (kiln_logged_name_is_forked(&metrics->names.list[i]) &&
            strcmp(metrics->names.list[i].name, name) == 0)
            return true;
    return false;
}

static KilnStatus load_value(KilnMetrics *metrics, const json_t *saved, KilnError *err)
{
    const char *name = json_string_value(json_object_get(saved, "name"));
    double value, best;
    size_t i;

    if (name == NULL || !kiln_json_get_f64(json_object_get(saved, "value"), &value) ||
        !kiln_json_get_f64(json_object_get(saved, "best"), &best))
        return kiln_error_set(err, KILN_E_FORMAT, "a metric without name, value or best");
    if (is_forked(metrics, name))
        return kiln_error_set(err, KILN_E_FORMAT,
                              "the checkpoint has one %s where this program logs %s_step and "
                              "%s_epoch: another version of the program or the task saved it; "
                              "start a new run from its weights (weights=PATH)",
                              name, name, name);
    KilnStatus status = kiln_metric_values_get(&metrics->values, name, &i, err);
    if (status < 0)
        return status;
    metrics->values.list[i].value = value;
    metrics->values.list[i].flags = (unsigned)json_integer_value(json_object_get(saved, "flags"));
    metrics->values.list[i].epoch = json_integer_value(json_object_get(saved, "epoch"));
    metrics->values.list[i].step = json_integer_value(json_object_get(saved, "step"));
    metrics->values.best[i] = (KilnMetricBest) {
        .value = best,
        .epoch = json_integer_value(json_object_get(saved, "best_epoch")),
        .step = json_integer_value(json_object_get(saved, "best_step")),
    };
    metrics->values.unsent[i] = json_is_true(json_object_get(saved, "fresh"));
    return KILN_OK;
}

static KilnStatus load_sum(KilnMetrics *metrics, const json_t *saved, KilnError *err)
{
    const char *name = json_string_value(json_object_get(saved, "name"));
    json_int_t phase = json_integer_value(json_object_get(saved, "phase"));
    json_int_t flags = json_integer_value(json_object_get(saved, "flags"));
    double sum, weight;

    if (name == NULL || phase < KILN_PHASE_FIT || phase > KILN_PHASE_TEST || flags < 1 ||
        (flags & ~(json_int_t)KILN_LOG_ALL) != 0 ||
        !kiln_json_get_f64(json_object_get(saved, "sum"), &sum) ||
        !kiln_json_get_f64(json_object_get(saved, "weight"), &weight))
        return kiln_error_set(err, KILN_E_FORMAT, "a metric's sum without name, sum or weight");
    int i = kiln_metrics_declare(metrics, (KilnPhase)phase, name, (unsigned)flags);
    if (i < 0)
        return kiln_error_nomem(err, strlen(name) + 1);
    metrics->names.list[i].sum = sum;
    metrics->names.list[i].weight = weight;
    return KILN_OK;
}

KilnStatus kiln_metrics_load(KilnMetrics *metrics, const json_t *saved, KilnError *err)
{
    const json_t *values = json_object_get(saved, "values");
    const json_t *sums = json_object_get(saved, "sums");
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < json_array_size(values) && status >= 0; i++)
        status = load_value(metrics, json_array_get(values, i), err);
    for (size_t i = 0; i < json_array_size(sums) && status >= 0; i++)
        status = load_sum(metrics, json_array_get(sums, i), err);
    return status;
}
