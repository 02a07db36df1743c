/* Chooses the next job of a sweep that runs: one that was interrupted, one that the pruner resumes,
 * one that waits, or a new trial of the sweeper. */
#include "kiln/tools/clock.h"
#include "sweep/launching.h"

/* Take the next one from *at on, before `end`, of those that wait, or (`begun`) of those that an
 * earlier process had begun. *ret_any: there is one. */
static KilnStatus take(KilnLaunching *launching, size_t *at, size_t end, bool begun, bool *ret_any,
                       size_t *ret_job, KilnError *err)
{
    KilnSweep *sweep = launching->sweep;
    KilnStatus status = KILN_OK;

    *ret_any = false;
    while (*at < end && status >= 0 && !*ret_any) {
        const size_t number = (*at)++;
        const KilnJob *job = &sweep->jobs.items[number];
        KilnError wrong = { 0 };

        if (!kiln_sweep_runs(sweep, job) || begun != (job->status != KILN_JOB_WAITING))
            continue;
        if (job->dir == NULL)
            status = kiln_sweep_freeze(sweep, number, &wrong, err);
        if (status >= 0 && wrong.status < 0)
            status = kiln_launching_fail_config(launching, number, &wrong, err);
        else
            *ret_any = true;
        *ret_job = number;
    }
    return status;
}

static KilnStatus take_waiting(KilnLaunching *launching, bool *ret_any, size_t *ret_job,
                               KilnError *err)
{
    return take(launching, &launching->waiting, launching->sweep->jobs.count, false, ret_any,
                ret_job, err);
}

/* Ask a learning sweeper, whose new trial is the job that take_waiting() then takes. */
static KilnStatus ask(KilnLaunching *launching, KilnAdvice *ret, size_t *ret_job, KilnError *err)
{
    KilnSweep *sweep = launching->sweep;

    *ret = KILN_ADVICE_DONE;
    KilnStatus status = kiln_sweep_ask(sweep, ret, ret_job, err);
    if (status >= 0 && *ret == KILN_ADVICE_WAIT &&
        kiln_jobs_count(&sweep->jobs, KILN_JOB_RUNNING) == 0)
        return kiln_error_set(err, KILN_E_PLUGIN, "sweeper/%s waits, but no trial runs",
                              kiln_instance_name(sweep->sweeper));
    launching->waits = *ret == KILN_ADVICE_WAIT;
    launching->done = *ret == KILN_ADVICE_DONE;
    if (status >= 0 && *ret == KILN_ADVICE_TRIAL)
        status = kiln_sweep_record_job(sweep, *ret_job, err);
    if (status >= 0 && *ret == KILN_ADVICE_TRIAL)
        status = kiln_optuna_update(sweep, *ret_job, err);
    return status;
}

/* Is the budget used up? Say so once. */
static KilnStatus check_budget(KilnLaunching *launching, KilnError *err)
{
    const char *reason = launching->exhausted
                             ? NULL
                             : kiln_sweep_budget_end(launching->sweep,
                                                     kiln_clock() - launching->started);

    if (reason == NULL)
        return KILN_OK;
    launching->exhausted = true;
    kiln_display_print(&launching->display, "no more jobs start: %s", reason);
    return kiln_journal_append(launching->sweep->journal, kiln_record_exhausted(reason), err);
}

static KilnStatus set_complete(KilnSweep *sweep, KilnError *err)
{
    if (sweep->complete)
        return KILN_OK;
    sweep->complete = true;
    return kiln_journal_append(sweep->journal, kiln_record_plain("complete"), err);
}

/* One that waits, or one that the sweeper suggests. */
static KilnStatus take_suggested(KilnLaunching *launching, bool *ret_any, size_t *ret_job,
                                 KilnError *err)
{
    KilnSweep *sweep = launching->sweep;
    KilnAdvice advice = KILN_ADVICE_TRIAL;
    KilnStatus status = take_waiting(launching, ret_any, ret_job, err);

    while (status >= 0 && !*ret_any && sweep->learns && !launching->waits && !launching->done) {
        status = ask(launching, &advice, ret_job, err);
        if (status >= 0 && advice == KILN_ADVICE_TRIAL)
            status = take_waiting(launching, ret_any, ret_job, err);
        *ret_any |= advice == KILN_ADVICE_RESUME;
    }
    if (*ret_any)
        sweep->complete = false;
    else if (status >= 0 && sweep->follows && !launching->waits)
        status = set_complete(sweep, err);
    return status;
}

static KilnStatus take_resumed(KilnLaunching *launching, bool *ret_any, size_t *ret_job,
                               KilnError *err)
{
    KilnStatus status = KILN_OK;

    *ret_any = false;
    if (!launching->settled)
        status = kiln_sweep_ask_pruner(launching->sweep, ret_any, ret_job, err);
    launching->settled = !*ret_any;
    return status;
}

/* Jobs that ended well in an earlier process, before their repeats were in the journal. */
KilnStatus kiln_launching_repeat_old(KilnLaunching *launching, KilnError *err)
{
    KilnSweep *sweep = launching->sweep;
    const size_t before = sweep->jobs.count;
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < sweep->n_old && status >= 0; i++) {
        status = kiln_sweep_repeat(sweep, i, err);
        if (status >= 0)
            status = kiln_sweep_update_trial(sweep, i, err);
    }
    launching->display.to_run += sweep->jobs.count - before;
    return status;
}

/* Runs that confirm the best job. */
static KilnStatus confirm(KilnLaunching *launching, bool *ret_any, size_t *ret_job, KilnError *err)
{
    const size_t before = launching->sweep->jobs.count;
    bool confirms = false;
    KilnStatus status = kiln_sweep_confirm(launching->sweep, &confirms, err);

    launching->display.to_run += launching->sweep->jobs.count - before;
    return status >= 0 && confirms ? take_waiting(launching, ret_any, ret_job, err) : status;
}

/* A new job: first a stopped one that the pruner resumes, which may resume more once no other
 * follows; at the end runs that confirm the best one. */
static KilnStatus take_new(KilnLaunching *launching, bool *ret_any, size_t *ret_job, KilnError *err)
{
    const bool complete = launching->sweep->complete;
    KilnStatus status = take_resumed(launching, ret_any, ret_job, err);

    if (status >= 0 && !*ret_any)
        status = take_suggested(launching, ret_any, ret_job, err);
    if (status >= 0 && !*ret_any && launching->sweep->complete && !complete) {
        launching->settled = false;
        status = take_resumed(launching, ret_any, ret_job, err);
    }
    if (status >= 0 && !*ret_any && !launching->waits &&
        kiln_jobs_count(&launching->sweep->jobs, KILN_JOB_RUNNING) == 0)
        status = confirm(launching, ret_any, ret_job, err);
    return status;
}

KilnStatus kiln_launching_first(KilnLaunching *launching, bool *ret_any, size_t *ret_job,
                                KilnError *err)
{
    KilnSweep *sweep = launching->sweep;
    KilnAdvice advice = KILN_ADVICE_DONE;
    KilnStatus status = KILN_OK;

    *ret_any = false;
    for (size_t i = 0; i < sweep->jobs.count && !*ret_any; i++) {
        *ret_any = kiln_sweep_runs(sweep, &sweep->jobs.items[i]);
        *ret_job = i;
    }
    if (*ret_any || !sweep->learns)
        return KILN_OK;
    do {
        status = ask(launching, &advice, ret_job, err);
        *ret_any = status >= 0 && (advice == KILN_ADVICE_RESUME ||
                                   (advice == KILN_ADVICE_TRIAL &&
                                    kiln_sweep_runs(sweep, &sweep->jobs.items[*ret_job])));
    } while (status >= 0 && advice == KILN_ADVICE_TRIAL && !*ret_any);
    return status;
}

KilnStatus kiln_launching_take_requests(KilnLaunching *launching, KilnError *err)
{
    bool any = false;

    launching->looked = kiln_clock();
    KilnStatus status = kiln_sweep_take_requests(launching->sweep, &launching->display, &any, err);
    if (status < 0 || !any)
        return status;
    launching->waits = launching->settled = false;
    return kiln_launching_write_results(launching, false, err);
}

/* Jobs that were interrupted continue first: they had begun when the sweeper and the pruner knew
 * what they knew then. */
KilnStatus kiln_launching_next(void *ctx, KilnNextJob *ret, size_t *ret_job, KilnError *err)
{
    KilnLaunching *launching = ctx;
    KilnSweep *sweep = launching->sweep;
    bool any = false;

    if (launching->failed.status < 0) {
        *err = launching->failed;
        return err->status;
    }
    KilnStatus status = kiln_launching_take_requests(launching, err);
    if (status >= 0)
        status = take(launching, &launching->begun, sweep->n_old, true, &any, ret_job, err);
    if (status >= 0 && !any)
        status = check_budget(launching, err);
    if (status >= 0 && !any && !launching->exhausted)
        status = take_new(launching, &any, ret_job, err);
    if (status >= 0 && any)
        status = kiln_launching_set_queued(sweep, *ret_job, err);
    const bool may_resume = sweep->pruner != NULL && !launching->exhausted &&
                            kiln_jobs_count(&sweep->jobs, KILN_JOB_RUNNING) > 0;
    *ret = any ? KILN_NEXT_JOB : launching->waits || may_resume ? KILN_NEXT_WAIT : KILN_NEXT_NONE;
    return status;
}
