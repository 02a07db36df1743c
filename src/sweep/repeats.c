/* More runs of the same point with other seeds: kiln.sweep.repeats of each, kiln.sweep.confirm of
 * the best. They are jobs, but no trials: the trial is the first one, whose value is the mean of
 * all. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "sweep/sweep_state.h"

/* ---- Runs of a point ---------------------------------------------------------------------- */

static const KilnJob *next_run(const KilnSweep *sweep, const KilnJob *job)
{
    return job->next_run > 0 ? &sweep->jobs.items[job->next_run - 1] : NULL;
}

void kiln_job_link_run(KilnJobs *jobs, size_t first, size_t number)
{
    KilnJob *last = &jobs->items[first];

    while (last->next_run > 0)
        last = &jobs->items[last->next_run - 1];
    last->next_run = number + 1;
    jobs->items[number].first_run = first + 1;
}

KilnRuns kiln_sweep_runs_of(const KilnSweep *sweep, const KilnJob *job, size_t objective)
{
    KilnRuns runs = { .value = (double)NAN };
    double sum = 0.0, squares = 0.0;
    size_t n = 0;

    for (; job != NULL; job = next_run(sweep, job)) {
        const double value = kiln_job_value_of(sweep, job, objective, &runs.mode);

        runs.count++;
        runs.open += job->status == KILN_JOB_WAITING || job->status == KILN_JOB_RUNNING ||
                     job->status == KILN_JOB_INTERRUPTED;
        if (job->status != KILN_JOB_OK || isnan(value))
            continue;
        n++;
        sum += value;
        squares += value * value;
    }
    if (n > 0)
        runs.value = sum / (double)n;
    if (n > 1)
        runs.deviation = sqrt(fmax(0.0, (squares - sum * runs.value) / ((double)n - 1.0)));
    runs.counted = n;
    return runs;
}

/* ---- More runs ------------------------------------------------------------------------------ */

static bool is_seed(const char *override)
{
    const char *key, *value;
    const size_t n = kiln_override_split(override, &key, &value);

    return n == strlen("seed") && strncmp(key, "seed", n) == 0;
}

/* The seed of the first run. */
static KilnStatus first_seed(const KilnSweep *sweep, const KilnJob *job, int64_t *ret,
                             KilnError *err)
{
    const char *key, *value = NULL;
    char *text = NULL;

    for (const char *const *override = job->overrides; *override != NULL; override++)
        if (is_seed(*override))
            (void)kiln_override_split(*override, &key, &value);
    if (value == NULL && kiln_config_text(sweep->config, "seed", &text, NULL) >= 0)
        value = text;
    const bool good = value != NULL && kiln_parse_i64(value, ret, NULL) >= 0;
    if (!good)
        kiln_error_set(err, KILN_E_TYPE,
                       "kiln.sweep.repeats and confirm change the seed, which must be a whole "
                       "number, not %s: seed=1",
                       value != NULL ? value : "missing");
    free(text);
    return good ? KILN_OK : err->status;
}

/* Add a run with that seed. */
static KilnStatus add_run(KilnSweep *sweep, size_t first, int64_t seed, KilnError *err)
{
    const KilnJob *job = &sweep->jobs.items[first];
    const size_t number = sweep->jobs.count;
    size_t n = 0, at = 0;

    while (job->overrides[n] != NULL)
        n++;
    const char **overrides = kiln_arena_alloc(&sweep->arena, (n + 2) * sizeof(*overrides));
    if (overrides == NULL)
        return kiln_error_nomem(err, n);
    for (size_t i = 0; i < n; i++)
        if (!is_seed(job->overrides[i]))
            overrides[at++] = job->overrides[i];
    overrides[at++] = kiln_arena_printf(&sweep->arena, "seed=%lld", (long long)seed);
    if (overrides[at - 1] == NULL || kiln_jobs_add(&sweep->jobs, overrides, at, NULL) == NULL)
        return kiln_error_nomem(err, at);
    sweep->jobs.items[number].claimed = true; /* no point of the space is to claim it */
    kiln_job_link_run(&sweep->jobs, first, number);
    KilnStatus status = kiln_sweep_record_job(sweep, number, err);
    return status >= 0 ? kiln_optuna_update(sweep, number, err) : status;
}

/* Add runs of a job that is OK until there are `total`. */
static KilnStatus add_runs(KilnSweep *sweep, size_t first, int64_t total, KilnError *err)
{
    const size_t runs = kiln_sweep_runs_of(sweep, &sweep->jobs.items[first], 0).count;
    int64_t seed = 0;
    KilnStatus status = first_seed(sweep, &sweep->jobs.items[first], &seed, err);

    for (int64_t i = (int64_t)runs; i < total && status >= 0; i++)
        status = add_run(sweep, first, seed + i, err);
    return status;
}

KilnStatus kiln_sweep_repeat(KilnSweep *sweep, size_t number, KilnError *err)
{
    const KilnJob *job = &sweep->jobs.items[number];

    if (sweep->options->repeats < 2 || job->first_run > 0 || job->status != KILN_JOB_OK)
        return KILN_OK;
    return add_runs(sweep, number, sweep->options->repeats, err);
}

KilnStatus kiln_sweep_confirm(KilnSweep *sweep, bool *ret_any, KilnError *err)
{
    const KilnJob *best = sweep->options->confirm > 0 ? kiln_sweep_best(sweep) : NULL;

    *ret_any = best != NULL &&
               (int64_t)kiln_sweep_runs_of(sweep, best, 0).count < sweep->options->confirm;
    return *ret_any
               ? add_runs(sweep, (size_t)(best - sweep->jobs.items), sweep->options->confirm, err)
               : KILN_OK;
}

KilnStatus kiln_sweep_check_repeats(const KilnSweep *sweep, KilnError *err)
{
    const KilnSpace *space = &sweep->arguments.space;
    const bool repeats = sweep->options->repeats > 1 || sweep->options->confirm > 0;

    for (size_t i = 0; i < space->count && repeats; i++)
        if (strcmp(space->axes[i]->key, "seed") == 0 && space->axes[i]->count != 1)
            return kiln_error_set(err, KILN_E_TYPE,
                                  "kiln.sweep.repeats and confirm run jobs with other seeds, but "
                                  "the sweep varies seed itself; give it one value");
    return KILN_OK;
}
