/* Log-loss: the mean of -log of the label's probability, in nats, without label
 * smoothing or weights (sklearn.metrics.log_loss, which clips probabilities). */
#include "kiln.h"

typedef struct Opts {
    int64_t *ignore_index;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_I64_OPT(Opts, ignore_index, "null", -2147483648.0, 2147483647.0,
                       "leave out rows with this label"),
    KILN_FIELD_END,
};

static KilnStatus update(KilnInstance *self, KilnMetricState *state, const KilnMetricRows *rows,
                         KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const KilnMetricForm *form = kiln_metric_state_form(state);
    KilnMean mean;
    KilnStatus status = kiln_mean_open(state, &mean, err);

    for (int64_t i = 0; i < rows->count && status >= 0; i++) {
        bool taken;

        status = kiln_row_counts(form, rows, i, opts->ignore_index, &taken, err);
        if (status < 0 || !taken)
            continue;
        *mean.sum += kiln_row_nll(rows->scores + i * form->width, form->width, rows->labels[i]);
        ++*mean.count;
    }
    return status;
}

static const KilnMetricOps ops = {
    .takes = KILN_METRIC_CLASSES,
    .mode = KILN_MODE_MIN,
    .update = update,
    .compute = kiln_mean_compute,
};

const KilnComponent kiln_metric_log_loss = {
    .kind = KILN_KIND_METRIC,
    .name = "log_loss",
    .summary = "Mean of -log of the label's probability",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.metric = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_metric_log_loss, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
