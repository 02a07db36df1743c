/* Lets a trial continue while its value improves. Where it does not, another pruner decides, or it
 * stops. */
#include "kiln.h"

#include <math.h>
#include <stdio.h>

typedef struct Opts {
    int64_t patience;
    double min_delta;
    KilnInstance *pruner;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, patience, "3", 0, 1e9,
                   "epochs without a better value after which a job may stop"),
    KILN_FIELD_F64(Opts, min_delta, "0", 0.0, 1e300, "the smallest change that is better"),
    KILN_FIELD_COMPONENT_OPT(Opts, pruner, KILN_KIND_PRUNER, "null",
                             "decides on jobs that do not improve; null: they stop"),
    KILN_FIELD_END,
};

static const KilnPrunerOps *ops_of(const KilnInstance *pruner)
{
    return kiln_instance_component(pruner)->ops.pruner;
}

static bool prune(KilnInstance *self, const KilnHistory *history, size_t trial,
                  char reason[KILN_SWEEP_REASON])
{
    const Opts *opts = kiln_opts(self);
    const KilnTrial *told = history->trials[trial];
    const KilnObjective *objective = history->objectives[0];
    const int64_t epoch = told->reports[told->n_reports - 1]->epoch;
    const double before = kiln_trial_best(history, trial, 0, epoch - opts->patience - 1);
    const double now = kiln_trial_best(history, trial, 0, epoch);

    if (!isfinite(before) || now < before - opts->min_delta)
        return false;
    if (opts->pruner != NULL)
        return ops_of(opts->pruner)->prune(opts->pruner, history, trial, reason);
    snprintf(reason, KILN_SWEEP_REASON,
             "after epoch %lld: no value of %s better than %.4g in the last %lld epochs",
             (long long)epoch, objective->metric,
             objective->mode == KILN_MODE_MAX ? -before : before, (long long)opts->patience + 1);
    return true;
}

static size_t resume(KilnInstance *self, const KilnHistory *history)
{
    KilnInstance *inner = ((const Opts *)kiln_opts(self))->pruner;

    return inner != NULL && ops_of(inner)->resume != NULL ? ops_of(inner)->resume(inner, history)
                                                          : KILN_NO_TRIAL;
}

static const KilnPrunerOps ops = { .prune = prune, .resume = resume };

const KilnComponent kiln_pruner_patient = {
    .kind = KILN_KIND_PRUNER,
    .name = "patient",
    .summary = "Stops a job whose value does not improve, if another pruner agrees",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.pruner = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_pruner_patient, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
