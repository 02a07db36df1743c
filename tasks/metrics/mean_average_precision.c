/* Mean average precision of rankings: the mean over queries of the area under the
 * precision-recall steps of their documents (sklearn.metrics.average_precision_score,
 * query by query). Relevances above 0 are relevant. */
#include "kiln.h"

#include <math.h>
#include <stdlib.h>

enum { ZERO, ONE, SKIP };

typedef struct Opts {
    int64_t empty;
} Opts;

static const KilnChoice of_empty[] = {
    { "zero", ZERO }, { "one", ONE }, { "skip", SKIP }, { NULL, 0 }
};

static const KilnField fields[] = {
    KILN_FIELD_ENUM(Opts, empty, "zero", of_empty,
                    "what a query without relevant documents counts; skip: it is left out"),
    KILN_FIELD_END,
};

static KilnStatus update(KilnInstance *self, KilnTally *tally, const KilnMetricRows *rows,
                         KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    KilnRanked *items = malloc((size_t)rows->count * sizeof(*items));
    KilnStatus status = items != NULL ? KILN_OK : kiln_error_nomem(err, sizeof(*items));
    int64_t *queries = NULL;
    double *sum = NULL;

    if (status >= 0)
        status = kiln_tally_counts(tally, "queries", 1, &queries, err);
    if (status >= 0)
        status = kiln_tally_sums(tally, "sum", 1, &sum, err);
    for (int64_t g = 0, at = 0; g < rows->n_groups && status >= 0; at += rows->group_sizes[g++]) {
        for (int64_t i = 0; i < rows->group_sizes[g]; i++)
            items[i] = (KilnRanked) { (double)rows->scores[at + i], (double)rows->targets[at + i] };
        status = kiln_ranked_sort(items, rows->group_sizes[g], err);
        double value = kiln_ranked_precision(items, rows->group_sizes[g]);
        if (isnan(value) && opts->empty == SKIP)
            continue;
        *sum += isnan(value) ? opts->empty == ONE : value;
        ++*queries;
    }
    free(items);
    return status;
}

static KilnStatus compute(KilnInstance *self, KilnTally *tally, KilnError *err)
{
    int64_t *queries = NULL;
    double *sum = NULL;
    KilnStatus status = kiln_tally_counts(tally, "queries", 1, &queries, err);

    (void)self;
    if (status >= 0)
        status = kiln_tally_sums(tally, "sum", 1, &sum, err);
    if (status < 0)
        return status;
    return kiln_tally_report(tally, NULL, *queries > 0 ? *sum / (double)*queries : (double)NAN,
                             err);
}

static const KilnMetricOps ops = {
    .takes = KILN_METRIC_RANKINGS,
    .update = update,
    .compute = compute,
};

const KilnComponent kiln_metric_mean_average_precision = {
    .kind = KILN_KIND_METRIC,
    .name = "mean_average_precision",
    .summary = "Mean over queries of the average precision of a ranking",
    .fields = fields,
    .opts_size = sizeof(Opts),
    .ops.metric = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_metric_mean_average_precision, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
