/* Metrics in a module's step: what is recorded for them, and counted when it has run. */
#include <stdio.h>
#include <string.h>

#include "graph/graph.h"
#include "train/loop/module_step.h"

/* In front of the names of metrics, by phase. */
static const char *prefix_of(KilnPhase phase)
{
    return phase == KILN_PHASE_FIT ? "train" : phase == KILN_PHASE_TEST ? "test" : "val";
}

static const char *key_of(const KilnInstance *metric)
{
    const char *path = kiln_instance_path(metric), *dot = strrchr(path, '.');

    return dot != NULL ? dot + 1 : path;
}

/* Rows of the scores: their last axis is a row, the only one is of rows of one. */
static KilnMetricForm form_of(const KilnStep *step, const KilnTensor *scores)
{
    KilnMetricForm form = {
        .width = kiln_tensor_shape(scores)->rank > 1 ? kiln_tensor_dim(scores, -1) : 1,
    };

    if (kiln_form_classes(&form) == step->spec->n_classes) {
        form.names = step->spec->class_names;
        form.n_names = step->spec->n_classes;
    }
    return form;
}

/* What is wrong with the tensors for a metric; NULL: nothing. */
static const char *misfit(KilnMetricInput takes, const KilnTensor *scores, const KilnTensor *truth,
                          int64_t width)
{
    int64_t n = kiln_shape_count(kiln_tensor_shape(scores));
    int64_t n_truth = kiln_shape_count(kiln_tensor_shape(truth));

    if (takes == KILN_METRIC_RANKINGS || takes == KILN_METRIC_SEQUENCES)
        return "it counts rankings or sequences, which a step's tensors are not";
    if (kiln_tensor_dtype(scores) != KILN_F32 || kiln_tensor_shape(scores)->rank < 1)
        return "scores must be f32 [..., width]";
    if (takes == KILN_METRIC_CLASSES && (kiln_tensor_dtype(truth) != KILN_I32 || width < 1 ||
                                         n_truth != n / (width > 0 ? width : 1)))
        return "it needs i32 labels, one for each row of scores";
    if (takes == KILN_METRIC_VALUES && (kiln_tensor_dtype(truth) != KILN_F32 || n_truth != n))
        return "it needs f32 targets in the shape of the predictions";
    return NULL;
}

static void refuse(KilnStep *step, const char *name, const KilnTensor *scores,
                   const KilnTensor *truth, const char *why)
{
    char left[KILN_SHAPE_TEXT], right[KILN_SHAPE_TEXT];

    kiln_graph_poison(step->graph, "metric \"%s\" gets %s %s and %s %s: %s", name,
                      kiln_dtype_name(kiln_tensor_dtype(scores)),
                      kiln_shape_text(kiln_tensor_shape(scores), left, sizeof(left)),
                      kiln_dtype_name(kiln_tensor_dtype(truth)),
                      kiln_shape_text(kiln_tensor_shape(truth), right, sizeof(right)), why);
}

void kiln_step_metric(KilnStep *step, KilnInstance *metric, KilnTensor *scores, KilnTensor *truth,
                      unsigned flags)
{
    const KilnMetricOps *ops = kiln_instance_component(metric)->ops.metric;
    KilnError err = { 0 };
    char plain[KILN_STEP_NAME], buf[KILN_STEP_NAME];
    size_t state;

    if (kiln_tensor_poisoned(scores) || kiln_tensor_poisoned(truth))
        return;
    snprintf(plain, sizeof(plain), "%s/%s", prefix_of(step->phase), key_of(metric));
    const char *name = kiln_step_name(step, plain, buf);
    KilnMetricForm form = form_of(step, scores);
    const char *why = misfit(ops->takes, scores, truth, form.width);
    if (why != NULL) {
        refuse(step, name, scores, truth, why);
        return;
    }
    if (step->n_counted == KILN_STEP_METRICS) {
        kiln_graph_poison(step->graph, "\"%s\": a step has more than %d metrics", name,
                          (int)KILN_STEP_METRICS);
        return;
    }
    if (kiln_metrics_tally(step->metrics, step->phase, metric, name, flags, &form, &state, &err) <
        0) {
        kiln_graph_poison(step->graph, "%s", err.text);
        return;
    }
    step->counted[step->n_counted].state = state;
    step->counted[step->n_counted].scores = scores;
    step->counted[step->n_counted].truth = truth;
    step->n_counted++;
}

KilnStatus kiln_step_count_rows(KilnStep *step, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < step->n_counted && status >= 0; i++) {
        KilnTensor *scores = step->counted[i].scores, *truth = step->counted[i].truth;
        KilnMetricState *state =
            kiln_metrics_tallies(step->metrics)->list[step->counted[i].state].state;
        KilnMetricRows rows = {
            .count = kiln_shape_count(kiln_tensor_shape(scores)) /
                     kiln_metric_state_form(state)->width,
            .scores = kiln_tensor_data(scores),
        };

        if (kiln_tensor_dtype(truth) == KILN_I32)
            rows.labels = kiln_tensor_data(truth);
        else
            rows.targets = kiln_tensor_data(truth);
        status = kiln_metric_state_update(state, &rows, err);
    }
    return status;
}
