/* Coefficient of determination R2 = 1 - residual / total sum of squares, the mean over
 * the numbers of a row (sklearn.metrics.r2_score). A number that never varies counts 1
 * when it was predicted exactly, else 0. */
#include "kiln.h"

#include <math.h>

/* Of each number of a row; the total as Welford (1962) has it, row by row. */
typedef struct Sums {
    double mean, total, residual;
} Sums;
enum { SUMS = sizeof(Sums) / sizeof(double) };

static KilnStatus sums_of(KilnMetricState *state, int64_t **ret_count, Sums **ret, KilnError *err)
{
    double *sums;
    KilnStatus status = kiln_metric_state_counts(state, "count", 1, ret_count, err);

    if (status >= 0)
        status = kiln_metric_state_sums(state, "sums", SUMS * kiln_metric_state_form(state)->width,
                                        &sums, err);
    if (status >= 0)
        *ret = (Sums *)(void *)sums;
    return status;
}

static KilnStatus update(KilnInstance *self, KilnMetricState *state, const KilnMetricRows *rows,
                         KilnError *err)
{
    int64_t width = kiln_metric_state_form(state)->width, *count;
    Sums *sums;
    KilnStatus status = sums_of(state, &count, &sums, err);

    (void)self;
    for (int64_t i = 0; i < rows->count && status >= 0; i++) {
        ++*count;
        for (int64_t w = 0; w < width; w++) {
            double target = (double)rows->targets[i * width + w];
            double error = target - (double)rows->scores[i * width + w];
            double off = target - sums[w].mean;

            sums[w].mean += off / (double)*count;
            sums[w].total += off * (target - sums[w].mean);
            sums[w].residual += error * error;
        }
    }
    return status;
}

static KilnStatus compute(KilnInstance *self, KilnMetricState *state, KilnError *err)
{
    int64_t width = kiln_metric_state_form(state)->width, *count;
    double value = 0.0;
    Sums *sums;
    KilnStatus status = sums_of(state, &count, &sums, err);

    (void)self;
    if (status < 0)
        return status;
    for (int64_t w = 0; w < width; w++)
        value += sums[w].total > 0.0       ? 1.0 - sums[w].residual / sums[w].total
                 : sums[w].residual == 0.0 ? 1.0
                                           : 0.0;
    return kiln_metric_state_report(state, NULL, *count > 1 ? value / (double)width : (double)NAN,
                                    err);
}

/* Two sets' means and sums of squares, as Chan, Golub and LeVeque (1979) add them. */
static KilnStatus merge(KilnInstance *self, KilnMetricState *state, KilnMetricState *other,
                        KilnError *err)
{
    int64_t width = kiln_metric_state_form(state)->width, *count, *more;
    Sums *sums, *added;
    KilnStatus status = sums_of(state, &count, &sums, err);

    (void)self;
    if (status >= 0)
        status = sums_of(other, &more, &added, err);
    if (status < 0)
        return status;
    const double both = (double)(*count + *more);
    for (int64_t w = 0; w<width && * more> 0; w++) {
        const double off = added[w].mean - sums[w].mean;

        sums[w].mean += off * (double)*more / both;
        sums[w].total += added[w].total + off * off * (double)*count * (double)*more / both;
        sums[w].residual += added[w].residual;
    }
    *count += *more;
    return KILN_OK;
}

static const KilnMetricOps ops = {
    .takes = KILN_METRIC_VALUES,
    .mode = KILN_MODE_MAX,
    .update = update,
    .compute = compute,
    .merge = merge,
};

const KilnComponent kiln_metric_r2 = {
    .kind = KILN_KIND_METRIC,
    .name = "r2",
    .summary = "Coefficient of determination",
    .ops.metric = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_metric_r2, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
