/* What sweepers and pruners read from a history: trials by their results. */
#include <math.h>
#include <stdlib.h>

#include "kiln/search/history.h"

double kiln_objective_loss(const KilnObjective *objective, double value)
{
    if (isnan(value))
        return (double)INFINITY;
    return objective->mode == KILN_MODE_MAX ? -value : value;
}

/* The status under which a trial is ranked; WAITING: it has not ended. */
static KilnJobStatus status_of(const KilnTrial *trial, double loss)
{
    switch (trial->status) {
    case KILN_JOB_OK:
    case KILN_JOB_STOPPED:
        return isfinite(loss) ? trial->status : KILN_JOB_FAILED;
    case KILN_JOB_FAILED:
    case KILN_JOB_TIMEOUT:
    case KILN_JOB_FORBIDDEN:
        return KILN_JOB_FAILED;
    default:
        return KILN_JOB_WAITING;
    }
}

static int place_of(KilnJobStatus status)
{
    return status == KILN_JOB_OK ? 0 : status == KILN_JOB_STOPPED ? 1 : 2;
}

static int compare(const void *a, const void *b)
{
    const KilnRankedTrial *x = a, *y = b;

    if (x->status != y->status)
        return place_of(x->status) - place_of(y->status);
    if (x->status == KILN_JOB_STOPPED && x->step != y->step)
        return x->step > y->step ? -1 : 1;
    if (x->loss != y->loss)
        return x->loss < y->loss ? -1 : 1;
    return (x->trial > y->trial) - (x->trial < y->trial);
}

size_t kiln_history_rank(const KilnHistory *history, size_t objective, KilnRankedTrial *ret)
{
    size_t n = 0;

    for (size_t i = 0; i < history->count; i++) {
        const KilnTrial *trial = history->trials[i];
        const double value = trial->values != NULL ? trial->values[objective] : (double)NAN;
        const double loss = kiln_objective_loss(history->objectives[objective], value);
        const KilnJobStatus status = status_of(trial, loss);

        if (status == KILN_JOB_WAITING)
            continue;
        ret[n++] = (KilnRankedTrial) {
            .trial = i,
            .status = status,
            .step = trial->n_reports > 0 ? trial->reports[trial->n_reports - 1]->step : 0,
            .loss = status == KILN_JOB_FAILED ? (double)INFINITY : loss,
        };
    }
    if (n > 0)
        qsort(ret, n, sizeof(*ret), compare);
    return n;
}

double kiln_trial_best(const KilnHistory *history, size_t trial, size_t objective, int64_t epoch)
{
    const KilnTrial *of = history->trials[trial];
    double best = (double)INFINITY;

    for (size_t i = 0; i < of->n_reports && of->reports[i]->epoch <= epoch; i++)
        best = fmin(best, kiln_objective_loss(history->objectives[objective],
                                              of->reports[i]->values[objective]));
    return best;
}
