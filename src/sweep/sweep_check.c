/* Checks a sweep before anything runs: the values of every axis, and the config of every job where
 * they are not too many. */
#include <stdlib.h>
#include <string.h>

#include "config/provenance/error_list.h"
#include "registry/outputs.h"
#include "sweep/sweep_state.h"

enum { CHECKED_JOBS = 1000 };

/* ---- Values ----------------------------------------------------------------------------- */

typedef struct ValueCheck {
    KilnSweep *sweep;
    bool whole;             /* also a config of no kiln task */
    const char **overrides; /* of the current point */
    KilnJobErrors *job_errors;
    size_t left_out;
} ValueCheck;

/* An interval is checked at its two ends. */
static size_t n_values(const KilnAxis *axis)
{
    return kiln_axis_is_interval(axis) ? 2 : axis->count;
}

static KilnAxisValue value_at(const KilnAxis *axis, size_t i)
{
    if (kiln_axis_is_interval(axis))
        return (KilnAxisValue) { .number = i == 0 ? axis->low : axis->high };
    return (KilnAxisValue) { .index = i };
}

/* Set the axis, and those that follow it, to their value `value`. */
static KilnStatus set_axis(ValueCheck *check, size_t axis, size_t value, KilnError *err)
{
    const KilnSpace *space = &check->sweep->arguments.space;

    for (size_t i = axis; i < space->count; i++) {
        if (space->axes[i]->leader != axis)
            continue;
        check->overrides[i] = kiln_axis_override(space->axes[i], value_at(space->axes[i], value),
                                                 &check->sweep->arena);
        if (check->overrides[i] == NULL)
            return kiln_error_nomem(err, 1);
    }
    return KILN_OK;
}

/* Compose a config, whose errors go to `job_errors`. *ret NULL: it has errors. */
static KilnStatus compose(KilnSweep *sweep, const char *const *overrides, size_t n, size_t number,
                          bool whole, KilnJobErrors *job_errors, KilnConfig **ret, KilnError *err)
{
    KilnErrors *errors = NULL;
    KilnStatus status = kiln_errors_new(&errors);

    *ret = NULL;
    if (status < 0)
        return kiln_error_nomem(err, 1);
    status = kiln_sweep_compose_job(sweep, overrides, n, number, whole, ret, errors);
    kiln_job_errors_add(job_errors, errors, status, number);
    kiln_errors_free(errors);
    return status == KILN_E_NOMEM ? kiln_error_nomem(err, 1) : KILN_OK;
}

static KilnStatus check_point(ValueCheck *check, KilnError *err)
{
    KilnSweep *sweep = check->sweep;
    KilnConfig *config = NULL;
    KilnStatus status = compose(sweep, check->overrides, sweep->arguments.space.count, 0,
                                check->whole, check->job_errors, &config, err);

    if (config != NULL)
        status = kiln_sweep_copy_sources(sweep, config, err);
    kiln_config_free(config);
    return status;
}

/* Check at most `most` values of an axis, evenly spread, with the other axes at their first. */
static KilnStatus check_axis(ValueCheck *check, size_t axis, size_t most, KilnError *err)
{
    size_t all = n_values(check->sweep->arguments.space.axes[axis]);
    size_t n = all < most ? all : most;
    KilnStatus status = KILN_OK;

    for (size_t i = 1; i < n && status >= 0; i++) {
        status = set_axis(check, axis, i * (all - 1) / (n - 1), err);
        if (status >= 0)
            status = check_point(check, err);
    }
    check->left_out += all - n;
    return status >= 0 ? set_axis(check, axis, 0, err) : status;
}

static KilnStatus check_axes(ValueCheck *check, size_t most, KilnError *err)
{
    const KilnSpace *space = &check->sweep->arguments.space;
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < space->count && status >= 0; i++)
        if (space->axes[i]->leader == i)
            status = set_axis(check, i, 0, err);
    if (status >= 0)
        status = check_point(check, err);
    /* Errors of the first point would repeat for each value. */
    for (size_t i = 0; i < space->count && status >= 0 && check->job_errors->status >= 0; i++)
        if (space->axes[i]->leader == i)
            status = check_axis(check, i, most, err);
    return status;
}

KilnStatus kiln_sweep_check_values(KilnSweep *sweep, bool whole, size_t most,
                                   KilnJobErrors *job_errors, size_t *ret_left_out, KilnError *err)
{
    ValueCheck check = { .sweep = sweep, .whole = whole, .job_errors = job_errors };
    KilnStatus status = KILN_OK;

    check.overrides = calloc(sweep->arguments.space.count + 1, sizeof(*check.overrides));
    status = check.overrides != NULL ? check_axes(&check, most, err) : kiln_error_nomem(err, 1);
    *ret_left_out = check.left_out;
    free(check.overrides);
    return status;
}

/* ---- Jobs ----------------------------------------------------------------------------------- */

typedef struct JobDir {
    char *dir;
    size_t number;
} JobDir;

static int compare_dirs(const void *a, const void *b)
{
    return strcmp(((const JobDir *)a)->dir, ((const JobDir *)b)->dir);
}

/* Check the config of a job; *ret_dir is its folder, or NULL after an error in it. */
static KilnStatus check_job(KilnSweep *sweep, size_t number, KilnJobErrors *job_errors,
                            char **ret_dir, KilnError *err)
{
    const KilnJob *job = &sweep->jobs.items[number];
    KilnConfig *config = NULL;
    KilnError wrong = { 0 };
    size_t n = 0;

    while (job->overrides[n] != NULL)
        n++;
    KilnStatus status = compose(sweep, job->overrides, n, number, true, job_errors, &config, err);
    if (status < 0 || config == NULL)
        return status;
    if (kiln_sweep_job_dir(config, ret_dir, &wrong) < 0 ||
        kiln_sweep_share_threads(sweep, config, number, job_errors, &wrong) < 0)
        kiln_job_errors_add_one(job_errors, &wrong, number);
    if (sweep->request->resume == NULL)
        kiln_config_allow_outputs(config, sweep->request->compose.registry, sweep->dir);
    status = kiln_sweep_copy_sources(sweep, config, err);
    kiln_config_free(config);
    return status;
}

/* Report two jobs with the same folder. */
static void check_dirs(JobDir *dirs, size_t n, KilnJobErrors *job_errors)
{
    if (n > 0)
        qsort(dirs, n, sizeof(*dirs), compare_dirs);
    for (size_t i = 1; i < n; i++) {
        KilnError same = { 0 };

        if (strcmp(dirs[i].dir, dirs[i - 1].dir) != 0)
            continue;
        kiln_error_set(&same, KILN_E_TYPE,
                       "kiln.sweep.subdir gives jobs #%zu and #%zu the same folder '%.300s'; "
                       "add ${kiln.job.num} to it",
                       dirs[i - 1].number, dirs[i].number, dirs[i].dir);
        kiln_job_errors_add_one(job_errors, &same, dirs[i].number);
        return;
    }
}

static KilnStatus check_jobs(KilnSweep *sweep, KilnJobErrors *job_errors, KilnError *err)
{
    const KilnJobs *jobs = &sweep->jobs;
    JobDir *dirs = calloc(jobs->count + 1, sizeof(*dirs));
    KilnStatus status = dirs != NULL ? KILN_OK : kiln_error_nomem(err, jobs->count);
    size_t n = 0;

    for (size_t i = 0; i < jobs->count && status >= 0; i++) {
        dirs[n] = (JobDir) { .number = i };
        if (i >= sweep->n_old)
            status = check_job(sweep, i, job_errors, &dirs[n].dir, err);
        else if (jobs->items[i].dir != NULL &&
                 (dirs[n].dir = kiln_strdup(jobs->items[i].dir)) == NULL)
            status = kiln_error_nomem(err, 1);
        n += dirs[n].dir != NULL;
    }
    if (status >= 0 && job_errors->status >= 0)
        check_dirs(dirs, n, job_errors);
    for (size_t i = 0; i < n; i++)
        free(dirs[i].dir);
    free(dirs);
    return status;
}

/* ---- Before a sweep runs --------------------------------------------------------------------- */

static bool has_interval(const KilnSpace *space)
{
    for (size_t i = 0; i < space->count; i++)
        if (kiln_axis_is_interval(space->axes[i]))
            return true;
    return false;
}

KilnStatus kiln_sweep_check(KilnSweep *sweep, KilnJobErrors *job_errors, size_t *ret_jobs,
                            KilnError *err)
{
    const size_t n = sweep->jobs.count - sweep->n_old;
    const bool every_job = n > 0 && n <= CHECKED_JOBS;
    size_t left_out = 0;
    KilnStatus status = KILN_OK;

    *ret_jobs = 0;
    if (sweep->learns || n > CHECKED_JOBS || (n > 0 && has_interval(&sweep->arguments.space)))
        status = kiln_sweep_check_values(sweep, true, SIZE_MAX, job_errors, &left_out, err);
    if (status < 0 || job_errors->status < 0 || !every_job)
        return status;
    *ret_jobs = n;
    return check_jobs(sweep, job_errors, err);
}
