/* The launcher's end of mailboxes. Files are read again only when they have grown. */
#include "sweep/remote/remote_launch.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/parse.h"
#include "base/system/file.h"
#include "kiln/array.h"
#include "kiln/tools/clock.h"
#include "sweep/jobs/job_report.h"
#include "sweep/remote/mailbox.h"
#include "sweep/remote/task_file.h"

enum { MAX_ANSWER = 64 };

/* ---- Preparing a job -------------------------------------------------------------------- */

const char **kiln_remote_argv(const KilnSweepRequest *request, const char *dir)
{
    size_t n = 0;

    while (request->command != NULL && request->command[n] != NULL)
        n++;
    const char **argv = calloc(n + 2, sizeof(*argv));
    for (size_t i = 0; argv != NULL && i < n; i++)
        argv[i] = request->command[i];
    if (argv != NULL)
        argv[n] = dir;
    return argv;
}

static KilnStatus reset(KilnRemote *remote, size_t number, KilnError *err)
{
    if (!KILN_RESERVE(remote->jobs, remote->capacity, number + 1))
        return kiln_error_nomem(err, number);
    remote->jobs[number] = (KilnRemoteJob) { .read = 0 };
    return KILN_OK;
}

/* Lines of earlier processes are before this one. */
static KilnStatus mark_submission(KilnRemote *remote, size_t number, KilnError *err)
{
    static const char mark[] = "\n{\"submitted\":true}\n";
    char *path = kiln_sweep_job_path(remote->sweep, &remote->sweep->jobs.items[number],
                                     KILN_REPORTS_FILE);
    const int fd = path != NULL ? kiln_fd_open(path, O_WRONLY | O_CREAT | O_APPEND) : -1;
    KilnStatus status = KILN_OK;

    if (path == NULL)
        status = kiln_error_nomem(err, 1);
    else if (fd < 0 || !kiln_fd_write(fd, mark, strlen(mark)))
        status = kiln_error_errno(err, path);
    else
        remote->jobs[number].read = (int64_t)lseek(fd, 0, SEEK_END);
    if (fd >= 0)
        close(fd);
    free(path);
    return status;
}

/* On disk before the job is submitted: a later launcher must not freeze it again. */
static KilnStatus record_queued(KilnRemote *remote, size_t number, KilnError *err)
{
    KilnSweep *sweep = remote->sweep;
    KilnJob *job = &sweep->jobs.items[number];

    job->read = remote->jobs[number].read;
    KilnStatus status = kiln_journal_append(
        sweep->journal, kiln_record_queued(number, job, kiln_instance_name(sweep->launcher)), err);
    return status >= 0 ? kiln_journal_sync(sweep->journal, err) : status;
}

KilnStatus kiln_remote_command(KilnRemote *remote, size_t number, const char *const **ret_argv,
                               KilnError *err)
{
    KilnStatus status = reset(remote, number, err);

    if (status >= 0 && remote->argv == NULL &&
        (remote->argv = kiln_remote_argv(remote->sweep->request, remote->sweep->path)) == NULL)
        status = kiln_error_nomem(err, 1);
    if (status >= 0)
        status = mark_submission(remote, number, err);
    if (status >= 0)
        status = kiln_task_file_write(remote->sweep, number, err);
    if (status >= 0)
        status = record_queued(remote, number, err);
    if (status >= 0)
        *ret_argv = remote->argv;
    return status;
}

/* The number of the report that was answered last; 0: none was. */
static int64_t last_answer(const KilnRemote *remote, size_t number)
{
    char *path = kiln_sweep_job_path(remote->sweep, &remote->sweep->jobs.items[number],
                                     KILN_ANSWER_FILE);
    char *text = NULL;
    size_t size = 0;
    int64_t answered = 0;

    if (path != NULL && kiln_file_read(path, MAX_ANSWER, &text, &size, NULL) >= 0) {
        text[strcspn(text, " ")] = '\0';
        if (kiln_parse_i64(text, &answered, NULL) < 0)
            answered = 0;
    }
    free(text);
    free(path);
    return answered;
}

KilnStatus kiln_remote_attach(KilnRemote *remote, size_t number, KilnError *err)
{
    KilnStatus status = reset(remote, number, err);

    if (status < 0)
        return status;
    remote->jobs[number].read = remote->sweep->jobs.items[number].read;
    remote->jobs[number].answered = last_answer(remote, number);
    return KILN_OK;
}

void kiln_remote_release(KilnRemote *remote)
{
    free(remote->jobs);
    free(remote->argv);
    *remote = (KilnRemote) { .sweep = NULL };
}

/* ---- Answers ---------------------------------------------------------------------------- */

/* Jobs wait for answers while heartbeats come. */
static void beat(KilnRemote *remote)
{
    char *path = kiln_path_join(remote->sweep->path, KILN_HEARTBEAT_FILE);

    if (path != NULL && (remote->beat == 0.0 || kiln_clock() - remote->beat >= kiln_heartbeat_s)) {
        (void)!kiln_file_write_plain(path, "a launcher lives\n", NULL);
        remote->beat = kiln_clock();
    }
    free(path);
}

static KilnStatus answer(KilnRemote *remote, size_t number, int64_t report, const char *reply,
                         KilnError *err)
{
    char *path = kiln_sweep_job_path(remote->sweep, &remote->sweep->jobs.items[number],
                                     KILN_ANSWER_FILE);
    char text[MAX_ANSWER];

    snprintf(text, sizeof(text), "%lld %s", (long long)report, reply);
    KilnStatus status = path != NULL ? kiln_file_write(path, text, strlen(text), err)
                                     : kiln_error_nomem(err, 1);
    if (status >= 0)
        remote->jobs[number].answered = report;
    free(path);
    return status;
}

/* ---- Lines of the mailbox -------------------------------------------------------------------- */

/* "killed by SIGSEGV (Slurm job 12_3 on node a7)" */
static void append_where(KilnJobEnd *end, const char *where)
{
    const size_t n = strlen(end->reason);

    if (where != NULL && where[0] != '\0' && end->status != KILN_JOB_OK)
        snprintf(end->reason + n, sizeof(end->reason) - n, "%s%s%s", n > 0 ? " (" : "", where,
                 n > 0 ? ")" : "");
}

/* The job's seconds are those of its own clock: a launcher may read its end much later. */
static void set_started(KilnRemote *remote, size_t number, double until)
{
    const double ran = until - remote->jobs[number].begun;

    remote->sweep->jobs.items[number].started = kiln_clock() - (ran > 0.0 ? ran : 0.0);
}

static KilnStatus requeue(KilnRemote *remote, size_t number, const KilnJobEnd *why, double at,
                          KilnError *err)
{
    set_started(remote, number, at);
    return remote->launch->requeued(remote->launch->ctx, number, why, err);
}

/* Another process begins, or was prepared: the one before has ended, as it wrote, or without a
 * word. */
static KilnStatus end_before(KilnRemote *remote, size_t number, double at, KilnError *err)
{
    const KilnRemoteJob *state = &remote->jobs[number];
    const KilnJob *job = &remote->sweep->jobs.items[number];
    KilnJobEnd end = { .status = KILN_JOB_KILLED, .reason = "its process was lost" };

    if (state->over)
        end = state->end;
    else
        append_where(&end, job->where);
    return job->queued ? KILN_OK : requeue(remote, number, &end, at, err);
}

static KilnStatus read_begin(KilnRemote *remote, size_t number, const char *where, double at,
                             KilnError *err)
{
    KilnRemoteJob *state = &remote->jobs[number];
    KilnJob *job = &remote->sweep->jobs.items[number];
    KilnStatus status = end_before(remote, number, at, err);

    if (status < 0)
        return status;
    state->over = false;
    state->begun = at;
    job->where = kiln_arena_strdup(&remote->sweep->jobs.arena, where);
    if (job->where == NULL)
        return kiln_error_nomem(err, strlen(where));
    status = remote->launch->started(remote->launch->ctx, number, 0, err);
    set_started(remote, number, (double)time(NULL));
    return status;
}

static KilnStatus read_end(KilnRemote *remote, size_t number, const json_t *event, double at,
                           KilnError *err)
{
    KilnRemoteJob *state = &remote->jobs[number];
    const char *reason = json_string_value(json_object_get(event, "reason"));
    KilnJobEnd end = { .status = KILN_JOB_FAILED };

    (void)kiln_job_status_find(json_string_value(json_object_get(event, "ends")), &end.status);
    snprintf(end.reason, sizeof(end.reason), "%.180s", reason != NULL ? reason : "");
    append_where(&end, remote->sweep->jobs.items[number].where);
    if (json_is_true(json_object_get(event, "again")))
        return requeue(remote, number, &end, at, err);
    set_started(remote, number, at);
    state->over = true;
    state->end = end;
    return KILN_OK;
}

/* A report: *ret_asks is its number if it waits for an answer. */
static KilnStatus read_report(KilnRemote *remote, size_t number, const char *line, size_t length,
                              const json_t *report, int64_t *ret_asks, const char **ret_reply,
                              KilnError *err)
{
    const bool asks = json_is_true(json_object_get(report, "asks"));
    const int64_t id = json_integer_value(json_object_get(report, "number"));
    KilnJob *job = &remote->sweep->jobs.items[number];

    /* An answered one is read again after a launcher was killed: only its values count. */
    if (asks && id <= remote->jobs[number].answered) {
        (void)kiln_report_read(&remote->sweep->jobs.arena, job, line, length);
        return KILN_OK;
    }
    if (asks)
        *ret_asks = id;
    return remote->launch->reported(remote->launch->ctx, number, line, length, ret_reply, err);
}

/* The journal has how far the reports were read: a later launcher reads on there, and again the
 * line of the process that still runs. */
static KilnStatus read_line(KilnRemote *remote, size_t number, const char *line, size_t length,
                            KilnError *err)
{
    json_t *event = json_loadb(line, length, 0, NULL);
    const char *where = json_string_value(json_object_get(event, "begins"));
    const double at = json_number_value(json_object_get(event, "time"));
    int64_t *read = &remote->jobs[number].read;
    KilnJob *job = &remote->sweep->jobs.items[number];
    const char *reply = "";
    int64_t asks = 0;
    KilnStatus status = KILN_OK;

    job->read = where != NULL ? *read : *read + (int64_t)length;
    *read += (int64_t)length;
    if (where != NULL)
        status = read_begin(remote, number, where, at, err);
    else if (json_object_get(event, "ends") != NULL)
        status = read_end(remote, number, event, at, err);
    else if (json_object_get(event, "submitted") != NULL)
        status = end_before(remote, number, remote->jobs[number].begun, err);
    else if (event != NULL)
        status = read_report(remote, number, line, length, event, &asks, &reply, err);
    if (status >= 0 && asks > 0 && *reply != '\0')
        status = answer(remote, number, asks, reply, err);
    json_decref(event);
    return status;
}

/* ---- Collecting ------------------------------------------------------------------------------ */

/* What the file at `path` has after *from bytes; NULL: nothing new. Owned by the caller. */
static char *read_more(const char *path, int64_t from, size_t *ret_size)
{
    const int fd = kiln_fd_open(path, O_RDONLY);
    struct stat st;
    char *text = NULL;
    size_t n = 0;
    ssize_t got = 1;

    *ret_size = 0;
    if (fd >= 0 && fstat(fd, &st) == 0 && (int64_t)st.st_size > from &&
        lseek(fd, (off_t)from, SEEK_SET) >= 0) {
        const size_t size = (size_t)((int64_t)st.st_size - from);

        text = malloc(size + 1);
        while (text != NULL && n < size && (got = read(fd, text + n, size - n)) > 0)
            n += (size_t)got;
    }
    if (fd >= 0)
        close(fd);
    *ret_size = n;
    return text;
}

static KilnStatus read_lines(KilnRemote *remote, size_t number, KilnError *err)
{
    char *path = kiln_sweep_job_path(remote->sweep, &remote->sweep->jobs.items[number],
                                     KILN_REPORTS_FILE);
    size_t size = 0;
    char *text = path != NULL ? read_more(path, remote->jobs[number].read, &size) : NULL;
    KilnStatus status = path != NULL ? KILN_OK : kiln_error_nomem(err, 1);
    const char *line = text, *newline;

    /* A line that is not complete yet is read again. */
    while (status >= 0 && line != NULL &&
           (newline = memchr(line, '\n', size - (size_t)(line - text))) != NULL) {
        const size_t length = (size_t)(newline - line) + 1;

        status = read_line(remote, number, line, length, err);
        line += length;
    }
    free(text);
    free(path);
    return status;
}

void kiln_remote_requeued(KilnRemote *remote, size_t number)
{
    remote->jobs[number].over = false;
}

KilnStatus kiln_remote_collect(KilnRemote *remote, size_t number, KilnJobNews *ret, KilnError *err)
{
    beat(remote);
    KilnStatus status = read_lines(remote, number, err);

    *ret = (KilnJobNews) {
        .begun = !remote->sweep->jobs.items[number].queued,
        .over = remote->jobs[number].over,
        .end = remote->jobs[number].end,
    };
    return status;
}
