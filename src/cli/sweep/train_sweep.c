/* kiln train -m: sweeps, and the body of their jobs, which fit a frozen config. The sweep itself:
 * sweep/sweep.h. */
#define _XOPEN_SOURCE 700 /* realpath */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/call.h"
#include "base/parse.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/open_config.h"
#include "cli/untrusted.h"
#include "cli/screen/screen.h"
#include "config/override/override.h"
#include "kiln/embed/run.h"
#include "sweep/sweep.h"
#include "train/run/run_config.h"

/* ---- A job's process -------------------------------------------------------------------- */

typedef struct Job {
    const KilnArgs *args;
    const KilnRegistry *registry;
    const char *dir; /* of the sweep that is resumed; NULL: a new one */
} Job;

static void progress(void *ctx, const KilnRunProgress *progress)
{
    double done = (double)NAN;

    if (progress->max_epochs > 0)
        done = (double)progress->epoch / (double)progress->max_epochs;
    if (progress->max_steps > 0) {
        double by_steps = (double)progress->step / (double)progress->max_steps;

        if (isnan(done) || by_steps > done)
            done = by_steps;
    }
    /* Stops with a checkpoint, as on request from outside; after the last epoch it ends anyway. */
    if (kiln_report_progress(ctx, progress, done) && !(done >= 1.0))
        (void)raise(SIGTERM);
}

/* Compose and check a job's frozen config. Errors go to the job's log and to the launcher. */
static KilnStatus compose(const Job *job, const KilnSweepTask *task, const char *const *overrides,
                          KilnConfig **ret)
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

static int fit(const Job *job, const KilnSweepTask *task, KilnConfig *config)
{
    KilnRunResult result = { 0 };
    KilnError err = { 0 };
    KilnSignals signals = kiln_screen_catch_signals();
    KilnRunEnv env = {
        .registry = job->registry,
        .overrides = task->overrides,
        .stop = signals.stop,
        .save = signals.save,
        .progress = progress,
        .ctx = (void *)task->report,
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

static int run_job(void *ctx, const KilnSweepTask *task)
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

/* ---- The launcher's process ----------------------------------------------------------------- */

enum { MAX_EXTEND = 10000000 };

static void print_line(void *ctx, const char *line)
{
    (void)ctx;
    puts(line);
}

static int plan_or_run(const KilnArgs *args, const KilnSweepRequest *request)
{
    KilnErrors *errors = NULL;
    KilnSweepResult result = { 0 };
    size_t left_out = 0;
    KilnStatus status = kiln_errors_new(&errors);

    if (status >= 0)
        status = args->plan ? kiln_sweep_plan(request, print_line, NULL, &left_out, errors)
                            : kiln_sweep_run(request, &result, errors);
    kiln_screen_errors(args->command, errors);
    kiln_errors_free(errors);
    if (left_out > 0)
        fprintf(stderr,
                "%s: at most %d values of a key were checked, evenly spread; the other %zu are "
                "checked when the sweep starts\n",
                args->command, KILN_PLAN_VALUES, left_out);
    if (status < 0 || args->plan)
        return kiln_screen_exit_status(status);
    if (result.jobs == 0)
        fprintf(stderr, "%s: the sweep has no jobs: a key has no values\n", args->command);
    return kiln_screen_signal_status() != 0 ? kiln_screen_signal_status() : result.failed > 0;
}

/* N of --extend; 0: it was not given. */
static KilnStatus read_extend(const KilnArgs *args, int64_t *ret)
{
    KilnError err = { 0 };

    if (args->extend == NULL ||
        (kiln_parse_i64(args->extend, ret, NULL) >= 0 && *ret >= 1 && *ret <= MAX_EXTEND))
        return KILN_OK;
    kiln_error_set(&err, KILN_E_USAGE, "--extend %s: expected a number of trials, at least 1",
                   args->extend);
    kiln_screen_error(args->command, &err);
    return err.status;
}

static int sweep(const KilnArgs *args, const char *resume, const char *const *plugins)
{
    KilnConsole console;
    Job job = { .args = args, .dir = resume };
    KilnRegistry *registry = NULL;
    int64_t extend = 0;
    KilnStatus status = read_extend(args, &extend);

    if (status >= 0)
        status = kiln_command_registry(args, &registry);
    if (status < 0)
        return kiln_screen_exit_status(status);
    job.registry = registry;
    KilnSweepRequest request = {
        .compose = kiln_command_request(args, registry),
        .plugins = plugins,
        .resume = resume,
        .retry_failed = args->retry_failed,
        .extend = extend,
        .console = kiln_screen_run_console(stdout, args->quiet, args->verbose, &console),
        .stop = args->plan ? NULL : kiln_screen_catch_signals().stop,
        .body = run_job,
        .ctx = &job,
    };
    int exit_status = plan_or_run(args, &request);
    kiln_registry_free(registry);
    return exit_status;
}

/* Start a sweep. Plugins get absolute paths, for a later --resume; names that the loader searches
 * for stay. */
static int start_sweep(KilnArgs *args)
{
    char *paths[KILN_MAX_REPEATED + 1] = { NULL };
    const char *plugins[KILN_MAX_REPEATED + 1] = { NULL };

    for (size_t i = 0; args->plugins[i] != NULL; i++) {
        paths[i] = realpath(args->plugins[i], NULL);
        plugins[i] = paths[i] != NULL ? paths[i] : args->plugins[i];
    }
    int status = sweep(args, NULL, plugins);
    for (size_t i = 0; i < KILN_COUNT(paths); i++)
        free(paths[i]);
    return status;
}

KilnStatus kiln_command_enter_sweep(KilnArgs *args, const KilnSweepFolder *folder, KilnError *err)
{
    KilnStatus status = kiln_untrusted_plugins(args, "sweep", folder->dir, folder->plugins, err);

    if (status >= 0)
        status = kiln_untrusted_links(args, folder->dir, err);
    if (status < 0 || chdir(folder->cwd) == 0)
        return status;
    status = kiln_error_errno(err, folder->cwd);
    (void)kiln_error_prefix(err, "the folder in which the sweep was started: ");
    return status;
}

/* Resume a sweep, where and with what it was started. */
static int resume_sweep(KilnArgs *args)
{
    KilnSweepFolder folder;
    KilnError err = { 0 };
    KilnStatus status = kiln_sweep_find(args->resume, &folder, &err);

    if (status < 0)
        return kiln_screen_result(args->command, status, &err);
    status = kiln_command_enter_sweep(args, &folder, &err);
    if (status < 0)
        kiln_screen_error(args->command, &err);
    int exit_status = status < 0 ? 1 : sweep(args, folder.dir, NULL);
    kiln_arena_release(&folder.arena);
    return exit_status;
}

int kiln_command_train_sweep(KilnArgs *args)
{
    return args->resume != NULL ? resume_sweep(args) : start_sweep(args);
}
