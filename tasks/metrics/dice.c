/* Dice coefficient: 2 hits / (predicted + actual), counted over all pixels of the epoch.
 * As a number it is F1; this is the name by which segmentation knows it. */
#include "kiln.h"

typedef struct Opts {
    KILN_CLASS_OPTIONS;
} Opts;

static const KilnField fields[] = { KILN_CLASS_FIELDS(Opts), KILN_FIELD_END };

static KilnStatus check(KilnInstance *self, const KilnMetricForm *form, KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    return kiln_classes_check(KILN_CLASSES(opts), form, err);
}

static KilnStatus update(KilnInstance *self, KilnTally *tally, const KilnMetricRows *rows,
                         KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    return kiln_classes_update(tally, KILN_CLASSES(opts), rows, err);
}

static double score(KilnClassCount count)
{
    return kiln_ratio(2 * count.hits, count.predicted + count.actual);
}

static KilnStatus compute(KilnInstance *self, KilnTally *tally, KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    return kiln_classes_compute(tally, KILN_CLASSES(opts), score, err);
}

static const KilnMetricOps ops = {
    .takes = KILN_METRIC_CLASSES,
    .check = check,
    .update = update,
    .compute = compute,
};

const KilnComponent kiln_metric_dice = {
    .kind = KILN_KIND_METRIC,
    .name = "dice",
    .summary = "Dice coefficient of classes, of pixels or rows",
    .fields = fields,
    .opts_size = sizeof(Opts),
    .ops.metric = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_metric_dice, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
