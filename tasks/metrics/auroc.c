/* Area under the ROC curve (sklearn.metrics.roc_auc_score, multi_class="ovr"): the
 * share of pairs of a row of the class and one of another in which the first has the
 * higher score, equal scores counting half. Keeps all scores of the epoch. A class
 * that does not occur, or is all there is, is left out of averages. */
#include "kiln.h"

#include <math.h>

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

static const KilnMetricOps ops = {
    .takes = KILN_METRIC_CLASSES,
    .mode = KILN_MODE_MAX,
    .update = kiln_one_vs_rest_update,
    .compute = kiln_one_vs_rest_compute,
    .memory = kiln_one_vs_rest_memory,
    .of_ranked = area,
    .multilabel = true,
};

const KilnComponent kiln_metric_auroc = {
    .kind = KILN_KIND_METRIC,
    .name = "auroc",
    .summary = "Area under the ROC curve, each class against the rest",
    KILN_FIELDS(kiln_one_vs_rest_fields),
    .opts_size = sizeof(KilnClassOptions),
    .ops.metric = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_metric_auroc, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
