/* When a sweep starts nothing more: kiln.sweep.timeout, max_steps and patience. */
#include "sweep/sweep_state.h"

static bool has_ended(const KilnJob *job)
{
    return job->status == KILN_JOB_OK || job->status == KILN_JOB_STOPPED || kiln_job_failed(job);
}

KilnSweepUse kiln_sweep_use(const KilnSweep *sweep)
{
    const KilnJob *best = kiln_sweep_best(sweep);
    KilnSweepUse use = { .steps = 0 };

    for (size_t i = 0; i < sweep->jobs.count; i++) {
        const KilnJob *job = &sweep->jobs.items[i];

        use.steps += job->steps;
        use.ended_since_best += has_ended(job) && job->first_run == 0 &&
                                (best == NULL || job > best);
    }
    return use;
}

const char *kiln_sweep_budget_end(const KilnSweep *sweep, double elapsed)
{
    const KilnSweepOptions *options = sweep->options;

    if (options->timeout > 0.0 && elapsed >= options->timeout)
        return "the time is over (kiln.sweep.timeout)";
    if (options->max_steps > 0 && kiln_sweep_use(sweep).steps >= options->max_steps)
        return "all optimizer steps are used (kiln.sweep.max_steps)";
    if (options->patience > 0 && kiln_sweep_use(sweep).ended_since_best >= options->patience)
        return "no better value for too long (kiln.sweep.patience)";
    return NULL;
}
