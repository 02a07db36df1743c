/* Runs the jobs of a sweep: puts the launcher's events into the journal, the results and the
 * display. Which job is next: next_job.c. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/call.h"
#include "base/system/file.h"
#include "kiln/tools/clock.h"
#include "sweep/jobs/job_report.h"
#include "sweep/launching.h"

enum { LOG_LINES = 6, LOG_BYTES = 4096 };
static const double results_every_s = 1.0, requests_every_s = 1.0;

static int run(void *ctx, size_t number, int report)
{
    KilnLaunching *launching = ctx;
    const KilnJob *job = &launching->sweep->jobs.items[number];

    kiln_data_enter_job(&launching->data, report);
    return kiln_sweep_run_frozen(launching->sweep, number, job->dir, job->overrides, report);
}

/* ---- Events of the launcher --------------------------------------------------------- */

/* Set a time of a job to the current one. */
static KilnStatus set_time(KilnSweep *sweep, const char **ret, KilnError *err)
{
    char now[KILN_TIME_TEXT];

    *ret = kiln_arena_strdup(&sweep->jobs.arena, kiln_time_text(now));
    return *ret != NULL ? KILN_OK : kiln_error_nomem(err, sizeof(now));
}

static KilnStatus started(void *ctx, size_t number, int64_t pid, KilnError *err)
{
    KilnLaunching *launching = ctx;
    KilnSweep *sweep = launching->sweep;
    KilnJob *job = &sweep->jobs.items[number];

    kiln_data_forked(&launching->data);
    job->status = KILN_JOB_RUNNING;
    job->queued = false;
    job->reason = "";
    job->error = NULL;
    job->terminating = false;
    job->started = kiln_clock();
    job->progress = (KilnJobProgress) { .done = (double)NAN };
    kiln_text_clear(&job->report);
    KilnStatus status = kiln_sweep_update_trial(sweep, number, err);
    if (status >= 0 && job->began == NULL)
        status = set_time(sweep, &job->began, err);
    if (status < 0)
        return status;
    /* Not synced: a job whose start is lost is waiting, and runs again. */
    status = kiln_journal_append(sweep->journal, kiln_record_started(number, job, pid), err);
    return status >= 0 ? kiln_optuna_update(sweep, number, err) : status;
}

/* Put new reports into the journal: a learning sweeper needs them when the sweep is resumed, and
 * optuna.log is written from them then. */
static KilnStatus record_reports(KilnSweep *sweep, size_t number, KilnError *err)
{
    KilnJob *job = &sweep->jobs.items[number];
    KilnStatus status = KILN_OK;

    for (; job->n_recorded < job->n_reports && status >= 0; job->n_recorded++)
        status = kiln_journal_append(sweep->journal,
                                     kiln_record_reported(number, job->reports[job->n_recorded],
                                                          job->modes, sweep->n_more + 1),
                                     err);
    return status >= 0 ? kiln_optuna_update(sweep, number, err) : status;
}

/* Does the sweeper stop the job? The decision is in the journal before the job gets it. */
static KilnStatus decide(KilnSweep *sweep, size_t number, bool *ret_stop, KilnError *err)
{
    KilnJob *job = &sweep->jobs.items[number];
    char reason[KILN_SWEEP_REASON];

    /* A job that resumes reports again what is known; only the last of it can be undecided. One
     * that the launcher stops has its signal, and would take the reply for a second one. */
    const bool is_last = job->n_reports == 0 ||
                         job->steps >= job->reports[job->n_reports - 1]->step;
    *ret_stop = !job->terminating && is_last &&
                (job->stopping != NULL ||
                 (job->steps > job->stopped_step && kiln_sweep_tell(sweep, number, reason)));
    if (!*ret_stop || job->stopping != NULL)
        return KILN_OK;
    job->stopping = kiln_arena_strdup(&sweep->jobs.arena,
                                      reason[0] != '\0' ? reason : "by the sweeper");
    if (job->stopping == NULL)
        return kiln_error_nomem(err, sizeof(reason));
    return kiln_journal_append(sweep->journal, kiln_record_stopping(number, job), err);
}

static KilnStatus reported(void *ctx, size_t number, const char *bytes, size_t size,
                           const char **ret_reply, KilnError *err)
{
    KilnLaunching *launching = ctx;
    KilnSweep *sweep = launching->sweep;
    KilnJob *job = &sweep->jobs.items[number];
    const bool asks = kiln_report_read(&sweep->jobs.arena, job, bytes, size);
    KilnStatus status = KILN_OK;
    bool stop = false;

    if (!sweep->follows && !sweep->options->optuna)
        return KILN_OK;
    launching->waits = launching->settled = false;
    kiln_sweep_learn_modes(sweep, job);
    status = kiln_sweep_update_trial(sweep, number, err);
    if (status >= 0)
        status = record_reports(sweep, number, err);
    if (status >= 0 && asks)
        status = decide(sweep, number, &stop, err);
    if (asks)
        *ret_reply = stop ? KILN_REPLY_STOP : KILN_REPLY_CONTINUE;
    return status;
}

/* The last lines of the job's log; NULL when there is none. Owned by the caller. */
static char *log_tail(const KilnSweep *sweep, const KilnJob *job)
{
    char *path = kiln_sweep_job_path(sweep, job, "train.log"), *text = calloc(1, LOG_BYTES + 1);
    FILE *file = path != NULL ? fopen(path, "re") : NULL;
    size_t n = 0;
    int lines = 0;

    if (file != NULL && text != NULL) {
        if (fseek(file, -LOG_BYTES, SEEK_END) != 0)
            rewind(file);
        n = fread(text, 1, LOG_BYTES, file);
    }
    if (file != NULL)
        fclose(file);
    free(path);
    if (n == 0) {
        free(text);
        return NULL;
    }
    size_t from = n - (text[n - 1] == '\n');
    while (from > 0 && (text[from - 1] != '\n' || ++lines < LOG_LINES))
        from--;
    memmove(text, text + from, n - from + 1);
    return text;
}

/* "exit status 1: datamodule: there is no folder data" */
static KilnStatus set_reason(KilnJobs *jobs, KilnJob *job, const char *reason, KilnError *err)
{
    bool more = kiln_job_failed(job) && job->error != NULL;
    const char *error = more ? job->error : "";

    job->reason = kiln_arena_printf(&jobs->arena, "%s%s%.*s", reason, more ? ": " : "",
                                    (int)strcspn(error, "\n"), error);
    return job->reason != NULL ? KILN_OK : kiln_error_nomem(err, strlen(reason));
}

static KilnStatus read_metrics(KilnSweep *sweep, KilnJob *job, KilnError *err)
{
    char *path = kiln_sweep_job_path(sweep, job, "summary.json");
    KilnStatus status = path != NULL ? kiln_job_read_summary(&sweep->jobs.arena, path, job, err)
                                     : kiln_error_nomem(err, 1);

    free(path);
    return status;
}

KilnStatus kiln_launching_write_results(KilnLaunching *launching, bool now, KilnError *err)
{
    if (!now && kiln_clock() - launching->written < results_every_s)
        return KILN_OK;
    launching->written = kiln_clock();
    return kiln_results_write(launching->sweep, err);
}

static KilnStatus record_end(KilnLaunching *launching, size_t number, double seconds,
                             KilnError *err)
{
    KilnSweep *sweep = launching->sweep;
    KilnJob *job = &sweep->jobs.items[number];

    launching->waits = launching->settled = false;
    const size_t before = sweep->jobs.count;
    KilnStatus status = set_time(sweep, &job->finished, err);

    if (status >= 0)
        status = kiln_journal_append(sweep->journal, kiln_record_ended(number, job, seconds), err);
    if (status >= 0)
        status = kiln_sweep_repeat(sweep, number, err);
    job = &sweep->jobs.items[number]; /* jobs that were added have moved it */
    launching->display.to_run += sweep->jobs.count - before;
    if (status >= 0)
        status = kiln_sweep_update_trial(sweep, number, err);
    if (status >= 0)
        status = kiln_journal_sync(sweep->journal, err);
    if (status >= 0)
        status = kiln_optuna_update(sweep, number, err);
    return status >= 0 ? kiln_launching_write_results(launching, false, err) : status;
}

static void show_end(KilnLaunching *launching, size_t number, double seconds)
{
    const KilnSweep *sweep = launching->sweep;
    const KilnJob *job = &sweep->jobs.items[number];
    char *log = kiln_job_failed(job) && job->dir != NULL ? log_tail(sweep, job) : NULL;

    kiln_display_ended(&launching->display, number, seconds, log);
    free(log);
}

/* Set how the job's process ended, and record it. */
static KilnStatus end_process(KilnLaunching *launching, size_t number, const KilnJobEnd *end,
                              double *ret_seconds, KilnError *err)
{
    KilnSweep *sweep = launching->sweep;
    KilnJob *job = &sweep->jobs.items[number];
    /* Before it handles signals, SIGTERM kills it. */
    const bool stopped = job->stopping != NULL &&
                         (end->status == KILN_JOB_INTERRUPTED || end->status == KILN_JOB_STOPPED ||
                          (job->terminating && end->status == KILN_JOB_KILLED));

    *ret_seconds = job->queued ? 0.0 : kiln_clock() - job->started;
    job->status = stopped ? KILN_JOB_STOPPED : end->status;
    job->queued = false;
    job->seconds += *ret_seconds;
    KilnStatus status = set_reason(&sweep->jobs, job, stopped ? job->stopping : end->reason, err);
    if (stopped && job->n_reports > 0)
        job->stopped_step = job->reports[job->n_reports - 1]->step;
    if (status >= 0)
        status = read_metrics(sweep, job, err);
    return status >= 0 ? record_end(launching, number, *ret_seconds, err) : status;
}

static KilnStatus ended(void *ctx, size_t number, const KilnJobEnd *end, KilnError *err)
{
    double seconds = 0.0;
    KilnStatus status = end_process(ctx, number, end, &seconds, err);

    if (status >= 0)
        show_end(ctx, number, seconds);
    const KilnSweep *sweep = ((KilnLaunching *)ctx)->sweep;
    KilnJob *job = &sweep->jobs.items[number];
    job->stopping = NULL;
    return status >= 0 && job->status == KILN_JOB_OK ? kiln_sweep_check_logged(sweep, job, err)
                                                     : status;
}

/* The launcher has taken the job, and its process has not started. */
KilnStatus kiln_launching_set_queued(KilnSweep *sweep, size_t number, KilnError *err)
{
    KilnJob *job = &sweep->jobs.items[number];

    job->before = job->status;
    job->status = KILN_JOB_RUNNING;
    job->queued = true;
    return kiln_sweep_update_trial(sweep, number, err);
}

static KilnStatus requeued(void *ctx, size_t number, const KilnJobEnd *why, KilnError *err)
{
    KilnLaunching *launching = ctx;
    double seconds = 0.0;
    KilnStatus status = end_process(launching, number, why, &seconds, err);

    if (status < 0)
        return status;
    kiln_remote_requeued(&launching->remote, number);
    kiln_display_print(&launching->display, "#%zu is queued again: %s", number,
                       launching->sweep->jobs.items[number].reason);
    status = kiln_journal_append(launching->sweep->journal,
                                 kiln_record_queued(number, &launching->sweep->jobs.items[number],
                                                    kiln_instance_name(launching->sweep->launcher)),
                                 err);
    return status >= 0 ? kiln_launching_set_queued(launching->sweep, number, err) : status;
}

/* The job's config has an error, which the check could not see: the job fails. */
KilnStatus kiln_launching_fail_config(KilnLaunching *launching, size_t number,
                                      const KilnError *wrong, KilnError *err)
{
    KilnJobs *jobs = &launching->sweep->jobs;
    KilnJob *job = &jobs->items[number];

    job->status = KILN_JOB_FAILED;
    job->error = kiln_arena_strdup(&jobs->arena, wrong->text);
    KilnStatus status = set_reason(jobs, job, "config", err);
    if (status >= 0)
        status = record_end(launching, number, 0.0, err);
    if (status >= 0)
        show_end(launching, number, 0.0);
    return status;
}

/* ---- Other questions of the launcher --------------------------------------------------------- */

static KilnJobNeeds needs(void *ctx, size_t number)
{
    const KilnJob *job = &((const KilnLaunching *)ctx)->sweep->jobs.items[number];
    KilnJobNeeds needs = job->needs;

    if (needs.memory == 0)
        needs.memory = job->memory;
    return needs;
}

static void tick(void *ctx)
{
    KilnLaunching *launching = ctx;

    if (kiln_clock() - launching->looked >= requests_every_s && launching->failed.status >= 0)
        (void)!kiln_launching_take_requests(launching, &launching->failed);
    kiln_display_tick(&launching->display);
}

static bool stops(void *ctx, size_t number)
{
    return ((KilnLaunching *)ctx)->sweep->jobs.items[number].terminating;
}

/* ---- Data that jobs share ------------------------------------------------------------------ */

static bool loading(void *ctx, size_t number)
{
    return kiln_data_loading(&((KilnLaunching *)ctx)->data, number);
}

static KilnStatus fork_loaded(void *ctx, size_t number, const int ends[2], int64_t *ret_pid,
                              KilnError *err)
{
    return kiln_data_fork_loaded(&((KilnLaunching *)ctx)->data, number, ends, ret_pid, err);
}

static int64_t shared(void *ctx, size_t number)
{
    return kiln_data_shared(&((KilnLaunching *)ctx)->data, number);
}

static int64_t held(void *ctx)
{
    return kiln_data_held(&((const KilnLaunching *)ctx)->data);
}

/* ---- Jobs on other machines ---------------------------------------------------------------- */

static KilnStatus command(void *ctx, size_t number, const char *const **ret_argv, KilnError *err)
{
    return kiln_remote_command(&((KilnLaunching *)ctx)->remote, number, ret_argv, err);
}

static KilnStatus attach(void *ctx, size_t number, KilnError *err)
{
    return kiln_remote_attach(&((KilnLaunching *)ctx)->remote, number, err);
}

static KilnStatus collect(void *ctx, size_t number, KilnJobNews *ret, KilnError *err)
{
    return kiln_remote_collect(&((KilnLaunching *)ctx)->remote, number, ret, err);
}

static void print(void *ctx, const char *line)
{
    kiln_display_print(&((KilnLaunching *)ctx)->display, "%s", line);
}

/* Jobs that were taken and did not start are as they were before. */
static KilnStatus return_queued(KilnSweep *sweep, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < sweep->jobs.count; i++) {
        KilnJob *job = &sweep->jobs.items[i];

        if (!job->queued)
            continue;
        job->status = job->before;
        job->queued = false;
        if (status >= 0)
            status = kiln_journal_append(sweep->journal, kiln_record_returned(i, job), err);
    }
    return status;
}

/* ---- Launch -------------------------------------------------------------------- */

static KilnStatus close_journal(KilnSweep *sweep, KilnError *err)
{
    bool stopped = sweep->request->stop != NULL && *sweep->request->stop != 0;
    KilnStatus status = kiln_journal_append(
        sweep->journal, kiln_record_plain(stopped ? "interrupted" : "finished"), err);

    return status >= 0 ? kiln_journal_sync(sweep->journal, err) : status;
}

KilnStatus kiln_sweep_launch(KilnSweep *sweep, KilnError *err)
{
    const KilnLauncherOps *ops = kiln_instance_component(sweep->launcher)->ops.launcher;
    KilnLaunching launching = { .sweep = sweep, .started = kiln_clock() };
    KilnLaunch launch = {
        .ctx = &launching,
        .next = kiln_launching_next,
        .run = run,
        .started = started,
        .reported = reported,
        .ended = ended,
        .tick = tick,
        .stop = sweep->request->stop,
        .needs = needs,
        .stops = stops,
        .dir = sweep->path,
        .follows = sweep->follows,
        .command = command,
        .attach = attach,
        .collect = collect,
        .requeued = requeued,
        .print = print,
        .loading = loading,
        .fork_loaded = fork_loaded,
        .shared = shared,
        .held = held,
    };

    launching.remote = (KilnRemote) { .sweep = sweep, .launch = &launch };

    kiln_data_processes_init(&launching.data, sweep);
    kiln_display_init(&launching.display, sweep, sweep->request->console,
                      kiln_sweep_at_once(sweep));
    KilnStatus status = kiln_launching_take_requests(&launching, err);
    if (status >= 0)
        status = kiln_launching_repeat_old(&launching, err);
    if (status >= 0)
        status = kiln_launching_write_results(&launching, true, err);
    if (status >= 0)
        status = kiln_optuna_rewrite(sweep, err);
    if (status >= 0)
        status = kiln_launching_divide(&launching, err);
    launch.n_jobs = kiln_sweep_at_once(sweep);
    if (sweep->learns)
        kiln_display_print(&launching.display, "jobs that %s chooses, %zu at a time: %s",
                           kiln_instance_name(sweep->sweeper), launching.display.at_once,
                           sweep->dir);
    else
        kiln_display_print(&launching.display, "%zu jobs of %zu to run, %zu at a time: %s",
                           launching.display.to_run, sweep->jobs.count, launching.display.at_once,
                           sweep->dir);
    if (status >= 0)
        status = KILN_CALLED(sweep->launcher, "launch", ops->launch(sweep->launcher, &launch, err),
                             err);
    KilnStatus written = return_queued(sweep, status >= 0 ? err : NULL);
    if (status >= 0)
        status = written;
    written = kiln_launching_write_results(&launching, true, status >= 0 ? err : NULL);
    if (status >= 0)
        status = written;
    if (status >= 0)
        status = kiln_optuna_finish(sweep, err);
    if (status >= 0)
        status = close_journal(sweep, err);
    kiln_remote_release(&launching.remote);
    kiln_data_processes_release(&launching.data);
    kiln_display_close(&launching.display);
    kiln_display_release(&launching.display);
    return status;
}
