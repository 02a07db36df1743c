/* Area under the ROC curve (sklearn.metrics.roc_auc_score, multi_class="ovr"): the
 * share of pairs of a row of the class and one of another in which the first has the
 * higher score, equal scores counting half. Keeps all scores of the epoch. A class
 * that does not occur, or is all there is, is left out of averages. */
#include "kiln.h"

#include <math.h>

typedef struct Opts {
    int64_t average, *ignore_index;
    bool per_class;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_ENUM(Opts, average, "macro", kiln_rest_averages,
                    "of more than two classes, each against the rest: macro: mean; weighted: by "
                    "how often each occurs"),
    KILN_FIELD_I64_OPT(Opts, ignore_index, "null", -2147483648.0, 2147483647.0,
                       "rows with this label are left out"),
    KILN_FIELD_BOOL(Opts, per_class, "false", "log each class as well"),
    KILN_FIELD_END,
};

static KilnStatus update(KilnInstance *self, KilnTally *tally, const KilnMetricRows *rows,
                         KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    return kiln_rows_keep(tally, rows, opts->ignore_index, err);
}

static double area(const KilnRanked *items, int64_t n)
{
    double positives = 0.0, negatives = 0.0, pairs = 0.0;

    for (int64_t i = 0; i < n;) {
        double tied = 0.0, others = 0.0;

        for (int64_t end = i + kiln_ranked_ties(items, n, i); i < end; i++)
            *(items[i].target > 0.0 ? &tied : &others) += 1.0;
        pairs += others * (positives + 0.5 * tied);
        positives += tied;
        negatives += others;
    }
    return positives > 0.0 && negatives > 0.0 ? pairs / (positives * negatives) : (double)NAN;
}

static KilnStatus compute(KilnInstance *self, KilnTally *tally, KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    return kiln_rows_compute(tally, KILN_CLASSES(opts), area, err);
}

static int64_t memory(const KilnInstance *self, const KilnMetricForm *form, int64_t rows,
                      int64_t *ret_computing)
{
    (void)self;
    return kiln_rows_bytes(form, rows, ret_computing);
}

static const KilnMetricOps ops = {
    .takes = KILN_METRIC_CLASSES,
    .update = update,
    .compute = compute,
    .memory = memory,
};

const KilnComponent kiln_metric_auroc = {
    .kind = KILN_KIND_METRIC,
    .name = "auroc",
    .summary = "Area under the ROC curve, each class against the rest",
    .fields = fields,
    .opts_size = sizeof(Opts),
    .ops.metric = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_metric_auroc, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
