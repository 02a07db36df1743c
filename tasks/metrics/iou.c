/* Intersection over union: hits / (predicted + actual - hits)
 * (sklearn.metrics.jaccard_score; of pixels, the mean IoU of segmentation). */
#include "kiln.h"

static double score(KilnClassCount count)
{
    return kiln_ratio(count.hits, count.predicted + count.actual - count.hits);
}

static const KilnMetricOps ops = {
    .takes = KILN_METRIC_CLASSES,
    .mode = KILN_MODE_MAX,
    .check = kiln_classes_check,
    .update = kiln_classes_update,
    .compute = kiln_classes_compute,
    .of_class = score,
};

const KilnComponent kiln_metric_iou = {
    .kind = KILN_KIND_METRIC,
    .name = "iou",
    .summary = "Intersection over union per class, over pixels or rows",
    KILN_FIELDS(kiln_class_fields),
    .opts_size = sizeof(KilnClassOptions),
    .ops.metric = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_metric_iou, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
