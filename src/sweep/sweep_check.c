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
    KilnAxisValue *point;   /* the current one */
    const char **overrides; /* room for those of a point */
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
static void set_axis(ValueCheck *check, size_t axis, size_t value)
{
    const KilnSpace *space = &check->sweep->arguments.space;

    for (size_t i = axis; i < space->count; i++)
        if (space->axes[i]->leader == axis)
            check->point[i] = value_at(space->axes[i], value);
}

/* Set the axes on which this one depends to the first values for which it is active. */
static void activate(ValueCheck *check, size_t axis)
{
    const KilnSpace *space = &check->sweep->arguments.space;

    for (const KilnAxis *at = space->axes[axis]; at->active_for != NULL;
         at = space->axes[at->parent]) {
        size_t value = 0;

        while (!at->active_for[value])
            value++;
        set_axis(check, at->parent, value);
    }
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
    status = kiln_sweep_compose_job(sweep, overrides, n, number, whole, sweep->arguments.sources,
                                    ret, errors);
    kiln_job_errors_add(job_errors, errors, status, number);
    kiln_errors_free(errors);
    return status == KILN_E_NOMEM ? kiln_error_nomem(err, 1) : KILN_OK;
}

static KilnStatus check_point(ValueCheck *check, KilnError *err)
{
    KilnSweep *sweep = check->sweep;
    const KilnSpace *space = &sweep->arguments.space;
    KilnConfig *config = NULL;
    size_t n = 0;

    if (!kiln_space_overrides(space, check->point, &sweep->arena, check->overrides, &n))
        return kiln_error_nomem(err, space->count);
    KilnStatus status = compose(sweep, check->overrides, n, 0, check->whole, check->job_errors,
                                &config, err);
    if (config != NULL)
        status = kiln_sweep_copy_sources(sweep, config, err);
    kiln_config_free(config);
    return status;
}

static void set_first(ValueCheck *check)
{
    const KilnSpace *space = &check->sweep->arguments.space;

    for (size_t i = 0; i < space->count; i++)
        if (space->axes[i]->leader == i)
            set_axis(check, i, 0);
}

/* Check at most `most` values of an axis, evenly spread, with the other axes at their first, or at
 * the first for which this one is active. */
static KilnStatus check_axis(ValueCheck *check, size_t axis, size_t most, KilnError *err)
{
    const KilnSpace *space = &check->sweep->arguments.space;
    size_t all = n_values(space->axes[axis]);
    size_t n = all < most ? all : most;
    KilnStatus status = KILN_OK;

    set_first(check);
    const size_t checked = kiln_axis_is_active(space, axis, check->point); /* the first value */
    activate(check, axis);
    for (size_t i = checked; i < n && status >= 0; i++) {
        set_axis(check, axis, n > 1 ? i * (all - 1) / (n - 1) : 0);
        status = check_point(check, err);
    }
    check->left_out += all - n;
    return status;
}

static KilnStatus check_axes(ValueCheck *check, size_t most, KilnError *err)
{
    const KilnSpace *space = &check->sweep->arguments.space;

    set_first(check);
    KilnStatus status = check_point(check, err);
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
    const size_t room = sweep->arguments.space.count + 1;

    check.point = calloc(room, sizeof(*check.point));
    check.overrides = calloc(room, sizeof(*check.overrides));
    KilnStatus status = check.point != NULL && check.overrides != NULL
                            ? check_axes(&check, most, err)
                            : kiln_error_nomem(err, room);
    *ret_left_out = check.left_out;
    free(check.point);
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
        if (jobs->items[i].status == KILN_JOB_FORBIDDEN)
            continue;
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
