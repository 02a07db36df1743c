/* kiln train -m: sweeps. What their jobs do: cli/sweep/job_body.c. The sweep itself:
 * sweep/sweep.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "base/system/journal.h"
#include "cli/open_config.h"
#include "cli/untrusted.h"
#include "cli/screen/screen.h"
#include "cli/sweep/job_body.h"
#include "cli/sweep/job_command.h"
#include "kiln/plot.h"
#include "sweep/sweep.h"

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

/* `resume`: the folder of a sweep; NULL: a new one. */
static int sweep(const KilnArgs *args, const char *resume)
{
    KilnConsole console;
    KilnJobBody job = { .args = args, .dir = resume };
    KilnRemoteCommand command;
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
        .resume = resume,
        .retry_failed = args->retry_failed,
        .extend = extend,
        .console = kiln_screen_run_console(stdout, args->quiet, args->verbose, &console),
        .stop = args->plan ? NULL : kiln_screen_catch_signals().stop,
        .body = kiln_job_body,
        .measure = kiln_job_measure,
        .ctx = &job,
        .command = kiln_remote_command_line(&command),
    };
    if (!args->plan)
        kiln_plot_load_fonts(); /* for the jobs, which are forked from here */
    int exit_status = plan_or_run(args, &request);
    kiln_registry_free(registry);
    return exit_status;
}

KilnStatus kiln_command_enter_sweep(KilnArgs *args, const KilnSweepFolder *folder, KilnError *err)
{
    json_t *begun = NULL;
    KilnStatus status = kiln_untrusted_plugins(args, "sweep", folder->dir, folder->plugins, err);

    if (status >= 0 && args->run_plugins == NULL &&
        kiln_journal_peek(folder->dir, &begun, NULL) >= 0)
        args->run_plugins = json_incref(json_object_get(begun, "plugins"));
    json_decref(begun);
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
    int exit_status = status < 0 ? 1 : sweep(args, folder.dir);
    kiln_arena_release(&folder.arena);
    return exit_status;
}

/* As in Hydra, the folder of a single run is none of a sweep's. */
static void warn_of_run_dir(const KilnArgs *args)
{
    for (size_t i = 0; args->words != NULL && args->words[i] != NULL; i++)
        if (kiln_starts_with(args->words[i], "kiln.run.dir="))
            fprintf(stderr,
                    "%s: warning: %s is ignored: kiln.sweep.dir names the folder of a sweep\n",
                    args->command, args->words[i]);
}

int kiln_command_train_sweep(KilnArgs *args)
{
    warn_of_run_dir(args);
    return args->resume != NULL ? resume_sweep(args) : sweep(args, NULL);
}
