/* F1: 2 hits / (predicted + actual) (sklearn.metrics.f1_score). */
#include "kiln.h"

static double score(KilnClassCount count)
{
    return kiln_ratio(2 * count.hits, count.predicted + count.actual);
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

const KilnComponent kiln_metric_f1 = {
    .kind = KILN_KIND_METRIC,
    .name = "f1",
    .summary = "Harmonic mean of precision and recall",
    KILN_FIELDS(kiln_class_fields),
    .opts_size = sizeof(KilnClassOptions),
    .ops.metric = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_metric_f1, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
