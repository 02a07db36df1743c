/* Metrics in a module's step: records their inputs, and updates their states (train/metrics/) after
 * the step has run. */
#include <stdio.h>
#include <string.h>

#include "graph/graph.h"
#include "train/step/module_step.h"
#include "train/step/row_results_state.h"

/* The prefix of metrics' names in a phase. */
static const char *prefix_of(KilnPhase phase)
{
    return phase == KILN_PHASE_FIT ? "train" : phase == KILN_PHASE_TEST ? "test" : "val";
}

static const char *key_of(const KilnInstance *metric)
{
    const char *path = kiln_instance_path(metric), *dot = strrchr(path, '.');

    return dot != NULL ? dot + 1 : path;
}

/* The ids of the targets: those of the feature that they are, or the classes of the data. */
static int64_t ids_of(const KilnStep *step, const KilnTensor *targets,
                      const char *const **ret_names)
{
    for (size_t i = 0; i < step->spec->n_features && step->inputs != NULL; i++) {
        int64_t n = step->inputs[i] == targets
                        ? kiln_spec_ids(step->spec, &step->spec->features[i], ret_names)
                        : 0;
        if (n > 0)
            return n;
    }
    *ret_names = step->spec->class_names;
    return step->spec->n_classes;
}

/* The last axis of the scores is a row; scores with one axis have rows of one score. */
static KilnMetricForm form_of(const KilnStep *step, const KilnTensor *scores,
                              const KilnTensor *targets)
{
    KilnMetricForm form = {
        .width = kiln_tensor_shape(scores)->rank > 1 ? kiln_tensor_dim(scores, -1) : 1,
    };
    const char *const *names;
    const int64_t n = ids_of(step, targets, &names);

    if (kiln_form_classes(&form) == n) {
        form.names = names;
        form.n_names = n;
    }
    return form;
}

/* Why a metric can not take the tensors; NULL: it can. */
static const char *mismatch(const KilnMetricOps *ops, const KilnTensor *scores,
                            const KilnTensor *targets, int64_t width)
{
    const KilnMetricInput takes = ops->takes;
    int64_t n = kiln_shape_count(kiln_tensor_shape(scores));
    int64_t n_targets = kiln_shape_count(kiln_tensor_shape(targets));

    if (takes != KILN_METRIC_CLASSES && takes != KILN_METRIC_VALUES)
        return "it counts rankings, sequences or detections, not tensors of a step";
    if (kiln_tensor_dtype(scores) != KILN_F32 || kiln_tensor_shape(scores)->rank < 1)
        return "scores must be f32 [..., width]";
    if (ops->multilabel && kiln_tensor_dtype(targets) == KILN_F32)
        return n_targets == n && width > 1 ? NULL : "it needs a 0 or 1 for each of several labels";
    if (takes == KILN_METRIC_CLASSES && (kiln_tensor_dtype(targets) != KILN_I32 || width < 1 ||
                                         n_targets != n / (width > 0 ? width : 1)))
        return "it needs i32 labels, one for each row of scores";
    if (takes == KILN_METRIC_VALUES && (kiln_tensor_dtype(targets) != KILN_F32 || n_targets != n))
        return "it needs f32 targets in the shape of the predictions";
    return NULL;
}

static void refuse(KilnStep *step, const char *name, const KilnTensor *scores,
                   const KilnTensor *targets, const char *why)
{
    char left[KILN_SHAPE_TEXT], right[KILN_SHAPE_TEXT];

    kiln_graph_poison(step->graph, "metric \"%s\" gets %s %s and %s %s: %s", name,
                      kiln_dtype_name(kiln_tensor_dtype(scores)),
                      kiln_shape_text(kiln_tensor_shape(scores), left, sizeof(left)),
                      kiln_dtype_name(kiln_tensor_dtype(targets)),
                      kiln_shape_text(kiln_tensor_shape(targets), right, sizeof(right)), why);
}

void kiln_step_metric(KilnStep *step, KilnInstance *metric, KilnTensor *scores, KilnTensor *targets,
                      unsigned flags)
{
    const KilnMetricOps *ops = kiln_instance_component(metric)->ops.metric;
    KilnError err = { 0 };
    char plain[KILN_STEP_NAME], buf[KILN_STEP_NAME];
    size_t state;

    if (kiln_tensor_poisoned(scores) || kiln_tensor_poisoned(targets))
        return;
    snprintf(plain, sizeof(plain), "%s/%s", prefix_of(step->phase), key_of(metric));
    const char *name = kiln_step_name(step, plain, buf);
    KilnMetricForm form = form_of(step, scores, targets);
    scores = kiln_step_as_f32(scores);
    targets = kiln_step_as_f32(targets);
    const char *why = mismatch(ops, scores, targets, form.width);
    if (why != NULL) {
        refuse(step, name, scores, targets, why);
        return;
    }
    if (step->n_metric_inputs == KILN_STEP_METRICS) {
        kiln_graph_poison(step->graph, "\"%s\": a step has more than %d metrics", name,
                          (int)KILN_STEP_METRICS);
        return;
    }
    if (kiln_metrics_get_state(step->metrics, step->phase, metric, name, flags, &form, &state,
                               &err) < 0) {
        kiln_graph_poison(step->graph, "%s", err.text);
        return;
    }
    step->metric_inputs[step->n_metric_inputs].state = state;
    step->metric_inputs[step->n_metric_inputs].scores = scores;
    step->metric_inputs[step->n_metric_inputs].targets = targets;
    step->n_metric_inputs++;
}

/* The state of a metric of sequences, rankings or detections in the step's phase. */
static KilnStatus rows_state(KilnStep *step, KilnInstance *metric, unsigned flags, size_t *ret,
                             KilnError *err)
{
    const KilnMetricInput takes = kiln_instance_component(metric)->ops.metric->takes;
    KilnMetricForm form = { .width = takes == KILN_METRIC_RANKINGS ? 1 : 0 };
    char plain[KILN_STEP_NAME], buf[KILN_STEP_NAME];

    if (takes == KILN_METRIC_CLASSES || takes == KILN_METRIC_VALUES)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "metric \"%s\" does not count sequences, rankings or detections",
                              key_of(metric));
    if (takes == KILN_METRIC_DETECTIONS) {
        form.names = step->spec->class_names;
        form.n_names = step->spec->n_classes;
    }
    snprintf(plain, sizeof(plain), "%s/%s", prefix_of(step->phase), key_of(metric));
    return kiln_metrics_get_state(step->metrics, step->phase, metric,
                                  kiln_step_name(step, plain, buf), flags, &form, ret, err);
}

void kiln_step_sequence_metric(KilnStep *step, KilnInstance *metric, unsigned flags)
{
    KilnError err = { 0 };
    size_t state;

    if (rows_state(step, metric, flags, &state, &err) < 0)
        kiln_graph_poison(step->graph, "%s", err.text);
}

KilnStatus kiln_results_metric(KilnResults *results, KilnInstance *metric,
                               const KilnMetricRows *rows, KilnError *err)
{
    KilnStep *step = results->step;
    size_t state = 0;

    if (step->phase == KILN_PHASE_PREDICT)
        return KILN_OK;
    KilnStatus status = rows_state(step, metric, 0, &state, err);
    return status >= 0
               ? kiln_metric_state_update(step->metrics->collection.list[state].state, rows, err)
               : status;
}

KilnStatus kiln_step_update_metric_states(KilnStep *step, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < step->n_metric_inputs && status >= 0; i++) {
        KilnTensor *scores = step->metric_inputs[i].scores;
        KilnTensor *targets = step->metric_inputs[i].targets;
        KilnMetricState *state = step->metrics->collection.list[step->metric_inputs[i].state].state;
        KilnMetricRows rows = {
            .count = kiln_shape_count(kiln_tensor_shape(scores)) /
                     kiln_metric_state_form(state)->width,
            .scores = kiln_tensor_data(scores),
        };

        if (kiln_tensor_dtype(targets) == KILN_I32)
            rows.labels = kiln_tensor_data(targets);
        else
            rows.targets = kiln_tensor_data(targets);
        status = kiln_metric_state_update(state, &rows, err);
    }
    return status;
}
