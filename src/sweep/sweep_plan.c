/* --plan: lists the jobs that would run, and checks every value once. */
#include <stdlib.h>

#include "config/provenance/error_list.h"
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
    if (err.status < 0)
        kiln_errors_add(errors, &err);
    kiln_job_errors_release(&job_errors);
    kiln_sweep_close(&sweep);
    return status;
}
