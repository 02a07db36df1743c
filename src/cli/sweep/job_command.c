/* kiln train --sweep-job DIR N: what a launcher has another machine run. */
#include "cli/sweep/job_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/system/file.h"
#include "cli/commands/commands.h"
#include "cli/find_plugins.h"
#include "cli/open_config.h"
#include "cli/screen/screen.h"
#include "cli/sweep/job_body.h"
#include "cli/untrusted.h"
#include "registry/registry.h"

const char *const *kiln_remote_command_line(KilnRemoteCommand *ret)
{
    size_t n = 0;

    if (!kiln_link_read("/proc/self/exe", ret->program, sizeof(ret->program)))
        return NULL;
    const char *slash = strrchr(ret->program, '/');
    ret->argv[n++] = ret->program;
    if (slash == NULL || kiln_command_find(slash + 1) == NULL) /* else it is called "train" */
        ret->argv[n++] = "train";
    ret->argv[n++] = KILN_REMOTE_JOB_FLAG;
    ret->argv[n] = NULL;
    return ret->argv;
}

/* With the plugins of the sweep alone, and in the folder where it was started. */
static KilnStatus restore(KilnArgs *args, const KilnSweepFolder *folder, KilnError *err)
{
    if ((args->plugins_found = calloc(1, sizeof(*args->plugins_found))) == NULL)
        return kiln_error_nomem(err, sizeof(*args->plugins_found));
    args->plugins_found->searched = true;
    KilnStatus status = kiln_untrusted_plugins(args, "sweep", folder->dir, folder->plugins, err);

    return status < 0 || chdir(folder->cwd) == 0 ? status : kiln_error_errno(err, folder->cwd);
}

static int run(const KilnArgs *args, const KilnSweepFolder *folder, size_t number)
{
    KilnJobBody body = { .args = args, .dir = folder->dir, .remote = true };
    KilnRegistry *registry = NULL;
    KilnError err = { 0 };
    int exit_status = 0;
    KilnStatus status = kiln_command_registry(args, &registry);

    if (status < 0)
        return kiln_screen_exit_status(status);
    body.registry = registry;
    status = kiln_sweep_run_remote(folder->dir, number, kiln_job_body, &body, &exit_status, &err);
    if (status < 0)
        exit_status = kiln_screen_result(args->command, status, &err);
    kiln_registry_free(registry);
    return exit_status;
}

int kiln_remote_job(const char *dir, const char *number)
{
    KilnArgs args = { .command = "train" };
    KilnSweepFolder folder;
    KilnError err = { 0 };
    int64_t job = -1;
    KilnStatus status = kiln_parse_i64(number, &job, &err);

    if (status >= 0 && job < 0)
        status = kiln_error_set(&err, KILN_E_USAGE, "%s %s %s: no number of a job",
                                KILN_REMOTE_JOB_FLAG, dir, number);
    if (status >= 0)
        status = kiln_sweep_find(dir, &folder, &err);
    if (status < 0)
        return kiln_screen_result(args.command, status, &err);
    status = restore(&args, &folder, &err);
    const int exit_status = status < 0 ? kiln_screen_result(args.command, status, &err)
                                       : run(&args, &folder, (size_t)job);
    kiln_arena_release(&folder.arena);
    kiln_args_release(&args);
    return exit_status;
}
