/* Sweeps of callers that know no structs, and what their jobs do: kiln/flat/sweep.h. */
#include "kiln/flat/sweep.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/call.h"
#include "base/text.h"
#include "config/override/override.h"
#include "flat/flat_env.h"
#include "sweep/sweep.h"
#include "train/analysis/timing_run.h"
#include "train/run/run_config.h"

/* ---- Signals of a sweep's process and its jobs' ---------------------------------------------- */

/* A signal handler has no other way to reach them. */
static volatile int stop, save;

static void on_signal(int number)
{
    if (number == SIGUSR1)
        save = 1;
    else if (stop == 0)
        stop = number;
}

enum { SIGNALS = 4 };
static const int numbers[SIGNALS] = { SIGINT, SIGTERM, SIGHUP, SIGUSR1 };

static void catch_signals(struct sigaction before[SIGNALS])
{
    struct sigaction action = { .sa_handler = on_signal };

    sigemptyset(&action.sa_mask);
    stop = save = 0;
    for (size_t i = 0; i < SIGNALS; i++)
        (void)sigaction(numbers[i], &action, &before[i]);
}

static void restore_signals(const struct sigaction before[SIGNALS])
{
    for (size_t i = 0; i < SIGNALS; i++)
        (void)sigaction(numbers[i], &before[i], NULL);
}

/* ---- A job, in a process of its own ---------------------------------------------------------- */

static void report_progress(void *ctx, const KilnRunProgress *at)
{
    const double epochs = at->max_epochs > 0 ? (double)at->epoch / (double)at->max_epochs : -1.0;
    const double steps = at->max_steps > 0 ? (double)at->step / (double)at->max_steps : -1.0;
    const double most = epochs > steps ? epochs : steps;
    const double done = most < 0.0 ? (double)NAN : most;

    /* Stops with a checkpoint; after the last epoch it ends anyway. */
    if (kiln_report_progress(ctx, at, done) && !(done >= 1.0) && stop == 0)
        stop = SIGTERM;
}

static int exit_status(KilnStatus status, bool started)
{
    switch (status) {
    case KILN_E_NUMERIC:
        return started ? KILN_JOB_EXIT_NUMERIC : KILN_JOB_EXIT_FAILED;
    case KILN_E_IO:
        return started ? KILN_JOB_EXIT_IO : KILN_JOB_EXIT_FAILED;
    case KILN_E_NOMEM:
        return KILN_JOB_EXIT_NOMEM;
    default:
        return KILN_JOB_EXIT_FAILED;
    }
}

/* An error, to the job's log and to its launcher. */
static int report_failure(const KilnSweepTask *task, KilnStatus status, const char *text,
                          bool started)
{
    (void)fprintf(stderr, "error: %s\n", text);
    kiln_report_error(task->report, text);
    return exit_status(status, started);
}

static int fit(const KilnSweepTask *task, const KilnRegistry *registry, KilnConfig *config)
{
    const KilnRunEnv env = {
        .registry = registry,
        .overrides = task->overrides,
        .stop = &stop,
        .save = &save,
        .progress = report_progress,
        .ctx = (void *)task->report,
        .ranked_by = task->metric,
        .ranked_mode = task->mode,
        .prepared = true,
    };
    KilnRunResult result = { 0 };
    KilnError err = { 0 };
    const KilnStatus status = kiln_run_fit(config, &env, &result, &err);

    if (status < 0)
        return report_failure(task, status, err.text, result.run_dir[0] != '\0');
    return strcmp(result.status, "interrupted") == 0 ? KILN_JOB_EXIT_SIGNAL + stop
                                                     : KILN_JOB_EXIT_OK;
}

/* Fit the job's frozen config. */
static int run_job(void *ctx, const KilnSweepTask *task)
{
    const KilnFlatEnv *env = ctx;
    KilnText folder = { 0 }, dir = { 0 }, checkpoint = { 0 };
    struct sigaction of_the_sweep[SIGNALS];
    KilnErrors *errors = NULL;
    KilnConfig *config = NULL;
    int ret = KILN_JOB_EXIT_NOMEM;

    kiln_call_clear(); /* forget the launcher's call, which forked this process */
    catch_signals(of_the_sweep);
    kiln_text_printf(&folder, "%s/.kiln", task->dir);
    kiln_override_quote(&dir, "kiln.run.dir", task->dir);
    if (task->ckpt_path != NULL)
        kiln_override_quote(&checkpoint, "ckpt_path", task->ckpt_path);
    const char *overrides[] = { dir.data, checkpoint.data, NULL };
    if (!folder.failed && !dir.failed && !checkpoint.failed && kiln_errors_new(&errors) >= 0) {
        const KilnStatus status = kiln_flat_compose(env->run.registry, folder.data, KILN_JOB_CONFIG,
                                                    NULL, overrides, &config, errors);

        ret = status >= 0
                  ? fit(task, env->run.registry, config)
                  : report_failure(task, status,
                                   kiln_errors_count(errors) > 0 ? kiln_errors_text(errors, 0)
                                                                 : "out of memory",
                                   false);
    }
    kiln_config_free(config);
    kiln_errors_free(errors);
    kiln_text_release(&folder);
    kiln_text_release(&dir);
    kiln_text_release(&checkpoint);
    return ret;
}

static void wait_for_others(void *ctx)
{
    kiln_speed_wait(ctx);
}

static KilnStatus measure_job(void *ctx, const KilnSpeedTask *task, double *ret, KilnError *err)
{
    const KilnFlatEnv *flat = ctx;
    const KilnRunEnv env = { .registry = flat->run.registry, .overrides = task->overrides };

    return kiln_timing_run_speed(task->config, &env, task->seconds, wait_for_others, (void *)task,
                                 ret, err);
}

/* ---- The sweep ------------------------------------------------------------------------------- */

KilnStatus kiln_flat_sweep(KilnFlatEnv *env, const char *config_path, const char *config_name,
                           const char *const *config_dirs, const char *const *overrides,
                           const char *resume, char **ret_dir, KilnErrors *errors)
{
    const KilnSweepRequest request = {
        .compose = { .config_path = config_path,
                     .config_name = config_name,
                     .config_dirs = config_dirs,
                     .overrides = overrides,
                     .registry = env->run.registry,
                     .sections = kiln_run_sections() },
        .resume = resume,
        .console = env->run.console,
        .stop = &stop,
        .body = run_job,
        .measure = measure_job,
        .ctx = env,
    };
    struct sigaction before[SIGNALS];
    KilnSweepResult result = { 0 };

    catch_signals(before);
    const KilnStatus status = kiln_sweep_run(&request, &result, errors);
    restore_signals(before);
    if (status < 0)
        return status;
    char *dir = kiln_strdup(result.dir);
    if (dir == NULL)
        return KILN_E_NOMEM;
    *ret_dir = dir;
    return KILN_OK;
}
