/* Mean absolute error over all numbers (sklearn.metrics.mean_absolute_error). */
#include "kiln.h"

#include <math.h>

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

        *mean.sum += fabs(error);
    }
    *mean.count += n;
    return KILN_OK;
}

static const KilnMetricOps ops = {
    .takes = KILN_METRIC_VALUES,
    .mode = KILN_MODE_MIN,
    .update = update,
    .compute = kiln_mean_compute,
};

const KilnComponent kiln_metric_mae = {
    .kind = KILN_KIND_METRIC,
    .name = "mae",
    .summary = "Mean absolute error",
    .ops.metric = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_metric_mae, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
