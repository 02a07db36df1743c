/* When a sweep starts nothing more: kiln.sweep.timeout, max_steps and patience. */
#include <math.h>

#include "sweep/sweep_state.h"

static int64_t steps_of(const KilnJobs *jobs)
{
    int64_t steps = 0;

    for (size_t i = 0; i < jobs->count; i++)
        steps += jobs->items[i].steps;
    return steps;
}

/* Jobs that have ended since the best one, by number. */
static int64_t ended_since_best(const KilnSweep *sweep)
{
    double best = (double)INFINITY;
    int64_t since = 0;

    for (size_t i = 0; i < sweep->jobs.count; i++) {
        const KilnJob *job = &sweep->jobs.items[i];
        KilnMode mode;
        const double score = kiln_sweep_score(sweep, job, &mode);
        const double loss = mode == KILN_MODE_MAX ? -score : score;

        if (job->status == KILN_JOB_OK && loss < best) {
            best = loss;
            since = 0;
        } else if (job->status == KILN_JOB_OK || job->status == KILN_JOB_STOPPED ||
                   kiln_job_failed(job)) {
            since++;
        }
    }
    return since;
}

const char *kiln_sweep_budget_end(const KilnSweep *sweep, double elapsed)
{
    const KilnSweepOptions *options = sweep->options;

    if (options->timeout > 0.0 && elapsed >= options->timeout)
        return "the time is over (kiln.sweep.timeout)";
    if (options->max_steps > 0 && steps_of(&sweep->jobs) >= options->max_steps)
        return "all optimizer steps are used (kiln.sweep.max_steps)";
    if (options->patience > 0 && ended_since_best(sweep) >= options->patience)
        return "no better value for too long (kiln.sweep.patience)";
    return NULL;
}
