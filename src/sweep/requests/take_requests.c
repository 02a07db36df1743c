/* Takes requests in the launcher's process. A request is in the journal before its file is removed;
 * when a launcher is killed in between, the next one finds it there. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/system/file.h"
#include "base/text.h"
#include "sweep/display.h"
#include "sweep/requests/requests.h"

/* ---- Adding a job ------------------------------------------------------------------------- */

static bool is_added(const KilnJobs *jobs, const char *name)
{
    for (size_t i = 0; i < jobs->count; i++)
        if (jobs->items[i].added != NULL && strcmp(jobs->items[i].added, name) == 0)
            return true;
    return false;
}

/* Make a job of the overrides and, at a point of the space, a trial. */
static KilnStatus make_job(KilnSweep *sweep, const char *const *overrides, const char *name,
                           KilnError *err)
{
    const size_t number = sweep->jobs.count;
    size_t n = 0;

    while (overrides[n] != NULL)
        n++;
    KilnJob *job = kiln_jobs_add(&sweep->jobs, overrides, n, NULL);
    if (job == NULL || (job->added = kiln_arena_strdup(&sweep->jobs.arena, name)) == NULL)
        return kiln_error_nomem(err, n);
    KilnStatus status = kiln_sweep_claim_trial(sweep, number, err);
    if (status >= 0)
        status = kiln_sweep_update_trial(sweep, number, err);
    if (status >= 0)
        status = kiln_journal_append(sweep->journal, kiln_record_submitted(number, job), err);
    return status >= 0 ? kiln_optuna_update(sweep, number, err) : status;
}

/* An error in `wrong` is one of the request. */
static KilnStatus add_job(KilnSweep *sweep, KilnDisplay *display, const json_t *request,
                          const char *name, KilnError *wrong, KilnError *err)
{
    const char *const *overrides = kiln_texts_read(&sweep->jobs.arena,
                                                   json_object_get(request, "overrides"));

    if (overrides == NULL)
        return kiln_error_nomem(err, 1);
    if (is_added(&sweep->jobs, name))
        return KILN_OK;
    if (sweep->jobs.count >= (size_t)sweep->options->max_jobs) {
        kiln_error_set(wrong, KILN_E_RANGE,
                       "the sweep has %zu jobs, and no more are allowed (kiln.sweep.max_jobs)",
                       sweep->jobs.count);
        return KILN_OK;
    }
    KilnStatus status = make_job(sweep, overrides, name, err);
    if (status < 0)
        return status;
    display->to_run++;
    kiln_display_note(display, sweep->jobs.count - 1, "added on request");
    return KILN_OK;
}

/* ---- Stopping a job ------------------------------------------------------------------------- */

/* The launcher ends its process. One that the sweeper stops already does so by itself. */
static KilnStatus stop_running(KilnSweep *sweep, size_t number, KilnError *err)
{
    KilnJob *job = &sweep->jobs.items[number];

    if (job->stopping == NULL) {
        job->stopping = KILN_ON_REQUEST;
        job->terminating = true;
    }
    return kiln_journal_append(sweep->journal, kiln_record_stopping(number, job), err);
}

/* One that does not run never starts again. */
static KilnStatus stop_waiting(KilnSweep *sweep, size_t number, KilnError *err)
{
    KilnJob *job = &sweep->jobs.items[number];

    job->status = KILN_JOB_STOPPED;
    job->reason = KILN_ON_REQUEST;
    KilnStatus status = kiln_sweep_update_trial(sweep, number, err);
    if (status >= 0)
        status = kiln_journal_append(sweep->journal, kiln_record_ended(number, job, 0.0), err);
    return status >= 0 ? kiln_optuna_update(sweep, number, err) : status;
}

static KilnStatus stop_job(KilnSweep *sweep, KilnDisplay *display, const json_t *request,
                           const char *name, KilnError *wrong, KilnError *err)
{
    const json_t *value = json_object_get(request, "job");
    const size_t number = json_is_integer(value) && json_integer_value(value) >= 0
                              ? (size_t)json_integer_value(value)
                              : SIZE_MAX;
    KilnJob *job = number < sweep->jobs.count ? &sweep->jobs.items[number] : NULL;

    if (job != NULL && job->halted != NULL && strcmp(job->halted, name) == 0)
        return KILN_OK; /* in the journal already */
    if (kiln_request_check_stop(&sweep->jobs, number, wrong) < 0)
        return KILN_OK;
    const bool runs = job->status == KILN_JOB_RUNNING;
    job->halted = kiln_arena_strdup(&sweep->jobs.arena, name);
    if (job->halted == NULL)
        return kiln_error_nomem(err, strlen(name));
    KilnStatus status = runs ? stop_running(sweep, number, err) : stop_waiting(sweep, number, err);
    if (!runs && job->started <= 0.0)
        display->to_run--;
    kiln_display_note(display, number, runs ? "stops on request" : "stopped on request");
    return status;
}

/* ---- Files ------------------------------------------------------------------------------------
 */

static KilnStatus fulfil(KilnSweep *sweep, KilnDisplay *display, const char *path, const char *name,
                         KilnError *wrong, KilnError *err)
{
    json_t *request = NULL;
    KilnStatus status = kiln_json_read(path, &request, wrong);
    const char *kind = json_string_value(json_object_get(request, "request"));

    if (status < 0)
        return status == KILN_E_NOMEM ? kiln_error_nomem(err, 1) : KILN_OK;
    status = KILN_OK;
    if (kind != NULL && strcmp(kind, "add") == 0)
        status = add_job(sweep, display, request, name, wrong, err);
    else if (kind != NULL && strcmp(kind, "stop") == 0)
        status = stop_job(sweep, display, request, name, wrong, err);
    else
        kiln_error_set(wrong, KILN_E_FORMAT, "%s: an unknown request", path);
    json_decref(request);
    return status;
}

static KilnStatus take(KilnSweep *sweep, KilnDisplay *display, const char *dir, const char *name,
                       KilnError *err)
{
    char *path = kiln_path_join(dir, name);
    KilnError wrong = { 0 };
    KilnStatus status = path != NULL ? fulfil(sweep, display, path, name, &wrong, err)
                                     : kiln_error_nomem(err, strlen(name));

    if (status >= 0 && wrong.status < 0) {
        kiln_display_print(display, "a request is refused: %s", wrong.text);
        status = kiln_journal_append(sweep->journal, kiln_record_refused(name, wrong.text), err);
    }
    if (status >= 0)
        status = kiln_journal_sync(sweep->journal, err);
    if (status >= 0)
        status = kiln_path_remove(path, err);
    free(path);
    return status;
}

/* Has the folder changed since the last look? A change as new as the file system's clock is exact
 * may be followed by another with the same time. */
static bool has_changed(KilnSweep *sweep, const char *dir)
{
    enum { EXACT_S = 2 };
    struct stat st;

    if (stat(dir, &st) != 0 || (st.st_mtim.tv_sec == sweep->requests_seen.tv_sec &&
                                st.st_mtim.tv_nsec == sweep->requests_seen.tv_nsec))
        return false;
    if (time(NULL) - st.st_mtim.tv_sec > EXACT_S)
        sweep->requests_seen = st.st_mtim;
    return true;
}

KilnStatus kiln_sweep_take_requests(KilnSweep *sweep, KilnDisplay *display, bool *ret_any,
                                    KilnError *err)
{
    char *dir = kiln_path_join(sweep->path, KILN_REQUESTS), **names = NULL;
    size_t n = 0;
    KilnStatus status = dir != NULL ? KILN_OK : kiln_error_nomem(err, strlen(sweep->path));

    if (status >= 0 && has_changed(sweep, dir))
        status = kiln_dir_list(dir, &names, &n, err);
    for (size_t i = 0; i < n && status >= 0; i++) {
        if (!kiln_ends_with(names[i], KILN_REQUEST_ENDING))
            continue; /* of a process that writes it */
        *ret_any = true;
        status = take(sweep, display, dir, names[i], err);
    }
    kiln_names_free(names, n);
    free(dir);
    return status;
}
