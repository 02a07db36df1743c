/* Shared by metrics of classes (tasks/metrics/): rows of scores, counts by class, averages. */
#include <math.h>
#include <stdlib.h>

#include "kiln/metric.h"

static const KilnChoice averages[] = {
    { "micro", KILN_AVERAGE_MICRO },
    { "macro", KILN_AVERAGE_MACRO },
    { "weighted", KILN_AVERAGE_WEIGHTED },
    { "binary", KILN_AVERAGE_BINARY },
    { NULL, 0 },
};

const KilnField kiln_class_fields[] = {
    KILN_FIELD_ENUM(KilnClassOptions, average, "macro", averages,
                    "micro: over all rows; macro: mean of the classes; weighted: by how often each "
                    "occurs; binary: class 1 of two"),
    KILN_FIELD_I64_OPT(KilnClassOptions, ignore_index, "null", -2147483648.0, 2147483647.0,
                       "rows with this label are left out"),
    KILN_FIELD_BOOL(KilnClassOptions, per_class, "false", "log each class as well"),
    KILN_FIELD_END,
};

/* ---- One row ------------------------------------------------------------------------ */

int64_t kiln_row_argmax(const float *scores, int64_t width)
{
    int64_t best = 0;

    if (width == 1)
        return scores[0] > 0.0f;
    for (int64_t i = 1; i < width && !isnan(scores[best]); i++)
        if (scores[i] > scores[best] || isnan(scores[i]))
            best = i;
    return best;
}

static double highest(const float *scores, int64_t width)
{
    double max = (double)scores[0];

    for (int64_t i = 1; i < width; i++)
        max = (double)scores[i] > max || isnan(scores[i]) ? (double)scores[i] : max;
    return max;
}

void kiln_row_probabilities(const float *scores, int64_t width, double *ret)
{
    double max, sum = 0.0;

    if (width == 1) {
        ret[1] = 1.0 / (1.0 + exp(-(double)scores[0]));
        ret[0] = 1.0 - ret[1];
        return;
    }
    max = highest(scores, width);
    for (int64_t i = 0; i < width; i++) {
        ret[i] = exp((double)scores[i] - max);
        sum += ret[i];
    }
    for (int64_t i = 0; i < width; i++)
        ret[i] /= sum;
}

/* log(1 + exp(x)) without overflow. */
static double softplus(double x)
{
    return x > 0.0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

double kiln_row_nll(const float *scores, int64_t width, int64_t label)
{
    double max, sum = 0.0;

    if (width == 1)
        return softplus(label == 1 ? -(double)scores[0] : (double)scores[0]);
    max = highest(scores, width);
    for (int64_t i = 0; i < width; i++)
        sum += exp((double)scores[i] - max);
    return log(sum) + max - (double)scores[label];
}

KilnStatus kiln_row_counts(const KilnMetricForm *form, const KilnMetricRows *rows, int64_t i,
                           const int64_t *ignore, bool *ret, KilnError *err)
{
    int64_t label = rows->labels[i], classes = kiln_form_classes(form);

    *ret = ignore == NULL || label != *ignore;
    if (*ret && (label < 0 || label >= classes))
        return kiln_error_set(
            err, KILN_E_RANGE,
            "label %lld is no class: there are %lld, from 0; set ignore_index to a "
            "label that marks rows without a class",
            (long long)label, (long long)classes);
    return KILN_OK;
}

/* ---- Counts of classes ------------------------------------------------------------------- */

enum { COUNTS = sizeof(KilnClassCount) / sizeof(int64_t) };

double kiln_ratio(int64_t a, int64_t b)
{
    return b != 0 ? (double)a / (double)b : 0.0;
}

KilnStatus kiln_classes_check(KilnInstance *self, const KilnMetricForm *form, KilnError *err)
{
    const KilnClassOptions *options = kiln_opts(self);
    int64_t classes = kiln_form_classes(form);

    if (options->average == KILN_AVERAGE_BINARY && classes != 2)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "average=binary needs two classes, but there are %lld classes; use "
                              "macro, micro or weighted, or per_class=true",
                              (long long)classes);
    return KILN_OK;
}

static KilnStatus counts_of(KilnMetricState *state, KilnClassCount **ret, KilnError *err)
{
    int64_t *counts;
    KilnStatus status = kiln_metric_state_counts(
        state, "classes", COUNTS * kiln_form_classes(kiln_metric_state_form(state)), &counts, err);

    if (status >= 0)
        *ret = (KilnClassCount *)(void *)counts;
    return status;
}

/* A row with any number of labels. */
static void count_labels(KilnClassCount *counts, const float *scores, const float *targets,
                         int64_t width)
{
    for (int64_t c = 0; c < width; c++) {
        const bool predicted = scores[c] > 0.0f, actual = targets[c] > 0.5f;

        counts[c].predicted += predicted;
        counts[c].actual += actual;
        counts[c].hits += predicted && actual;
    }
}

KilnStatus kiln_classes_update(KilnInstance *self, KilnMetricState *state,
                               const KilnMetricRows *rows, KilnError *err)
{
    const KilnClassOptions *options = kiln_opts(self);
    const KilnMetricForm *form = kiln_metric_state_form(state);
    KilnClassCount *counts;
    KilnStatus status = counts_of(state, &counts, err);

    for (int64_t i = 0; i < rows->count && status >= 0; i++) {
        bool taken;

        if (rows->labels == NULL) {
            count_labels(counts, rows->scores + i * form->width, rows->targets + i * form->width,
                         form->width);
            continue;
        }
        status = kiln_row_counts(form, rows, i, options->ignore_index, &taken, err);
        if (status < 0 || !taken)
            continue;
        int64_t predicted = kiln_row_argmax(rows->scores + i * form->width, form->width);
        counts[predicted].predicted++;
        counts[rows->labels[i]].actual++;
        counts[predicted].hits += predicted == rows->labels[i];
    }
    return status;
}

static double average(const KilnClassCount *counts, int64_t n, int64_t how,
                      double (*score)(KilnClassCount count))
{
    KilnClassCount all = { 0 };
    double sum = 0.0, weights = 0.0;

    for (int64_t c = 0; c < n; c++) {
        bool present = counts[c].actual > 0 || counts[c].predicted > 0;
        double weight = how == KILN_AVERAGE_WEIGHTED ? (double)counts[c].actual : present;

        all.hits += counts[c].hits;
        all.predicted += counts[c].predicted;
        all.actual += counts[c].actual;
        if (weight > 0.0)
            sum += weight * score(counts[c]);
        weights += weight;
    }
    if (all.actual == 0)
        return (double)NAN;
    return how == KILN_AVERAGE_MICRO    ? score(all)
           : how == KILN_AVERAGE_BINARY ? score(counts[1])
                                        : sum / weights;
}

KilnStatus kiln_classes_compute(KilnInstance *self, KilnMetricState *state, KilnError *err)
{
    const KilnClassOptions *options = kiln_opts(self);
    double (*score)(KilnClassCount count) = kiln_instance_component(self)->ops.metric->of_class;
    const KilnMetricForm *form = kiln_metric_state_form(state);
    int64_t classes = kiln_form_classes(form);
    KilnClassCount *counts;
    KilnStatus status = counts_of(state, &counts, err);

    if (status >= 0)
        status = kiln_metric_state_report(state, NULL,
                                          average(counts, classes, options->average, score), err);
    for (int64_t c = 0; c < classes && options->per_class && status >= 0; c++) {
        bool present = counts[c].actual > 0 || counts[c].predicted > 0;
        char number[24];

        status = kiln_metric_state_report(state, kiln_form_name(form, c, number),
                                          present ? score(counts[c]) : (double)NAN, err);
    }
    return status;
}
