/* Average precision of classes (sklearn.metrics.average_precision_score). Keeps all
 * scores of the epoch. A class that does not occur is left out of averages. */
#include "kiln.h"

static const KilnMetricOps ops = {
    .takes = KILN_METRIC_CLASSES,
    .mode = KILN_MODE_MAX,
    .update = kiln_one_vs_rest_update,
    .compute = kiln_one_vs_rest_compute,
    .memory = kiln_one_vs_rest_memory,
    .of_ranked = kiln_ranked_precision,
    .multilabel = true,
};

const KilnComponent kiln_metric_average_precision = {
    .kind = KILN_KIND_METRIC,
    .name = "average_precision",
    .summary = "Area under the precision-recall curve, each class against the rest",
    KILN_FIELDS(kiln_one_vs_rest_fields),
    .opts_size = sizeof(KilnClassOptions),
    .ops.metric = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_metric_average_precision, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
