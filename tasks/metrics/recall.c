/* Recall: hits / actual (sklearn.metrics.recall_score). */
#include "kiln.h"

static double score(KilnClassCount count)
{
    return kiln_ratio(count.hits, count.actual);
}

static const KilnMetricOps ops = {
    .takes = KILN_METRIC_CLASSES,
    .mode = KILN_MODE_MAX,
    .check = kiln_classes_check,
    .update = kiln_classes_update,
    .compute = kiln_classes_compute,
    .of_class = score,
    .multilabel = true,
};

const KilnComponent kiln_metric_recall = {
    .kind = KILN_KIND_METRIC,
    .name = "recall",
    .summary = "Fraction of the rows of a class that are predicted as it",
    KILN_FIELDS(kiln_class_fields),
    .opts_size = sizeof(KilnClassOptions),
    .ops.metric = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_metric_recall, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
