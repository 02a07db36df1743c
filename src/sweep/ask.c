/* Asks the sweeper for trials, and makes jobs of them. */
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/call.h"
#include "registry/registry.h"
#include "sweep/sweep_state.h"

static const KilnSweeperOps *ops_of(const KilnSweep *sweep)
{
    return kiln_instance_component(sweep->sweeper)->ops.sweeper;
}

/* ---- The space that a sweeper accepts ---------------------------------------------------- */

static const char *const kind_names[] = { "a choice", "range()", "interval()", "int(interval())" };

/* "kiln/sweeper=random, kiln/sweeper=tpe": the sweepers that accept axes of this kind. */
static void append_sweepers(KilnText *text, const KilnRegistry *registry, unsigned kind)
{
    size_t n = 0;

    for (size_t i = 0; i < kiln_registry_count(registry); i++) {
        const KilnComponent *component = kiln_registry_at(registry, i);

        if (component->kind == KILN_KIND_SWEEPER && (component->ops.sweeper->axes & kind) != 0)
            kiln_text_printf(text, "%skiln/sweeper=%s", n++ > 0 ? ", " : "", component->name);
    }
}

static KilnStatus refuse_axis(const KilnSweep *sweep, const KilnAxis *axis, KilnError *err)
{
    KilnText sweepers = { 0 };

    append_sweepers(&sweepers, sweep->compose.registry, axis->kind);
    if (sweepers.failed)
        return kiln_error_nomem(err, 1);
    kiln_error_set(err, KILN_E_TYPE,
                   "%s: sweeper/%s does not accept %s%s select a sweeper that does (%s)", axis->key,
                   kiln_instance_name(sweep->sweeper), kind_names[__builtin_ctz(axis->kind)],
                   kiln_axis_is_interval(axis)
                       ? ", which has no end of values; write range(start,stop,step) or the "
                         "values with commas, or"
                       : ";",
                   sweepers.data);
    kiln_text_release(&sweepers);
    return err->status;
}

KilnStatus kiln_sweep_check_axes(const KilnSweep *sweep, KilnError *err)
{
    const KilnSpace *space = &sweep->arguments.space;

    for (size_t i = 0; i < space->count; i++)
        if (space->axes[i]->count != 1 && (ops_of(sweep)->axes & space->axes[i]->kind) == 0)
            return refuse_axis(sweep, space->axes[i], err);
    if (ops_of(sweep)->check == NULL)
        return KILN_OK;
    return KILN_CALLED(sweep->sweeper, "check", ops_of(sweep)->check(sweep->sweeper, space, err),
                       err);
}

static bool has_empty_axis(const KilnSpace *space)
{
    for (size_t i = 0; i < space->count; i++)
        if (space->axes[i]->count == 0 && !kiln_axis_is_interval(space->axes[i]))
            return true;
    return false;
}

KilnStatus kiln_sweep_count(KilnSweep *sweep, KilnError *err)
{
    const size_t most = (size_t)sweep->options->max_jobs;

    if (has_empty_axis(&sweep->arguments.space))
        return KILN_OK;
    sweep->learns = ops_of(sweep)->count == NULL;
    sweep->follows = sweep->learns || sweep->pruner != NULL;
    if (sweep->learns)
        return KILN_OK;
    kiln_call_enter(sweep->sweeper, "count");
    sweep->n_points = ops_of(sweep)->count(sweep->sweeper, &sweep->arguments.space);
    kiln_call_leave();
    if (sweep->n_points <= most)
        return KILN_OK;
    if (sweep->n_points == SIZE_MAX)
        return kiln_error_set(err, KILN_E_RANGE,
                              "this sweep has more jobs than can be counted; %zu are allowed "
                              "(kiln.sweep.max_jobs)",
                              most);
    return kiln_error_set(err, KILN_E_RANGE,
                          "this sweep has %zu jobs, and %zu are allowed; if that many are meant, "
                          "add kiln.sweep.max_jobs=%zu",
                          sweep->n_points, most, sweep->n_points);
}

/* ---- The history --------------------------------------------------------------------------- */

/* The value of a finished job: the best, or of a stopped one the last; NaN: none. */
static double final_value(const KilnSweep *sweep, const KilnJob *job, size_t objective)
{
    KilnMode mode;

    if (job->status == KILN_JOB_OK)
        return kiln_sweep_value(sweep, job, objective, &mode);
    return job->n_reports > 0 ? job->reports[job->n_reports - 1]->values[objective] : (double)NAN;
}

/* A job that a request has stopped never resumes. For sweepers and pruners it has ended, well if it
 * has a value: they would resume a stopped one. */
static KilnJobStatus trial_status(const KilnSweep *sweep, const KilnJob *job)
{
    if (job->next_run > 0 && job->status == KILN_JOB_OK)
        return kiln_sweep_runs_of(sweep, job, 0).open > 0 ? KILN_JOB_RUNNING : KILN_JOB_OK;
    if (job->status != KILN_JOB_STOPPED || job->halted == NULL)
        return job->status;
    return job->n_reports > 0 ? KILN_JOB_OK : KILN_JOB_FAILED;
}

KilnStatus kiln_sweep_update_trial(KilnSweep *sweep, size_t number, KilnError *err)
{
    KilnJob *job = &sweep->jobs.items[number];
    const bool ended = job->status == KILN_JOB_OK || job->status == KILN_JOB_STOPPED;

    if (job->first_run > 0)
        return kiln_sweep_update_trial(sweep, job->first_run - 1, err);
    if (job->trial == 0)
        return KILN_OK;
    KilnTrial *trial = sweep->trials[job->trial - 1];
    trial->status = trial_status(sweep, job);
    trial->reports = (const KilnTrialReport *const *)job->reports;
    trial->n_reports = job->n_reports;
    trial->values = NULL;
    if (!ended)
        return KILN_OK;
    if (job->values == NULL)
        job->values = kiln_arena_alloc(&sweep->jobs.arena,
                                       KILN_MAX_OBJECTIVES * sizeof(*job->values));
    if (job->values == NULL)
        return kiln_error_nomem(err, KILN_MAX_OBJECTIVES * sizeof(*job->values));
    for (size_t i = 0; i <= sweep->n_more; i++)
        job->values[i] = final_value(sweep, job, i);
    trial->values = job->values;
    return KILN_OK;
}

static KilnStatus put_trial(KilnSweep *sweep, KilnJob *job, const KilnAxisValue *point,
                            size_t parent, KilnError *err)
{
    const size_t number = (size_t)(job - sweep->jobs.items);

    KilnTrial *trial = kiln_arena_alloc(&sweep->arena, sizeof(*trial));
    if (trial == NULL || !KILN_RESERVE(sweep->trials, sweep->trials_capacity, sweep->n_trials + 1))
        return kiln_error_nomem(err, sizeof(*trial));
    *trial = (KilnTrial) { .job = number, .point = point, .parent = parent };
    sweep->trials[sweep->n_trials++] = trial;
    job->trial = sweep->n_trials;
    return KILN_OK;
}

KilnStatus kiln_sweep_claim_trial(KilnSweep *sweep, size_t number, KilnError *err)
{
    const KilnSpace *space = &sweep->arguments.space;
    KilnJob *job = &sweep->jobs.items[number];
    const size_t parent = job->parent > 0 ? sweep->jobs.items[job->parent - 1].trial : 0;
    KilnAxisValue *point = kiln_arena_alloc(&sweep->arena, (space->count + 1) * sizeof(*point));

    if (point == NULL)
        return kiln_error_nomem(err, space->count);
    if (job->trial != 0 || job->first_run > 0 || !kiln_space_locate(space, job->overrides, point))
        return KILN_OK;
    job->claimed = true;
    return put_trial(sweep, job, point, parent > 0 ? parent - 1 : KILN_NO_TRIAL, err);
}

void kiln_sweep_learn_modes(KilnSweep *sweep, const KilnJob *job)
{
    for (size_t i = 0; i <= sweep->n_more; i++)
        if (sweep->declared[i].mode == KILN_MODE_AUTO)
            sweep->declared[i].mode = job->modes[i];
}

KilnStatus kiln_sweep_restore_trials(KilnSweep *sweep, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < sweep->jobs.count && status >= 0; i++)
        status = kiln_sweep_claim_trial(sweep, i, err);
    for (size_t i = 0; i < sweep->jobs.count && status >= 0; i++) {
        status = kiln_sweep_update_trial(sweep, i, err);
        kiln_sweep_learn_modes(sweep, &sweep->jobs.items[i]);
    }
    return status;
}

static KilnHistory history_of(const KilnSweep *sweep)
{
    return (KilnHistory) {
        .space = &sweep->arguments.space,
        .objectives = sweep->objectives,
        .n_objectives = sweep->n_more + 1,
        .trials = (const KilnTrial *const *)sweep->trials,
        .count = sweep->n_trials,
        .complete = sweep->complete,
    };
}

/* ---- Asking ------------------------------------------------------------------------------- */

static KilnStatus complete_point(const KilnSweep *sweep, KilnAxisValue *point, KilnError *err)
{
    size_t wrong = 0;

    if (kiln_space_complete(&sweep->arguments.space, point, &wrong))
        return KILN_OK;
    return kiln_error_set(
        err, KILN_E_PLUGIN,
        "sweeper/%s: its trial %zu has a value of %s that the space does not have",
        kiln_instance_name(sweep->sweeper), sweep->n_trials,
        sweep->arguments.space.axes[wrong]->key);
}

static KilnStatus refuse(const KilnSweep *sweep, const KilnInstance *who, const char *what,
                         size_t trial, KilnError *err)
{
    const char *kind = who == sweep->pruner ? "pruner" : "sweeper";

    return kiln_error_set(
        err, KILN_E_PLUGIN, "%s/%s cannot %s trial %zu, which is %s", kind, kiln_instance_name(who),
        what, trial,
        trial < sweep->n_trials ? kiln_job_status_name(sweep->trials[trial]->status) : "not there");
}

/* A new trial starts from the checkpoint of one that does not run any more. */
static bool is_parent(const KilnSweep *sweep, size_t trial)
{
    if (trial == KILN_NO_TRIAL)
        return true;
    return trial < sweep->n_trials && (sweep->trials[trial]->status == KILN_JOB_OK ||
                                       sweep->trials[trial]->status == KILN_JOB_STOPPED);
}

static KilnStatus add_trial(KilnSweep *sweep, const KilnSuggestion *suggestion, size_t *ret_job,
                            KilnError *err)
{
    const KilnSpace *space = &sweep->arguments.space;
    const char **overrides = kiln_arena_alloc(&sweep->arena, (space->count + 1) * sizeof(char *));
    KilnStatus status = overrides != NULL ? complete_point(sweep, suggestion->point, err)
                                          : kiln_error_nomem(err, space->count);
    size_t n = 0;

    if (status >= 0 && !is_parent(sweep, suggestion->trial))
        status = refuse(sweep, sweep->sweeper, "start from", suggestion->trial, err);
    if (status >= 0 &&
        !kiln_space_overrides(space, suggestion->point, &sweep->arena, overrides, &n))
        status = kiln_error_nomem(err, space->count);
    if (status < 0)
        return status;
    if (sweep->learns && sweep->jobs.count >= (size_t)sweep->options->max_jobs)
        return kiln_error_set(err, KILN_E_RANGE,
                              "sweeper/%s asks for more than %zu jobs; if that many are meant, add "
                              "kiln.sweep.max_jobs=N",
                              kiln_instance_name(sweep->sweeper), sweep->jobs.count);
    KilnJob *job = kiln_jobs_claim(&sweep->jobs, overrides, n);
    if (job == NULL)
        return kiln_error_nomem(err, n);
    if (suggestion->trial != KILN_NO_TRIAL)
        job->parent = sweep->trials[suggestion->trial]->job + 1;
    *ret_job = (size_t)(job - sweep->jobs.items);
    status = put_trial(sweep, job, suggestion->point, suggestion->trial, err);
    const char *why = kiln_sweep_forbids(sweep, suggestion->point);
    if (status < 0 || why == NULL || job->status != KILN_JOB_WAITING)
        return status;
    job->status = KILN_JOB_FORBIDDEN;
    job->reason = why;
    return kiln_sweep_update_trial(sweep, *ret_job, err);
}

KilnStatus kiln_sweep_record_job(const KilnSweep *sweep, size_t number, KilnError *err)
{
    const KilnJob *job = &sweep->jobs.items[number];
    KilnStatus status = kiln_journal_append(sweep->journal, kiln_record_submitted(number, job),
                                            err);

    if (status >= 0 && job->status == KILN_JOB_FORBIDDEN)
        status = kiln_journal_append(sweep->journal, kiln_record_ended(number, job, 0.0), err);
    return status;
}

KilnStatus kiln_sweep_ask(KilnSweep *sweep, KilnAdvice *ret, size_t *ret_job, KilnError *err)
{
    const KilnHistory history = history_of(sweep);
    KilnSuggestion suggestion = { .advice = KILN_ADVICE_DONE, .trial = KILN_NO_TRIAL };

    suggestion.point = kiln_arena_alloc(&sweep->arena,
                                        (history.space->count + 1) * sizeof(KilnAxisValue));
    if (suggestion.point == NULL)
        return kiln_error_nomem(err, history.space->count);
    KilnStatus status = KILN_CALLED(
        sweep->sweeper, "ask", ops_of(sweep)->ask(sweep->sweeper, &history, &suggestion, err), err);
    if (status >= 0 && suggestion.advice == KILN_ADVICE_TRIAL)
        status = add_trial(sweep, &suggestion, ret_job, err);
    if (status >= 0 && suggestion.advice == KILN_ADVICE_RESUME) {
        if (suggestion.trial >= sweep->n_trials ||
            sweep->trials[suggestion.trial]->status != KILN_JOB_STOPPED)
            return refuse(sweep, sweep->sweeper, "resume", suggestion.trial, err);
        *ret_job = sweep->trials[suggestion.trial]->job;
    }
    if (status >= 0)
        *ret = suggestion.advice;
    return status;
}

KilnStatus kiln_sweep_ask_all(KilnSweep *sweep, KilnError *err)
{
    KilnAdvice advice = KILN_ADVICE_TRIAL;
    KilnStatus status = KILN_OK;
    size_t job;

    while (status >= 0 && advice == KILN_ADVICE_TRIAL && sweep->n_trials < sweep->n_points)
        status = kiln_sweep_ask(sweep, &advice, &job, err);
    return status;
}

/* ---- Following reports ------------------------------------------------------------------- */

static const KilnPrunerOps *pruner_of(const KilnSweep *sweep)
{
    return kiln_instance_component(sweep->pruner)->ops.pruner;
}

KilnStatus kiln_sweep_ask_pruner(KilnSweep *sweep, bool *ret_any, size_t *ret_job, KilnError *err)
{
    const KilnHistory history = history_of(sweep);

    *ret_any = false;
    if (sweep->pruner == NULL || pruner_of(sweep)->resume == NULL)
        return KILN_OK;
    kiln_call_enter(sweep->pruner, "resume");
    const size_t trial = pruner_of(sweep)->resume(sweep->pruner, &history);
    kiln_call_leave();
    if (trial == KILN_NO_TRIAL)
        return KILN_OK;
    if (trial >= sweep->n_trials || sweep->trials[trial]->status != KILN_JOB_STOPPED)
        return refuse(sweep, sweep->pruner, "resume", trial, err);
    *ret_any = true;
    *ret_job = sweep->trials[trial]->job;
    return KILN_OK;
}

bool kiln_sweep_tells(const KilnSweep *sweep)
{
    return (sweep->learns && ops_of(sweep)->tell != NULL) || sweep->pruner != NULL;
}

bool kiln_sweep_tell(KilnSweep *sweep, size_t number, char reason[KILN_SWEEP_REASON])
{
    const KilnHistory history = history_of(sweep);
    const KilnJob *job = &sweep->jobs.items[number];
    bool stop = false;

    reason[0] = '\0';
    if (job->trial == 0 || job->n_reports == 0)
        return false;
    if (sweep->learns && ops_of(sweep)->tell != NULL) {
        kiln_call_enter(sweep->sweeper, "tell");
        stop = ops_of(sweep)->tell(sweep->sweeper, &history, job->trial - 1, reason);
        kiln_call_leave();
    }
    if (!stop && sweep->pruner != NULL) {
        kiln_call_enter(sweep->pruner, "prune");
        stop = pruner_of(sweep)->prune(sweep->pruner, &history, job->trial - 1, reason);
        kiln_call_leave();
    }
    return stop;
}
