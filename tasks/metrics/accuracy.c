/* Accuracy: the share of rows whose label is the best class, or among the top_k best
 * (sklearn.metrics.accuracy_score, top_k_accuracy_score). Equal scores rank by class,
 * the lower first, as in torch.argmax. Of rows with any number of labels it is subset accuracy: the
 * share of rows of which every label is right (accuracy_score of such rows). */
#include "kiln.h"

#include <math.h>

typedef struct Opts {
    int64_t top_k, *ignore_index;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, top_k, "1", 1, 1000000,
                   "a row is correct if its label is among this many best classes"),
    KILN_FIELD_I64_OPT(Opts, ignore_index, "null", -2147483648.0, 2147483647.0,
                       "leave out rows with this label"),
    KILN_FIELD_END,
};

static KilnStatus check(KilnInstance *self, const KilnMetricForm *form, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    int64_t classes = kiln_form_classes(form);

    if (opts->top_k > classes)
        return kiln_error_set(
            err, KILN_E_RANGE,
            "top_k=%lld of %lld classes would always be correct; use a smaller number",
            (long long)opts->top_k, (long long)classes);
    return KILN_OK;
}

/* Whether fewer than k classes rank before the label. */
static bool among_best(const float *scores, int64_t width, int64_t label, int64_t k)
{
    int64_t before = 0;

    if (k == 1 || width == 1)
        return k > 1 || kiln_row_argmax(scores, width) == label;
    for (int64_t c = 0; c < width; c++) {
        bool higher = scores[c] > scores[label] || (isnan(scores[c]) && !isnan(scores[label]));
        bool equal = scores[c] == scores[label] || (isnan(scores[c]) && isnan(scores[label]));

        before += higher || (equal && c < label);
    }
    return before < k;
}

/* Whether exactly the labels that a row has are predicted. */
static bool all_right(const float *scores, const float *targets, int64_t width)
{
    bool right = true;

    for (int64_t c = 0; c < width; c++)
        right = right && (scores[c] > 0.0f) == (targets[c] > 0.5f);
    return right;
}

static KilnStatus update(KilnInstance *self, KilnMetricState *state, const KilnMetricRows *rows,
                         KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const KilnMetricForm *form = kiln_metric_state_form(state);
    int64_t *counts; /* right, all */
    KilnStatus status = kiln_metric_state_counts(state, "right", 2, &counts, err);

    if (rows->labels == NULL && opts->top_k > 1)
        return kiln_error_set(err, KILN_E_RANGE,
                              "top_k=%lld: rows with several labels need top_k=1",
                              (long long)opts->top_k);
    for (int64_t i = 0; i < rows->count && status >= 0; i++) {
        bool taken;

        if (rows->labels == NULL) {
            counts[0] += all_right(rows->scores + i * form->width, rows->targets + i * form->width,
                                   form->width);
            counts[1]++;
            continue;
        }
        status = kiln_row_counts(form, rows, i, opts->ignore_index, &taken, err);
        if (status < 0 || !taken)
            continue;
        counts[0] += among_best(rows->scores + i * form->width, form->width, rows->labels[i],
                                opts->top_k);
        counts[1]++;
    }
    return status;
}

static KilnStatus compute(KilnInstance *self, KilnMetricState *state, KilnError *err)
{
    int64_t *counts;
    KilnStatus status = kiln_metric_state_counts(state, "right", 2, &counts, err);

    (void)self;
    if (status < 0)
        return status;
    return kiln_metric_state_report(
        state, NULL, counts[1] > 0 ? kiln_ratio(counts[0], counts[1]) : (double)NAN, err);
}

static const KilnMetricOps ops = {
    .takes = KILN_METRIC_CLASSES,
    .mode = KILN_MODE_MAX,
    .check = check,
    .update = update,
    .compute = compute,
    .multilabel = true,
};

const KilnComponent kiln_metric_accuracy = {
    .kind = KILN_KIND_METRIC,
    .name = "accuracy",
    .summary = "Fraction of rows whose label is the best class, or among the top_k best; of rows "
               "with several "
               "labels, those with all of them right",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.metric = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_metric_accuracy, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
