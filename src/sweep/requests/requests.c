/* Makes requests to a sweep, and waits until its launcher has taken them. What the launcher does
 * with them: take_requests.c. */
#define _POSIX_C_SOURCE 200809L /* nanosleep */
#include "sweep/requests/requests.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/system/file.h"
#include "config/provenance/error_list.h"
#include "kiln/tools/clock.h"
#include "sweep/sweep_state.h"

KilnStatus kiln_request_check_stop(const KilnJobs *jobs, size_t number, KilnError *err)
{
    if (number >= jobs->count)
        return kiln_error_set(err, KILN_E_KEY, "there is no job %zu: the sweep has %zu jobs%s",
                              number, jobs->count, jobs->count > 0 ? ", from 0 on" : "");
    const KilnJob *job = &jobs->items[number];
    if (job->status == KILN_JOB_RUNNING && job->halted != NULL)
        return kiln_error_set(err, KILN_E_KEY, "job %zu is about to stop, on request", number);
    if (job->status == KILN_JOB_RUNNING || job->status == KILN_JOB_WAITING ||
        job->status == KILN_JOB_INTERRUPTED || job->status == KILN_JOB_KILLED)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_KEY, "job %zu has ended (%s)", number,
                          kiln_job_status_name(job->status));
}

/* ---- Writing ------------------------------------------------------------------------------ */

/* The path of a new request; NULL when memory is out. The name is unique: a process makes one. */
static char *new_path(const char *dir, const char **ret_name)
{
    struct timespec now = { 0 };
    KilnText path = { 0 };

    clock_gettime(CLOCK_REALTIME, &now);
    kiln_text_printf(&path, "%s/" KILN_REQUESTS "/", dir);
    const size_t start = path.length;
    kiln_text_printf(&path, "%lld.%09ld-%ld" KILN_REQUEST_ENDING, (long long)now.tv_sec,
                     now.tv_nsec, (long)getpid());
    char *text = kiln_text_take(&path);
    if (text != NULL)
        *ret_name = text + start;
    return text;
}

static KilnStatus write_request(const char *path, json_t *request, KilnError *err)
{
    char *text = kiln_json_dump(request, JSON_COMPACT);
    KilnStatus status = text != NULL ? kiln_dir_make_parent(path, err) : kiln_error_nomem(err, 1);

    if (status >= 0)
        status = kiln_file_write(path, text, strlen(text), err);
    free(text);
    json_decref(request);
    return status;
}

/* ---- Waiting ------------------------------------------------------------------------------- */

typedef struct Search {
    const char *name; /* of the request */
    bool found;
    KilnSweepAnswer *answer;
} Search;

/* Read what the launcher has made of the request. */
static KilnStatus read_record(void *ctx, const json_t *line, KilnError *err)
{
    Search *search = ctx;
    const char *name = json_string_value(json_object_get(line, "request"));
    const char *event = json_string_value(json_object_get(line, "event"));
    const char *reason = json_string_value(json_object_get(line, "reason"));

    if (name == NULL || event == NULL || strcmp(name, search->name) != 0)
        return KILN_OK;
    if (strcmp(event, "refused") == 0)
        return kiln_error_set(err, KILN_E_KEY, "%s", reason != NULL ? reason : "refused");
    if (search->found) /* the end of the job, which has the name again */
        return KILN_OK;
    search->answer->job = (size_t)json_integer_value(json_object_get(line, "job"));
    search->answer->runs = strcmp(event, "stopping") == 0;
    search->found = true;
    return KILN_OK;
}

/* The launcher removes the file of a request that is in the journal. */
static KilnStatus wait_for_launcher(const char *dir, const char *path, const char *name,
                                    KilnSweepAnswer *answer, KilnError *err)
{
    static const double patience_s = 10.0;
    const struct timespec pause = { .tv_nsec = 20 * 1000000L };
    const double start = kiln_clock();
    Search search = { .name = name, .answer = answer };

    answer->state = KILN_REQUEST_LATE;
    while (kiln_is_file(path) && kiln_clock() - start < patience_s) {
        if (!kiln_journal_is_owned(dir) && kiln_is_file(path)) {
            answer->state = KILN_REQUEST_WAITING;
            return KILN_OK;
        }
        nanosleep(&pause, NULL);
    }
    if (kiln_is_file(path))
        return KILN_OK;
    answer->state = KILN_REQUEST_TAKEN;
    KilnStatus status = kiln_journal_read(dir, read_record, &search, err);
    if (status >= 0 && !search.found)
        status = kiln_error_set(err, KILN_E_IO, "%s: was removed, but not by the launcher", path);
    return status;
}

static KilnStatus ask(const char *dir, json_t *request, KilnSweepAnswer *answer, KilnError *err)
{
    const char *name = "";
    char *path = new_path(dir, &name);

    if (path == NULL || request == NULL) {
        json_decref(request);
        free(path);
        return kiln_error_nomem(err, 1);
    }
    KilnStatus status = write_request(path, request, err);
    if (status >= 0)
        status = wait_for_launcher(dir, path, name, answer, err);
    free(path);
    return status;
}

/* ---- Both requests ----------------------------------------------------------------------- */

static json_t *add_json(const char *const *overrides)
{
    json_t *list = json_array();

    for (; *overrides != NULL; overrides++)
        kiln_json_add(&list, kiln_json_text(*overrides));
    return json_pack("{s:s, s:o}", "request", "add", "overrides", list);
}

KilnStatus kiln_sweep_add(const KilnSweepRequest *request, const char *const *words,
                          KilnSweepAnswer *ret, KilnErrors *errors)
{
    const char *const *overrides = NULL;
    KilnSweep sweep;
    KilnError err = { 0 };
    KilnStatus status = kiln_sweep_open(request, &sweep, errors);

    *ret = (KilnSweepAnswer) { .job = 0 };
    if (status >= 0)
        status = kiln_sweep_check_point(&sweep, words, &overrides, &ret->is_point, errors);
    if (status >= 0 && ask(sweep.path, add_json(overrides), ret, &err) < 0)
        status = kiln_errors_add(errors, &err);
    kiln_sweep_close(&sweep);
    return status;
}

KilnStatus kiln_sweep_stop(const char *dir, size_t job, KilnSweepAnswer *ret, KilnError *err)
{
    KilnJobs jobs = { .items = NULL };
    KilnReplay replay = { .jobs = &jobs };
    KilnStatus status = kiln_journal_read(dir, kiln_replay_record, &replay, err);

    *ret = (KilnSweepAnswer) { .job = job };
    if (status >= 0)
        status = kiln_request_check_stop(&jobs, job, err);
    free(replay.variables);
    kiln_jobs_release(&jobs);
    if (status < 0)
        return status;
    return ask(dir, json_pack("{s:s, s:I}", "request", "stop", "job", (json_int_t)job), ret, err);
}
