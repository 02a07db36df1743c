/* Average precision of classes (sklearn.metrics.average_precision_score). Keeps all
 * scores of the epoch. A class that does not occur is left out of averages. */
#include "kiln.h"

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

static KilnStatus compute(KilnInstance *self, KilnTally *tally, KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    return kiln_rows_compute(tally, KILN_CLASSES(opts), kiln_ranked_precision, err);
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

const KilnComponent kiln_metric_average_precision = {
    .kind = KILN_KIND_METRIC,
    .name = "average_precision",
    .summary = "Area under the precision-recall curve, each class against the rest",
    .fields = fields,
    .opts_size = sizeof(Opts),
    .ops.metric = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_metric_average_precision, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
