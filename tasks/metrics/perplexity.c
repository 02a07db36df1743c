/* Perplexity: exp of the mean of -log of each token's probability
 * (torchmetrics.text.Perplexity). */
#include "kiln.h"

#include <math.h>

typedef struct Opts {
    int64_t *ignore_index;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_I64_OPT(Opts, ignore_index, "null", -2147483648.0, 2147483647.0,
                       "leave out tokens with this label (padding)"),
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

static KilnStatus compute(KilnInstance *self, KilnMetricState *state, KilnError *err)
{
    KilnMean mean;
    KilnStatus status = kiln_mean_open(state, &mean, err);

    (void)self;
    if (status < 0)
        return status;
    return kiln_metric_state_report(state, NULL, exp(kiln_mean_value(mean)), err);
}

static const KilnMetricOps ops = {
    .takes = KILN_METRIC_CLASSES,
    .mode = KILN_MODE_MIN,
    .update = update,
    .compute = compute,
};

const KilnComponent kiln_metric_perplexity = {
    .kind = KILN_KIND_METRIC,
    .name = "perplexity",
    .summary = "exp of the mean of -log of each token's probability",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.metric = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_metric_perplexity, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
