/* The process of a job that runs on another machine than its launcher: forks the job, passes on
 * signals, and writes its begin and its end to the job's mailbox. */
#define _GNU_SOURCE /* sigabbrev_np, prctl's constants */
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/parse.h"
#include "base/system/file.h"
#include "sweep/jobs/job_report.h"
#include "sweep/remote/mailbox.h"
#include "sweep/remote/task_file.h"
#include "sweep/sweep_state.h"

enum { MAX_REPORTS = 1 << 28 };
static const int passed_on[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGXCPU };

/* ---- What is written to the mailbox --------------------------------------------------------- */

/* Seconds since 1970, by the clock of this machine. */
static double time_of_day(void)
{
    struct timespec now = { 0 };

    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A line of its own, even after one that a killed process left unfinished. */
static KilnStatus write_event(const KilnMailbox *mailbox, json_t *event, KilnError *err)
{
    KilnText line = { 0 };

    kiln_json_put(&event, "time", json_real(time_of_day()));
    char *text = kiln_json_dump(event, JSON_COMPACT);
    KilnStatus status = KILN_OK;

    json_decref(event);
    if (text != NULL)
        kiln_text_printf(&line, "\n%s\n", text);
    free(text);
    if (line.length == 0 || line.failed)
        status = kiln_error_nomem(err, 1);
    else if (!kiln_fd_write(mailbox->fd, line.data, line.length))
        status = kiln_error_errno(err, KILN_REPORTS_FILE);
    kiln_text_release(&line);
    return status;
}

static const char *environment(const char *name)
{
    const char *value = getenv(name);

    return value != NULL ? value : "";
}

static KilnStatus write_begin(const KilnMailbox *mailbox, KilnError *err)
{
    return write_event(
        mailbox, json_pack("{s:o}", "begins", kiln_json_text(environment(KILN_ENV_JOB_WHERE))),
        err);
}

static KilnStatus write_end(const KilnMailbox *mailbox, const KilnJobEnd *end, bool again,
                            KilnError *err)
{
    return write_event(mailbox,
                       json_pack("{s:s, s:o, s:b}", "ends", kiln_job_status_name(end->status),
                                 "reason", kiln_json_text(end->reason), "again", again),
                       err);
}

/* What the job's processes have written since it was submitted. */
typedef struct History {
    int64_t requeues; /* how often it was to run again near its time limit */
    bool done;        /* it has ended, and not by a signal from outside */
} History;

static void read_event(const char *line, History *history)
{
    json_t *event = json_loadb(line, strcspn(line, "\n"), 0, NULL);
    const char *ends = json_string_value(json_object_get(event, "ends"));
    KilnJobStatus status;

    if (kiln_starts_with(line, "{\"submitted\""))
        *history = (History) { .done = false };
    history->requeues += json_is_true(json_object_get(event, "again"));
    if (ends != NULL && kiln_job_status_find(ends, &status))
        history->done = status != KILN_JOB_INTERRUPTED && status != KILN_JOB_KILLED;
    json_decref(event);
}

static History read_history(const char *dir)
{
    char *path = kiln_path_join(dir, KILN_REPORTS_FILE), *text = NULL;
    size_t size = 0;
    History history = { .done = false };

    if (path != NULL && kiln_file_read(path, MAX_REPORTS, &text, &size, NULL) >= 0)
        for (const char *at = text; *at != '\0'; at += strcspn(at, "\n"), at += *at == '\n')
            read_event(at, &history);
    free(text);
    free(path);
    return history;
}

/* ---- How it ended ----------------------------------------------------------------------- */

static bool may_requeue(const char *dir)
{
    int64_t limit = 0;

    return kiln_parse_i64(environment(KILN_ENV_JOB_REQUEUE), &limit, NULL) >= 0 &&
           read_history(dir).requeues < limit;
}

/* The job stopped near its time limit: does it run again? */
static KilnJobEnd end_at_limit(bool again)
{
    const char *limit = environment(KILN_ENV_JOB_LIMIT);
    KilnJobEnd end = { .status = again ? KILN_JOB_INTERRUPTED : KILN_JOB_TIMEOUT };

    snprintf(end.reason, sizeof(end.reason), "%.100s%s", limit[0] != '\0' ? limit : "time limit",
             again ? ": requeued" : "");
    return end;
}

static KilnJobEnd end_by_signal(int number)
{
    const bool outside = number == SIGKILL || number == SIGTERM || number == SIGINT ||
                         number == SIGHUP || number == SIGUSR1;
    KilnJobEnd end = { .status = outside ? KILN_JOB_KILLED : KILN_JOB_FAILED };
    const char *name = sigabbrev_np(number);

    snprintf(end.reason, sizeof(end.reason), "killed by SIG%s%s", name != NULL ? name : "?",
             number == SIGKILL ? "; the system does that when memory runs out" : "");
    return end;
}

static KilnJobEnd end_of(int status)
{
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    KilnJobEnd end = { .status = KILN_JOB_OK };

    if (WIFSIGNALED(status))
        return end_by_signal(WTERMSIG(status));
    if (code == KILN_JOB_EXIT_OK)
        return end;
    if (code >= KILN_JOB_EXIT_SIGNAL) {
        end.status = code == KILN_JOB_EXIT_SIGNAL ? KILN_JOB_STOPPED : KILN_JOB_INTERRUPTED;
        snprintf(end.reason, sizeof(end.reason), "stopped with a checkpoint");
        return end;
    }
    end.status = KILN_JOB_FAILED;
    snprintf(end.reason, sizeof(end.reason), "exit status %d", code);
    return end;
}

/* Record the end. Returns the exit status of this process. */
static int finish(const KilnMailbox *mailbox, const char *dir, int status, bool limit_is_near,
                  KilnError *err)
{
    KilnJobEnd end = end_of(status);
    const bool stopped = end.status == KILN_JOB_INTERRUPTED || end.status == KILN_JOB_KILLED;
    const bool limited = limit_is_near && stopped, again = limited && may_requeue(dir);

    if (limited)
        end = end_at_limit(again);
    (void)!write_end(mailbox, &end, again, err);
    if (again)
        return KILN_JOB_EXIT_REQUEUE;
    return WIFEXITED(status) ? WEXITSTATUS(status) : KILN_JOB_EXIT_SIGNAL + WTERMSIG(status);
}

/* ---- The two processes ------------------------------------------------------------------ */

/* The job itself. That the sweeper or pruner stopped it is another exit status than a signal's. */
static int run_job(KilnSweepTask *task, const KilnMailbox *mailbox,
                   int (*body)(void *ctx, const KilnSweepTask *task), void *ctx)
{
    const int status = kiln_job_run(task, true, body, ctx);

    return status > KILN_JOB_EXIT_SIGNAL && mailbox->stopped ? KILN_JOB_EXIT_SIGNAL : status;
}

/* Pass signals on to the job until it ends; its wait status. `set` is blocked. */
static int wait_for(pid_t pid, const sigset_t *set, bool *ret_limit_is_near)
{
    int status = 0;

    while (waitpid(pid, &status, WNOHANG) != pid) {
        const int number = sigwaitinfo(set, NULL);

        *ret_limit_is_near |= number == SIGUSR1;
        if (number > 0 && number != SIGCHLD)
            (void)kill(pid, number);
    }
    return status;
}

/* Signals stay blocked in this process, so that none is lost before the fork or ends it alone. */
static KilnStatus supervise(KilnSweepTask *task, KilnMailbox *mailbox,
                            int (*body)(void *ctx, const KilnSweepTask *task), void *ctx,
                            int *ret_status, KilnError *err)
{
    bool limit_is_near = false;
    sigset_t set, before;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (size_t i = 0; i < KILN_COUNT(passed_on); i++)
        sigaddset(&set, passed_on[i]);
    sigprocmask(SIG_BLOCK, &set, &before);
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        sigprocmask(SIG_SETMASK, &before, NULL);
        const int code = run_job(task, mailbox, body, ctx);
        fflush(NULL);
        _exit(code);
    }
    if (pid < 0)
        return kiln_error_errno(err, "process for a job");
    const int status = wait_for(pid, &set, &limit_is_near);
    *ret_status = finish(mailbox, task->dir, status, limit_is_near, err);
    return KILN_OK;
}

/* Slurm may run a script again whose job has ended: it is not run twice. */
static KilnStatus run_first_rank(KilnSweepTask *task, KilnMailbox *mailbox,
                                 int (*body)(void *ctx, const KilnSweepTask *task), void *ctx,
                                 int *ret_status, KilnError *err)
{
    KilnStatus status = kiln_mailbox_own(mailbox, err);

    *ret_status = KILN_JOB_EXIT_OK;
    if (status < 0 || read_history(task->dir).done)
        return status;
    status = write_begin(mailbox, err);
    return status >= 0 ? supervise(task, mailbox, body, ctx, ret_status, err) : status;
}

/* Of a job that several processes train, only the first one reports. */
static int run_other_rank(KilnSweepTask *task, KilnReporter *reporter,
                          int (*body)(void *ctx, const KilnSweepTask *task), void *ctx)
{
    reporter->fd = -1;
    reporter->mailbox = NULL;
    reporter->asks = false;
    const int status = kiln_job_run(task, false, body, ctx);
    /* What an interrupted job does next is for the first rank to say. */
    return status > KILN_JOB_EXIT_SIGNAL ? KILN_JOB_EXIT_OK : status;
}

KilnStatus kiln_sweep_run_remote(const char *dir, size_t number,
                                 int (*body)(void *ctx, const KilnSweepTask *task), void *ctx,
                                 int *ret_status, KilnError *err)
{
    const char *rank = getenv("RANK");
    KilnMailbox mailbox = { .fd = -1 };
    KilnReporter reporter = { .fd = -1 };
    KilnTaskFile file = { .asks = false };
    KilnStatus status = kiln_task_file_read(dir, number, &file, err);

    if (status >= 0)
        status = kiln_mailbox_open(dir, file.task.dir, &mailbox, err);
    if (status >= 0) {
        reporter = (KilnReporter) {
            .fd = mailbox.fd,
            .metric = file.task.metric,
            .more = file.more,
            .n_more = file.n_more,
            .asks = file.asks,
            .mailbox = &mailbox,
        };
        file.task.report = &reporter;
    }
    if (status >= 0 && rank != NULL && strcmp(rank, "0") != 0) {
        *ret_status = run_other_rank(&file.task, &reporter, body, ctx);
    } else if (status >= 0) {
        status = run_first_rank(&file.task, &mailbox, body, ctx, ret_status, err);
    }
    kiln_mailbox_release(&mailbox);
    kiln_task_file_release(&file);
    return status;
}
