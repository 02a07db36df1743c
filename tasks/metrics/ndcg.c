/* Normalized discounted cumulative gain of rankings (Jarvelin and Kekalainen 2002), the
 * mean over queries (sklearn.metrics.ndcg_score): the gain of each of the k first
 * documents over log2(1 + rank), divided by that of the best order. Documents of equal
 * score share their ranks (McSherry and Najork 2008), so the order of rows does not count. */
#include "kiln.h"

#include <math.h>
#include <stdlib.h>

enum { ZERO, ONE, SKIP };

enum { LINEAR, EXPONENTIAL };

typedef struct Opts {
    int64_t *k, gain, empty;
} Opts;

static const KilnChoice gain_names[] = { { "linear", LINEAR },
                                         { "exp2", EXPONENTIAL },
                                         { NULL, 0 } };

static const KilnChoice of_empty[] = {
    { "zero", ZERO }, { "one", ONE }, { "skip", SKIP }, { NULL, 0 }
};

static const KilnField fields[] = {
    KILN_FIELD_I64_OPT(Opts, k, "null", 1, 1e9, "first documents that count; null: all"),
    KILN_FIELD_ENUM(Opts, gain, "linear", gain_names,
                    "gain of a document: its relevance, or 2^relevance - 1 as in LambdaMART"),
    KILN_FIELD_ENUM(Opts, empty, "zero", of_empty,
                    "what a query without relevant documents counts; skip: it is left out"),
    KILN_FIELD_END,
};

static double gain(const Opts *opts, double relevance)
{
    return opts->gain == EXPONENTIAL ? exp2(relevance) - 1.0 : relevance;
}

/* The discounted gain of items in order of score; ties share what their ranks give. */
static double discounted(const KilnRanked *items, int64_t n, int64_t k)
{
    double sum = 0.0;

    for (int64_t at = 0; at < n && at < k;) {
        int64_t ties = kiln_ranked_ties(items, n, at);
        double gains = 0.0, discounts = 0.0;

        for (int64_t i = at; i < at + ties; i++) {
            gains += items[i].target;
            discounts += i < k ? 1.0 / log2((double)i + 2.0) : 0.0;
        }
        sum += gains / (double)ties * discounts;
        at += ties;
    }
    return sum;
}

/* NaN when no document is relevant. */
static KilnStatus ndcg(const Opts *opts, KilnRanked *items, int64_t n, double *ret, KilnError *err)
{
    int64_t k = opts->k != NULL ? *opts->k : n;
    KilnStatus status = kiln_ranked_sort(items, n, err);
    double got = discounted(items, n, k);

    for (int64_t i = 0; i < n; i++)
        items[i].score = items[i].target;
    if (status >= 0)
        status = kiln_ranked_sort(items, n, err);
    double best = discounted(items, n, k);
    *ret = best > 0.0 ? got / best : (double)NAN;
    return status;
}

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
            items[i] = (KilnRanked) { (double)rows->scores[at + i],
                                      gain(opts, (double)rows->targets[at + i]) };
        double value;

        status = ndcg(opts, items, rows->group_sizes[g], &value, err);
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

const KilnComponent kiln_metric_ndcg = {
    .kind = KILN_KIND_METRIC,
    .name = "ndcg",
    .summary = "Normalized discounted cumulative gain of rankings",
    .fields = fields,
    .opts_size = sizeof(Opts),
    .ops.metric = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_metric_ndcg, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
