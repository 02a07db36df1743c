/* Dice coefficient: 2 hits / (predicted + actual), counted over all pixels of the epoch.
 * As a number it is F1; this is the name by which segmentation knows it. */
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
};

const KilnComponent kiln_metric_dice = {
    .kind = KILN_KIND_METRIC,
    .name = "dice",
    .summary = "Dice coefficient per class, over pixels or rows",
    KILN_FIELDS(kiln_class_fields),
    .opts_size = sizeof(KilnClassOptions),
    .ops.metric = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_metric_dice, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
