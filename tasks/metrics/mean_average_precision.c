/* Mean average precision of rankings: the mean over queries of the area under the
 * precision-recall steps of their documents (sklearn.metrics.average_precision_score,
 * query by query). Relevances above 0 are relevant. */
#include "kiln.h"

typedef struct Opts {
    int64_t empty;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_ENUM(Opts, empty, "zero", kiln_empty_queries,
                    "the value of a query without relevant documents; skip: leave it out"),
    KILN_FIELD_END,
};

static KilnStatus average_precision(const void *context, KilnRanked *items, int64_t n, double *ret,
                                    KilnError *err)
{
    KilnStatus status = kiln_ranked_sort(items, n, err);

    (void)context;
    *ret = kiln_ranked_precision(items, n);
    return status;
}

static KilnStatus update(KilnInstance *self, KilnMetricState *state, const KilnMetricRows *rows,
                         KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    return kiln_queries_add(state, rows, opts->empty, average_precision, NULL, err);
}

static const KilnMetricOps ops = {
    .takes = KILN_METRIC_RANKINGS,
    .mode = KILN_MODE_MAX,
    .update = update,
    .compute = kiln_mean_compute,
};

const KilnComponent kiln_metric_mean_average_precision = {
    .kind = KILN_KIND_METRIC,
    .name = "mean_average_precision",
    .summary = "Mean over queries of the average precision of a ranking",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.metric = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_metric_mean_average_precision, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
