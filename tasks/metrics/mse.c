/* Mean squared error over all numbers (sklearn.metrics.mean_squared_error,
 * root_mean_squared_error). */
#include "kiln.h"

#include <math.h>

typedef struct Opts {
    bool root;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_BOOL(Opts, root, "false", "the square root (RMSE)"),
    KILN_FIELD_END,
};

static KilnStatus update(KilnInstance *self, KilnMetricState *state, const KilnMetricRows *rows,
                         KilnError *err)
{
    int64_t n = rows->count * kiln_metric_state_form(state)->width;
    KilnMean mean;
    KilnStatus status = kiln_mean_open(state, &mean, err);

    (void)self;
    if (status < 0)
        return status;
    for (int64_t i = 0; i < n; i++) {
        double error = (double)rows->scores[i] - (double)rows->targets[i];

        *mean.sum += error * error;
    }
    *mean.count += n;
    return KILN_OK;
}

static KilnStatus compute(KilnInstance *self, KilnMetricState *state, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    KilnMean mean;
    KilnStatus status = kiln_mean_open(state, &mean, err);

    if (status < 0)
        return status;
    const double value = kiln_mean_value(mean);
    return kiln_metric_state_report(state, NULL, opts->root ? sqrt(value) : value, err);
}

static const KilnMetricOps ops = {
    .takes = KILN_METRIC_VALUES,
    .mode = KILN_MODE_MIN,
    .update = update,
    .compute = compute,
};

const KilnComponent kiln_metric_mse = {
    .kind = KILN_KIND_METRIC,
    .name = "mse",
    .summary = "Mean squared error, or its root",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.metric = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_metric_mse, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
