/* What a job of a sweep does: composes its frozen config and fits it. Also measures its speed. */
#include "cli/sweep/job_body.h"

#include <math.h>
#include <signal.h>
#include <string.h>

#include "base/call.h"
#include "base/text.h"
#include "cli/open_config.h"
#include "cli/screen/screen.h"
#include "config/override/override.h"
#include "kiln/embed/run.h"
#include "train/analysis/timing_run.h"
#include "train/run/run_config.h"

static void progress(void *ctx, const KilnRunProgress *progress)
{
    const KilnSweepTask *task = ctx;
    double done = (double)NAN;

    /* What was reported last may not have got there, and no answer. That of another job is not
     * this one's. */
    if (progress->resumed && task->begins)
        return;
    if (progress->max_epochs > 0)
        done = (double)progress->epoch / (double)progress->max_epochs;
    if (progress->max_steps > 0) {
        double by_steps = (double)progress->step / (double)progress->max_steps;

        if (isnan(done) || by_steps > done)
            done = by_steps;
    }
    /* Stops with a checkpoint, as on request from outside; after the last epoch it ends anyway. */
    if (kiln_report_progress(task->report, progress, done) && !(done >= 1.0))
        (void)raise(SIGTERM);
}

/* Compose and check a job's frozen config. Errors go to the job's log and to the launcher. */
static KilnStatus compose(const KilnJobBody *job, const KilnSweepTask *task,
                          const char *const *overrides, KilnConfig **ret)
{
    KilnText path = { 0 };
    KilnError first = { 0 };

    kiln_text_printf(&path, "%s/.kiln", task->dir);
    KilnComposeRequest request = {
        .config_path = path.data,
        .config_name = KILN_JOB_CONFIG,
        .overrides = overrides,
        .registry = job->registry,
        .sections = kiln_run_sections(),
    };
    KilnStatus status = path.failed ? KILN_E_NOMEM
                                    : kiln_command_compose_request(job->args, &request, true,
                                                                   job->dir, ret, &first);
    if (first.status < 0)
        kiln_report_error(task->report, first.text);
    kiln_text_release(&path);
    return status;
}

/* The exit status of a job that failed before its run started; its memory limit applies already. */
static int status_before(KilnStatus status)
{
    return status == KILN_E_NOMEM ? KILN_JOB_EXIT_NOMEM : KILN_JOB_EXIT_FAILED;
}

static int fit(const KilnJobBody *job, const KilnSweepTask *task, KilnConfig *config)
{
    KilnRunResult result = { 0 };
    KilnError err = { 0 };
    KilnSignals signals = job->remote ? kiln_screen_catch_batch_signals()
                                      : kiln_screen_catch_signals();
    KilnRunEnv env = {
        .registry = job->registry,
        .overrides = task->overrides,
        .stop = signals.stop,
        .save = signals.save,
        .progress = progress,
        .ctx = (void *)task,
        .ranked_by = task->metric,
        .ranked_mode = task->mode,
        .prepared = true,
    };
    KilnStatus status = kiln_run_fit(config, &env, &result, &err);

    if (status < 0) {
        kiln_screen_error(job->args->command, &err);
        kiln_report_error(task->report, err.text);
        return result.run_dir[0] != '\0' ? kiln_screen_run_status(status) : status_before(status);
    }
    return strcmp(result.status, "interrupted") == 0 ? kiln_screen_signal_status()
                                                     : KILN_JOB_EXIT_OK;
}

int kiln_job_body(void *ctx, const KilnSweepTask *task)
{
    KilnText dir = { 0 }, checkpoint = { 0 };
    KilnConfig *config = NULL;
    int exit_status = KILN_JOB_EXIT_NOMEM;

    kiln_call_clear(); /* forget the launcher's call, which forked this process */
    kiln_override_quote(&dir, "kiln.run.dir", task->dir);
    if (task->ckpt_path != NULL)
        kiln_override_quote(&checkpoint, "ckpt_path", task->ckpt_path);
    if (!dir.failed && !checkpoint.failed) {
        const char *overrides[] = { dir.data, checkpoint.data, NULL };
        KilnStatus status = compose(ctx, task, overrides, &config);

        exit_status = status >= 0 ? fit(ctx, task, config) : status_before(status);
    }
    kiln_config_free(config);
    kiln_text_release(&dir);
    kiln_text_release(&checkpoint);
    return exit_status;
}

static void wait_for_others(void *ctx)
{
    kiln_speed_wait(ctx);
}

KilnStatus kiln_job_measure(void *ctx, const KilnSpeedTask *task, double *ret, KilnError *err)
{
    const KilnJobBody *job = ctx;
    const KilnRunEnv env = { .registry = job->registry, .overrides = task->overrides };

    return kiln_timing_run_speed(task->config, &env, task->seconds, wait_for_others, (void *)task,
                                 ret, err);
}
