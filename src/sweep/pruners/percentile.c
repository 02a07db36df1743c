/* Stops a trial whose best value so far is worse than those of most others after as many epochs.
 * The median rule of Golovin et al., "Google Vizier" (KDD 2017), for any percentile. */
#include "kiln.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct Opts {
    double percentile;
    int64_t startup_trials, warmup_epochs, interval_epochs;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_F64(Opts, percentile, "50", 0.0, 100.0,
                   "the share of jobs that continue, in percent; 50: the better half (median)"),
    KILN_FIELD_I64(Opts, startup_trials, "5", 1, 1e6,
                   "a trial stops only where so many others have reached its epoch"),
    KILN_FIELD_I64(Opts, warmup_epochs, "0", 0, 1e9, "a trial stops only after these epochs"),
    KILN_FIELD_I64(Opts, interval_epochs, "1", 1, 1e9, "epochs between two decisions on a trial"),
    KILN_FIELD_END,
};

/* Room for the losses of others. */
typedef struct State {
    double *losses;
    size_t capacity;
} State;

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Sort the best losses of the other trials that have reached the epoch; returns how many. */
static size_t collect(State *state, const KilnHistory *history, size_t trial, int64_t epoch)
{
    size_t n = 0;

    for (size_t i = 0; i < history->count; i++) {
        const KilnTrial *other = history->trials[i];

        if (i == trial || other->n_reports == 0 ||
            other->reports[other->n_reports - 1]->epoch < epoch)
            continue;
        state->losses[n++] = kiln_trial_best(history, i, 0, epoch);
    }
    qsort(state->losses, n, sizeof(*state->losses), compare);
    return n;
}

/* The loss at this percentile, between two of the sorted ones. */
static double at_percentile(const double *losses, size_t n, double percentile)
{
    const double at = percentile / 100.0 * (double)(n - 1);
    const size_t low = (size_t)at;

    if (low + 1 >= n || at == (double)low)
        return losses[low < n ? low : n - 1];
    return losses[low] + (at - (double)low) * (losses[low + 1] - losses[low]);
}

static bool is_due(const Opts *opts, int64_t epoch)
{
    return epoch > opts->warmup_epochs &&
           (epoch - opts->warmup_epochs - 1) % opts->interval_epochs == 0;
}

static bool prune(KilnInstance *self, const KilnHistory *history, size_t trial,
                  char reason[KILN_SWEEP_REASON])
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const KilnTrial *told = history->trials[trial];
    const KilnObjective *objective = history->objectives[0];
    const int64_t epoch = told->reports[told->n_reports - 1]->epoch;

    if (!is_due(opts, epoch) || !KILN_RESERVE(state->losses, state->capacity, history->count))
        return false;
    const size_t n = collect(state, history, trial, epoch);
    const double loss = kiln_trial_best(history, trial, 0, epoch);
    if (n < (size_t)opts->startup_trials)
        return false;
    const double limit = at_percentile(state->losses, n, opts->percentile);
    if (loss <= limit || !isfinite(limit))
        return false;
    const double sign = objective->mode == KILN_MODE_MAX ? -1.0 : 1.0;
    snprintf(reason, KILN_SWEEP_REASON,
             "after epoch %lld: %s %.4g, while the best %g %% of %zu others have %.4g or better",
             (long long)epoch, objective->metric, sign * loss, opts->percentile, n, sign * limit);
    return true;
}

static void release(KilnInstance *self)
{
    free(((State *)kiln_state(self))->losses);
}

static const KilnPrunerOps ops = { .prune = prune };

const KilnComponent kiln_pruner_percentile = {
    .kind = KILN_KIND_PRUNER,
    .name = "percentile",
    .summary = "Stops a job whose best value so far is worse than that of most others",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .release = release,
    .ops.pruner = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_pruner_percentile, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
