/* --plan: lists the jobs that would run, and checks every value once. */
#include <stdlib.h>

#include "base/call.h"
#include "base/system/file.h"
#include "config/provenance/error_list.h"
#include "sweep/remote/remote_launch.h"
#include "sweep/sweep_state.h"

static KilnStatus list_jobs(KilnSweep *sweep, void (*line)(void *ctx, const char *text), void *ctx,
                            KilnError *err)
{
    KilnText text = { 0 };
    KilnStatus status = kiln_sweep_ask_all(sweep, err);

    if (sweep->learns)
        line(ctx, "the sweeper chooses trials from results, so they are not known before");
    for (size_t i = 0; i < sweep->jobs.count && status >= 0; i++) {
        const KilnJob *job = &sweep->jobs.items[i];

        if (!kiln_sweep_runs(sweep, job))
            continue;
        kiln_text_clear(&text);
        kiln_text_printf(&text, "#%zu : %s", i, job->line);
        if (text.failed)
            status = kiln_error_nomem(err, 1);
        else
            line(ctx, text.data);
    }
    kiln_text_release(&text);
    return status;
}

/* ---- What the launcher would do ------------------------------------------------------------- */

static KilnStatus get_command(void *ctx, size_t job, const char *const **ret_argv, KilnError *err)
{
    (void)job;
    (void)err;
    *ret_argv = ctx;
    return KILN_OK;
}

/* The numbers of the jobs that run, of a sweeper that learns its first one; NULL when memory is
 * out. */
static size_t *jobs_to_run(const KilnSweep *sweep, size_t *ret_count)
{
    size_t *jobs = calloc(sweep->jobs.count + 1, sizeof(*jobs)), n = 0;

    for (size_t i = 0; jobs != NULL && i < sweep->jobs.count; i++)
        if (kiln_sweep_runs(sweep, &sweep->jobs.items[i]))
            jobs[n++] = i;
    *ret_count = n > 0 ? n : sweep->learns;
    return jobs;
}

static KilnStatus ask_launcher(const KilnSweep *sweep, const char *dir, KilnText *ret,
                               KilnError *err)
{
    const KilnLauncherOps *ops = kiln_instance_component(sweep->launcher)->ops.launcher;
    size_t n = 0, *jobs = jobs_to_run(sweep, &n);
    const char **argv = kiln_remote_argv(sweep->request, dir);
    const KilnLaunch launch = { .ctx = argv, .dir = dir, .command = get_command };
    KilnStatus status = KILN_OK;

    if (jobs == NULL || argv == NULL)
        status = kiln_error_nomem(err, 1);
    else if (n > 0)
        status = KILN_CALLED(sweep->launcher, "plan",
                             ops->plan(sweep->launcher, &launch, jobs, n, ret, err), err);
    free(jobs);
    free(argv);
    return status;
}

static KilnStatus plan_launch(KilnSweep *sweep, void (*line)(void *ctx, const char *text),
                              void *ctx, KilnError *err)
{
    KilnText text = { 0 };
    char *dir = NULL;
    KilnStatus status = KILN_OK;

    if (kiln_instance_component(sweep->launcher)->ops.launcher->plan == NULL)
        return KILN_OK;
    if (sweep->dir == NULL)
        status = kiln_sweep_choose_dir(sweep, err);
    if (status >= 0 && (dir = kiln_path_real(sweep->dir)) == NULL)
        status = kiln_error_nomem(err, 1);
    if (status >= 0)
        status = ask_launcher(sweep, dir, &text, err);
    if (status >= 0 && text.failed)
        status = kiln_error_nomem(err, text.length);
    if (status >= 0 && text.length > 0)
        line(ctx, text.data);
    kiln_text_release(&text);
    free(dir);
    return status;
}

KilnStatus kiln_sweep_plan(const KilnSweepRequest *request,
                           void (*line)(void *ctx, const char *text), void *ctx,
                           size_t *ret_left_out, KilnErrors *errors)
{
    KilnSweep sweep;
    KilnJobErrors job_errors = { .items = NULL };
    KilnError err = { 0 };
    KilnStatus status = kiln_sweep_open(request, &sweep, errors);

    if (status >= 0 && (sweep.n_points > 0 || sweep.learns))
        status = kiln_sweep_check_values(&sweep, false, KILN_PLAN_VALUES, &job_errors, ret_left_out,
                                         &err);
    if (status >= 0)
        status = kiln_job_errors_report(&job_errors, 0, errors);
    if (status >= 0)
        status = list_jobs(&sweep, line, ctx, &err);
    if (status >= 0)
        status = plan_launch(&sweep, line, ctx, &err);
    if (err.status < 0)
        kiln_errors_add(errors, &err);
    kiln_job_errors_release(&job_errors);
    kiln_sweep_close(&sweep);
    return status;
}
