/* Runs a sweep: open, ask, check, launch. Also finds the sweep to resume. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "sweep/sweep.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/call.h"
#include "base/system/file.h"
#include "config/provenance/error_list.h"
#include "registry/plugin/plugin_record.h"
#include "sweep/sweep_state.h"

enum { MAX_DEPTH = 3 }; /* folders between multirun/ and a sweep's */

/* ---- Starting ---------------------------------------------------------------------------- */

/* Files are on disk before the journal refers to them. The record of the start comes first: from
 * there on the sweep can be resumed. */
static KilnStatus begin(KilnSweep *sweep, KilnError *err)
{
    const bool extended = sweep->request->resume != NULL;
    const bool changed = sweep->jobs.count > sweep->n_old || sweep->request->extend > 0;
    KilnStatus status = kiln_sweep_snapshot(sweep, err);

    if (status >= 0 && (!extended || changed))
        status = kiln_journal_append(
            sweep->journal,
            kiln_record_begun(&sweep->start, kiln_plugins_record(sweep->compose.registry),
                              &sweep->arguments.space, &sweep->declared[0], extended),
            err);
    if (status >= 0)
        status = kiln_sweep_record_sources(sweep, err);
    for (size_t i = sweep->n_old; i < sweep->jobs.count && status >= 0; i++)
        status = kiln_sweep_record_job(sweep, i, err);
    return status >= 0 ? kiln_journal_sync(sweep->journal, err) : status;
}

/* Make a folder. When another process makes it first, choose another. */
static KilnStatus make_dir(KilnSweep *sweep, KilnError *err)
{
    bool taken = false;
    KilnStatus status = kiln_sweep_make_dir(sweep, &taken, err);

    while (taken && status >= 0) {
        status = kiln_sweep_choose_dir(sweep, err);
        if (status >= 0)
            status = kiln_sweep_make_dir(sweep, &taken, err);
    }
    return status;
}

static void count(const KilnSweep *sweep, KilnSweepResult *ret)
{
    const KilnJobs *jobs = &sweep->jobs;

    snprintf(ret->dir, sizeof(ret->dir), "%s", sweep->dir != NULL ? sweep->dir : "");
    ret->jobs = jobs->count;
    ret->ok = kiln_jobs_count(jobs, KILN_JOB_OK);
    ret->interrupted = kiln_jobs_count(jobs, KILN_JOB_INTERRUPTED);
    ret->waiting = kiln_jobs_count(jobs, KILN_JOB_WAITING);
    ret->stopped = kiln_jobs_count(jobs, KILN_JOB_STOPPED);
    ret->failed = 0;
    for (size_t i = 0; i < jobs->count; i++)
        ret->failed += kiln_job_failed(&jobs->items[i]);
}

static KilnStatus check_launcher(const KilnSweep *sweep, KilnError *err)
{
    const KilnLauncherOps *ops = kiln_instance_component(sweep->launcher)->ops.launcher;

    return ops->ready == NULL
               ? KILN_OK
               : KILN_CALLED(sweep->launcher, "ready", ops->ready(sweep->launcher, err), err);
}

static KilnStatus run(KilnSweep *sweep, KilnJobErrors *job_errors, size_t *ret_checked,
                      KilnError *err)
{
    const bool resumed = sweep->request->resume != NULL;
    KilnStatus status = resumed ? KILN_OK : kiln_sweep_choose_dir(sweep, err);

    if (status >= 0)
        status = kiln_sweep_ask_all(sweep, err);
    if (status >= 0)
        status = kiln_sweep_check(sweep, job_errors, ret_checked, err);
    if (status < 0 || job_errors->status < 0 || (sweep->jobs.count == 0 && !sweep->learns))
        return status;
    status = check_launcher(sweep, err);
    if (status < 0)
        return status;
    if (!resumed)
        status = make_dir(sweep, err);
    if (status >= 0)
        status = kiln_sweep_restore_trials(sweep, err);
    if (status >= 0)
        status = begin(sweep, err);
    return status >= 0 ? kiln_sweep_launch(sweep, err) : status;
}

KilnStatus kiln_sweep_run(const KilnSweepRequest *request, KilnSweepResult *ret, KilnErrors *errors)
{
    KilnSweep sweep;
    KilnJobErrors job_errors = { .items = NULL };
    KilnError err = { 0 };
    size_t checked = 0;
    KilnStatus status = kiln_sweep_open(request, &sweep, errors);

    *ret = (KilnSweepResult) { .dir = "" };
    if (status >= 0) {
        status = run(&sweep, &job_errors, &checked, &err);
        count(&sweep, ret);
        if (job_errors.count > 0) {
            KilnStatus reported = kiln_job_errors_report(&job_errors, checked, errors);

            status = status >= 0 ? reported : status;
        }
        if (err.status < 0)
            kiln_errors_add(errors, &err);
    }
    kiln_job_errors_release(&job_errors);
    kiln_sweep_close(&sweep);
    return status;
}

/* ---- Finding a sweep ---------------------------------------------------------------- */

typedef struct Newest {
    char *path;
    struct timespec when;
} Newest;

static bool later(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec >= b->tv_nsec;
}

/* Search for the sweep whose journal was written last. */
static void search(Newest *newest, const char *dir, int depth)
{
    char *journal = kiln_path_join(dir, KILN_JOURNAL_FILE), **names = NULL;
    size_t n = 0;
    struct stat st;

    if (journal != NULL && stat(journal, &st) == 0) {
        if (newest->path == NULL || later(&st.st_mtim, &newest->when)) {
            free(newest->path);
            newest->path = kiln_strdup(dir);
            newest->when = st.st_mtim;
        }
    } else if (depth < MAX_DEPTH && kiln_dir_list(dir, &names, &n, NULL) >= 0) {
        for (size_t i = 0; i < n; i++) {
            char *child = kiln_path_join(dir, names[i]);

            if (child != NULL && names[i][0] != '.' && kiln_is_dir(child))
                search(newest, child, depth + 1);
            free(child);
        }
        kiln_names_free(names, n);
    }
    free(journal);
}

KilnStatus kiln_sweep_not_there(const char *path, KilnError *err)
{
    static const char last[] = "`last` means the newest sweep below multirun/";

    if (access(path, F_OK) != 0)
        return kiln_error_set(err, KILN_E_IO, "%s: %s; %s", path, strerror(errno), last);
    return kiln_error_set(err, KILN_E_IO, "%s: not a sweep's folder (it has no %s); %s", path,
                          KILN_JOURNAL_FILE, last);
}

KilnStatus kiln_sweep_find_dir(const char *word, char **ret, KilnError *err)
{
    Newest newest = { .path = NULL };
    const char *dir = word;

    if (strcmp(word, "last") == 0 && !kiln_is_dir(word)) {
        search(&newest, "multirun", 0);
        if (newest.path == NULL)
            return kiln_error_set(err, KILN_E_IO,
                                  "last: there is no sweep below multirun/; name the folder of "
                                  "one");
        dir = newest.path;
    }
    char *journal = kiln_path_join(dir, KILN_JOURNAL_FILE);
    KilnStatus status = KILN_OK;
    if (journal == NULL)
        status = kiln_error_nomem(err, strlen(dir));
    else if (!kiln_is_file(journal))
        status = kiln_sweep_not_there(dir, err);
    if (status >= 0 && (*ret = realpath(dir, NULL)) == NULL)
        status = kiln_error_errno(err, dir);
    free(journal);
    free(newest.path);
    return status;
}

KilnStatus kiln_sweep_find(const char *resume, KilnSweepFolder *ret, KilnError *err)
{
    KilnSweepFolder found = { .dir = NULL };
    char *dir = NULL;
    json_t *begun = NULL;
    KilnStatus status = kiln_sweep_find_dir(resume, &dir, err);

    if (status < 0)
        (void)kiln_error_prefix(err, "--resume ");
    if (status >= 0 && kiln_journal_peek(dir, &begun, err) < 0)
        status = kiln_error_set(err, KILN_E_FORMAT,
                                "%s: there is no sweep to resume: it ended before it began, "
                                "or its " KILN_JOURNAL_FILE " is damaged; start it again",
                                resume);
    if (status >= 0) {
        const char *cwd = json_string_value(json_object_get(begun, "cwd"));

        found.dir = kiln_arena_strdup(&found.arena, dir);
        found.cwd = kiln_arena_strdup(&found.arena, cwd != NULL ? cwd : ".");
        found.plugins = kiln_plugin_record_paths(&found.arena, json_object_get(begun, "plugins"));
        if (found.dir == NULL || found.cwd == NULL || found.plugins == NULL)
            status = kiln_error_nomem(err, 1);
    }
    json_decref(begun);
    free(dir);
    if (status < 0)
        kiln_arena_release(&found.arena);
    else
        *ret = found;
    return status;
}
