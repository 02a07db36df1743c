/* Metrics of callers that know no structs: the rows of an epoch are kept, and one function gets
 * them all at its end. */
#include <stdlib.h>
#include <string.h>

#include "flat/flat_component.h"

static const char scores_name[] = "scores", truth_name[] = "truth";

static KilnDType truth_type(const KilnFlatComponent *component)
{
    return component->metric.takes == KILN_METRIC_CLASSES ? KILN_I32 : KILN_F32;
}

static KilnStatus update(KilnInstance *self, KilnMetricState *state, const KilnMetricRows *rows,
                         KilnError *err)
{
    const KilnFlatComponent *component = kiln_flat_component_of(self);
    const int64_t count = rows->count * kiln_metric_state_form(state)->width;
    const bool labels = component->metric.takes == KILN_METRIC_CLASSES;
    const void *truth = labels ? (const void *)rows->labels : (const void *)rows->targets;
    KilnStatus status = kiln_metric_state_append(state, scores_name, KILN_F32, rows->scores, count,
                                                 err);

    return status >= 0 ? kiln_metric_state_append(state, truth_name, truth_type(component), truth,
                                                  labels ? rows->count : count, err)
                       : status;
}

static KilnStatus compute(KilnInstance *self, KilnMetricState *state, KilnError *err)
{
    const KilnFlatComponent *component = kiln_flat_component_of(self);
    const int64_t width = kiln_metric_state_form(state)->width;
    const void *scores = NULL, *truth = NULL;
    int64_t n_scores = 0, n_truth = 0;
    KilnStatus status = kiln_metric_state_list(state, scores_name, KILN_F32, &scores, &n_scores,
                                               err);

    if (status >= 0)
        status = kiln_metric_state_list(state, truth_name, truth_type(component), &truth, &n_truth,
                                        err);
    return status >= 0 ? component->compute(kiln_flat_object(self), state, n_scores / width, width,
                                            scores, truth, err)
                       : status;
}

static int64_t memory(const KilnInstance *self, const KilnMetricForm *form, int64_t rows,
                      int64_t *ret_computing)
{
    const bool labels = kiln_flat_component_of(self)->metric.takes == KILN_METRIC_CLASSES;

    *ret_computing = 0;
    return rows * (labels ? form->width + 1 : 2 * form->width) * (int64_t)sizeof(float);
}

void kiln_flat_metric_init(KilnFlatComponent *component)
{
    component->metric = (KilnMetricOps) { .update = update, .compute = compute, .memory = memory };
    component->component.ops.metric = &component->metric;
}

KilnStatus kiln_flat_metric_ops(KilnFlatComponent *component, const char *takes, const char *mode,
                                KilnFlatCompute *function, KilnError *err)
{
    const KilnChoice *choice = kiln_modes;

    if (strcmp(takes, "classes") != 0 && strcmp(takes, "values") != 0)
        return kiln_error_set(err, KILN_E_KEY, "takes: expected classes or values, got \"%s\"",
                              takes);
    while (choice->name != NULL && strcmp(choice->name, mode) != 0)
        choice++;
    if (choice->name == NULL)
        return kiln_error_set(err, KILN_E_KEY, "mode: expected auto, max or min, got \"%s\"", mode);
    component->metric.takes = takes[0] == 'c' ? KILN_METRIC_CLASSES : KILN_METRIC_VALUES;
    component->metric.mode = (KilnMode)choice->value;
    component->compute = function;
    return KILN_OK;
}
