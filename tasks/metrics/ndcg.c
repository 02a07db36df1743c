/* Normalized discounted cumulative gain of rankings (Jarvelin and Kekalainen 2002), the
 * mean over queries (sklearn.metrics.ndcg_score): the gain of each of the k first
 * documents over log2(1 + rank), divided by that of the best order. Documents of equal
 * score share their ranks (McSherry and Najork 2008), so the order of rows does not count; or they
 * keep the order of the rows, as in XGBoost and LightGBM. */
#include "kiln.h"

#include <math.h>

enum { LINEAR, EXPONENTIAL };
enum { SHARE, ORDER };

typedef struct Opts {
    int64_t *k, gain, empty, ties;
} Opts;

static const KilnChoice gain_names[] = { { "linear", LINEAR },
                                         { "exp2", EXPONENTIAL },
                                         { NULL, 0 } };

static const KilnChoice tie_names[] = { { "share", SHARE }, { "order", ORDER }, { NULL, 0 } };

static const KilnField fields[] = {
    KILN_FIELD_I64_OPT(Opts, k, "null", 1, 1e9, "number of first documents to use; null: all"),
    KILN_FIELD_ENUM(Opts, gain, "linear", gain_names,
                    "gain of a document: its relevance, or 2^relevance - 1 as in LambdaMART"),
    KILN_FIELD_ENUM(Opts, empty, "zero", kiln_empty_queries,
                    "the value of a query without relevant documents; skip: leave it out"),
    KILN_FIELD_ENUM(Opts, ties, "share", tie_names,
                    "documents of equal score: share: each gets the mean of their gains; order: "
                    "they stay in the order of the rows (XGBoost's ndcg@K is gain=exp2, empty=one, "
                    "ties=order; ndcg@K- has empty=zero)"),
    KILN_FIELD_END,
};

static double gain(const Opts *opts, double relevance)
{
    return opts->gain == EXPONENTIAL ? exp2(relevance) - 1.0 : relevance;
}

/* The discounted gain of items in order of score. */
static double discounted(const Opts *opts, const KilnRanked *items, int64_t n, int64_t k)
{
    double sum = 0.0;

    for (int64_t at = 0; at < n && at < k;) {
        int64_t ties = opts->ties == SHARE ? kiln_ranked_ties(items, n, at) : 1;
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

static KilnStatus ndcg(const void *context, KilnRanked *items, int64_t n, double *ret,
                       KilnError *err)
{
    const Opts *opts = context;
    int64_t k = opts->k != NULL ? *opts->k : n;

    for (int64_t i = 0; i < n; i++)
        items[i].target = gain(opts, items[i].target);
    KilnStatus status = kiln_ranked_sort(items, n, err);
    double got = discounted(opts, items, n, k);

    for (int64_t i = 0; i < n; i++)
        items[i].score = items[i].target;
    if (status >= 0)
        status = kiln_ranked_sort(items, n, err);
    double best = discounted(opts, items, n, k);
    *ret = best > 0.0 ? got / best : (double)NAN;
    return status;
}

static KilnStatus update(KilnInstance *self, KilnMetricState *state, const KilnMetricRows *rows,
                         KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    return kiln_queries_add(state, rows, opts->empty, ndcg, opts, err);
}

static const KilnMetricOps ops = {
    .takes = KILN_METRIC_RANKINGS,
    .mode = KILN_MODE_MAX,
    .update = update,
    .compute = kiln_mean_compute,
};

const KilnComponent kiln_metric_ndcg = {
    .kind = KILN_KIND_METRIC,
    .name = "ndcg",
    .summary = "Normalized discounted cumulative gain of rankings",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.metric = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_metric_ndcg, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
