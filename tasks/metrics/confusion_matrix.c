/* Confusion matrix (sklearn.metrics.confusion_matrix): how often rows of one class were
 * predicted as another, as values "TRUE/PREDICTED". */
#include "kiln.h"

#include <stdio.h>

enum { NONE, BY_TRUE, BY_PREDICTED, BY_ALL };
/* A value, so a column of metrics.csv, for each pair. */
enum { MOST_CLASSES = 32 };

typedef struct Opts {
    int64_t normalize, *ignore_index;
} Opts;

static const KilnChoice normalizations[] = {
    { "none", NONE }, { "true", BY_TRUE }, { "pred", BY_PREDICTED }, { "all", BY_ALL }, { NULL, 0 },
};

static const KilnField fields[] = {
    KILN_FIELD_ENUM(
        Opts, normalize, "none", normalizations,
        "none: counts; or fractions of the true class, of the predicted class, of all rows"),
    KILN_FIELD_I64_OPT(Opts, ignore_index, "null", -2147483648.0, 2147483647.0,
                       "leave out rows with this label"),
    KILN_FIELD_END,
};

static KilnStatus check(KilnInstance *self, const KilnMetricForm *form, KilnError *err)
{
    int64_t classes = kiln_form_classes(form);

    (void)self;
    if (classes > MOST_CLASSES)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "has a value per pair of classes, so %lld classes are too many (at "
                              "most %d); use recall with "
                              "per_class=true",
                              (long long)classes, (int)MOST_CLASSES);
    return KILN_OK;
}

static KilnStatus update(KilnInstance *self, KilnMetricState *state, const KilnMetricRows *rows,
                         KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const KilnMetricForm *form = kiln_metric_state_form(state);
    int64_t classes = kiln_form_classes(form), *pairs;
    KilnStatus status = kiln_metric_state_counts(state, "pairs", classes * classes, &pairs, err);

    for (int64_t i = 0; i < rows->count && status >= 0; i++) {
        bool taken;

        status = kiln_row_counts(form, rows, i, opts->ignore_index, &taken, err);
        if (status >= 0 && taken)
            pairs[rows->labels[i] * classes +
                  kiln_row_argmax(rows->scores + i * form->width, form->width)]++;
    }
    return status;
}

/* What the pair (true, predicted) is a share of. */
static int64_t whole(const int64_t *pairs, int64_t classes, int64_t normalize, int64_t t, int64_t p)
{
    int64_t sum = 0;

    if (normalize == NONE)
        return 1;
    for (int64_t i = 0; i < classes; i++) {
        sum += normalize == BY_TRUE ? pairs[t * classes + i] : 0;
        sum += normalize == BY_PREDICTED ? pairs[i * classes + p] : 0;
        for (int64_t j = 0; normalize == BY_ALL && j < classes; j++)
            sum += pairs[i * classes + j];
    }
    return sum;
}

static KilnStatus compute(KilnInstance *self, KilnMetricState *state, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const KilnMetricForm *form = kiln_metric_state_form(state);
    int64_t classes = kiln_form_classes(form), *pairs;
    KilnStatus status = kiln_metric_state_counts(state, "pairs", classes * classes, &pairs, err);

    for (int64_t i = 0; i < classes * classes && status >= 0; i++) {
        int64_t t = i / classes, p = i % classes;
        char number[2][24], name[256];

        snprintf(name, sizeof(name), "%s/%s", kiln_form_name(form, t, number[0]),
                 kiln_form_name(form, p, number[1]));
        status = kiln_metric_state_report(
            state, name, kiln_ratio(pairs[i], whole(pairs, classes, opts->normalize, t, p)), err);
    }
    return status;
}

static const KilnMetricOps ops = {
    .takes = KILN_METRIC_CLASSES,
    .is_matrix = true,
    .check = check,
    .update = update,
    .compute = compute,
};

const KilnComponent kiln_metric_confusion_matrix = {
    .kind = KILN_KIND_METRIC,
    .name = "confusion_matrix",
    .summary = "Counts of each pair of true and predicted class",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.metric = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_metric_confusion_matrix, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
