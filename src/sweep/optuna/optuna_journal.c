/* optuna.log: the jobs of a sweep in the journal format of Optuna (JournalFileBackend), a line of
 * JSON for each operation. It is derived from the jobs: written whole when the sweep is opened, and
 * extended as they change. Trial n is job n. */
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/json.h"
#include "base/system/file.h"
#include "registry/registry.h"
#include "sweep/optuna/optuna_params.h"

/* Optuna's JournalOperation, TrialState and StudyDirection. */
enum {
    CREATE_STUDY = 0,
    SET_STUDY_SYSTEM_ATTR = 3,
    CREATE_TRIAL = 4,
    SET_TRIAL_STATE_VALUES = 6,
    SET_TRIAL_INTERMEDIATE_VALUE = 7,
    SET_TRIAL_USER_ATTR = 8
};
typedef enum State { RUNNING, COMPLETE, PRUNED, FAIL, WAITING } State;
enum { MINIMIZE = 1, MAXIMIZE = 2 };

/* What the log has of a job. */
typedef struct Logged {
    State state;
    KilnJobStatus status;
    size_t n_reports;
} Logged;

struct KilnOptuna {
    KilnArena arena;
    KilnOptunaParams params;
    Logged *trials; /* by job */
    size_t n_trials, capacity;
    bool closing;  /* no job runs any more */
    bool outdated; /* the first trials have other distributions than the last */
    KilnText text; /* lines to be written */
};

/* ---- States -------------------------------------------------------------------------- */

static KilnMode mode_of(const KilnSweep *sweep, size_t objective)
{
    KilnMode mode = sweep->declared[objective].mode;

    for (size_t i = 0; i < sweep->jobs.count && mode == KILN_MODE_AUTO; i++)
        (void)kiln_sweep_value(sweep, &sweep->jobs.items[i], objective, &mode);
    return mode;
}

/* Is it known of each objective whether a larger value is better? */
static bool has_modes(const KilnSweep *sweep)
{
    for (size_t i = 0; i <= sweep->n_more; i++)
        if (mode_of(sweep, i) == KILN_MODE_AUTO)
            return false;
    return true;
}

/* Has the job a value of each objective? */
static bool has_values(const KilnSweep *sweep, const KilnJob *job)
{
    KilnMode mode;

    for (size_t i = 0; i <= sweep->n_more; i++)
        if (!isfinite(kiln_sweep_value(sweep, job, i, &mode)))
            return false;
    return true;
}

/* May the sweeper or the pruner resume a job that was stopped? */
static bool may_resume(const KilnSweep *sweep)
{
    return sweep->learns || (sweep->pruner != NULL &&
                             kiln_instance_component(sweep->pruner)->ops.pruner->resume != NULL);
}

/* An earlier process ran the job, and this one will run it again. */
static bool runs_again(const KilnSweep *sweep, size_t number)
{
    const KilnJob *job = &sweep->jobs.items[number];

    return number < sweep->n_old && job->started <= 0.0 && kiln_sweep_runs(sweep, job);
}

/* Optuna changes no trial that is COMPLETE, PRUNED or FAIL. So a job has such a state only when
 * this process will not run it again: one that is stopped stays RUNNING while it may be resumed. A
 * later process writes the log again. */
static State state_of(const KilnSweep *sweep, size_t number)
{
    const KilnJob *job = &sweep->jobs.items[number];
    const bool closing = sweep->optuna->closing;

    switch (job->status) {
    case KILN_JOB_RUNNING:
        return RUNNING;
    case KILN_JOB_WAITING:
    case KILN_JOB_INTERRUPTED:
        return WAITING;
    case KILN_JOB_OK:
        return has_values(sweep, job) ? COMPLETE : FAIL;
    case KILN_JOB_STOPPED:
        return closing || job->halted != NULL || !may_resume(sweep) ? PRUNED : RUNNING;
    default:
        return !closing && runs_again(sweep, number) ? WAITING : FAIL;
    }
}

/* Of a COMPLETE trial the values by which kiln ranks it, of a PRUNED one its last, as Optuna does;
 * with several objectives Optuna has none of a PRUNED one. */
static json_t *values_json(const KilnSweep *sweep, const KilnJob *job, State state)
{
    json_t *values = json_array();
    KilnMode mode;

    for (size_t i = 0; i <= sweep->n_more && state == COMPLETE; i++)
        kiln_json_add(&values, json_real(kiln_sweep_value(sweep, job, i, &mode)));
    if (state == PRUNED && sweep->n_more == 0 && job->n_reports > 0 &&
        isfinite(job->reports[job->n_reports - 1]->values[0]))
        kiln_json_add(&values, json_real(job->reports[job->n_reports - 1]->values[0]));
    if (json_array_size(values) > 0)
        return values;
    json_decref(values);
    return json_null();
}

/* The epoch with the best value; 0: no epoch has one. */
static int64_t best_epoch(const KilnJob *job, KilnMode mode)
{
    const double sign = mode == KILN_MODE_MAX ? -1.0 : 1.0;
    double best = (double)INFINITY;
    int64_t epoch = 0;

    for (size_t i = 0; i < job->n_reports; i++) {
        if (!(sign * job->reports[i]->values[0] < best))
            continue;
        best = sign * job->reports[i]->values[0];
        epoch = job->reports[i]->epoch;
    }
    return epoch;
}

/* ---- Lines --------------------------------------------------------------------------------- */

/* Append an operation; its other members are in `line`, which is consumed. */
static void put_line(KilnText *text, int op_code, json_t *line)
{
    kiln_json_put(&line, "op_code", json_integer(op_code));
    kiln_json_put(&line, "worker_id", json_string("kiln"));
    char *json = kiln_json_dump(line, JSON_COMPACT | JSON_REAL_PRECISION(17));

    json_decref(line);
    if (json == NULL)
        text->failed = true;
    else
        kiln_text_printf(text, "%s\n", json);
    free(json);
}

static void put_study(KilnText *text, const KilnSweep *sweep)
{
    json_t *directions = json_array(), *names = json_array();

    for (size_t i = 0; i <= sweep->n_more; i++) {
        kiln_json_add(&directions,
                      json_integer(mode_of(sweep, i) == KILN_MODE_MAX ? MAXIMIZE : MINIMIZE));
        kiln_json_add(&names, kiln_json_text(kiln_sweep_metric(sweep, i)));
    }
    put_line(text, CREATE_STUDY,
             json_pack("{s:o, s:o}", "study_name", kiln_json_text(sweep->dir), "directions",
                       directions));
    put_line(
        text, SET_STUDY_SYSTEM_ATTR,
        json_pack("{s:i, s:{s:o}}", "study_id", 0, "system_attr", "study:metric_names", names));
}

static void put_attribute(KilnText *text, size_t number, const char *key, json_t *value)
{
    put_line(text, SET_TRIAL_USER_ATTR,
             json_pack("{s:I, s:{s:o}}", "trial_id", (json_int_t)number, "user_attr", key, value));
}

/* A time of the journal, 2026-11-20T21:03:11+0100, as Python before 3.11 accepts it: +01:00. NULL:
 * now. */
static json_t *time_json(const char *time)
{
    enum { MINUTES = 2 };
    char now[KILN_TIME_TEXT];
    const char *text = time != NULL ? time : kiln_time_text(now);
    const size_t n = strlen(text);

    if (n < MINUTES || text[n - MINUTES - 1] == ':')
        return json_string(text);
    return json_sprintf("%.*s:%s", (int)(n - MINUTES), text, text + n - MINUTES);
}

static void put_state(KilnText *text, const KilnSweep *sweep, size_t number, State state)
{
    const KilnJob *job = &sweep->jobs.items[number];
    json_t *line = json_pack("{s:I, s:i, s:o}", "trial_id", (json_int_t)number, "state", state,
                             "values", values_json(sweep, job, state));

    if (state == RUNNING)
        kiln_json_put(&line, "datetime_start", time_json(job->began));
    else if (state != WAITING)
        kiln_json_put(&line, "datetime_complete", time_json(job->finished));
    put_line(text, SET_TRIAL_STATE_VALUES, line);
}

/* JSON has no NaN: an epoch with such a value has none. Optuna has values of epochs only with one
 * objective. */
static void put_reports(KilnText *text, const KilnSweep *sweep, size_t number, Logged *logged)
{
    const KilnJob *job = &sweep->jobs.items[number];

    for (; logged->n_reports < job->n_reports; logged->n_reports++) {
        const KilnTrialReport *report = job->reports[logged->n_reports];

        if (sweep->n_more == 0 && isfinite(report->values[0]))
            put_line(text, SET_TRIAL_INTERMEDIATE_VALUE,
                     json_pack("{s:I, s:I, s:f}", "trial_id", (json_int_t)number, "step",
                               (json_int_t)report->epoch, "intermediate_value", report->values[0]));
    }
}

static void put_attributes(KilnText *text, const KilnSweep *sweep, size_t number)
{
    const KilnJob *job = &sweep->jobs.items[number];
    const int64_t best = best_epoch(job, mode_of(sweep, 0));

    put_attribute(text, number, "status", json_string(kiln_job_status_name(job->status)));
    put_attribute(text, number, "reason", kiln_json_text(job->reason));
    if (job->dir != NULL)
        put_attribute(text, number, "folder", kiln_json_text(job->dir));
    if (best > 0)
        put_attribute(text, number, "best_epoch", json_integer((json_int_t)best));
}

/* The new lines of a trial that has been created. */
static void put_changes(KilnText *text, const KilnSweep *sweep, size_t number)
{
    const KilnJob *job = &sweep->jobs.items[number];
    Logged *logged = &sweep->optuna->trials[number];
    const State state = state_of(sweep, number);

    if (logged->state == WAITING && state != WAITING && job->began != NULL) {
        put_state(text, sweep, number, RUNNING);
        logged->state = RUNNING;
    }
    put_reports(text, sweep, number, logged);
    if (logged->status != job->status)
        put_attributes(text, sweep, number);
    if (logged->state != state)
        put_state(text, sweep, number, state);
    logged->status = job->status;
    logged->state = state;
}

static json_t *creation_json(const KilnSweep *sweep, size_t number, bool *ret_known)
{
    json_t *params = json_object(), *distributions = json_object();

    *ret_known = kiln_optuna_values(sweep, &sweep->optuna->params, &sweep->jobs.items[number],
                                    &params, &distributions);
    return json_pack("{s:i, s:i, s:n, s:n, s:n, s:o, s:o, s:{s:I}, s:{}, s:{}}", "study_id", 0,
                     "state", WAITING, "datetime_start", "value", "values", "params", params,
                     "distributions", distributions, "user_attrs", "job", (json_int_t)number,
                     "system_attrs", "intermediate_values");
}

/* Create the next trial. One with a value that no parameter has yet makes them new; those of the
 * trials before are rewritten at the end. */
static KilnStatus create(KilnSweep *sweep, KilnError *err)
{
    KilnOptuna *optuna = sweep->optuna;
    const size_t number = optuna->n_trials;
    KilnStatus status = KILN_OK;
    bool known;

    if (!KILN_RESERVE(optuna->trials, optuna->capacity, number + 1))
        return kiln_error_nomem(err, sizeof(*optuna->trials));
    json_t *line = creation_json(sweep, number, &known);
    if (!known) {
        json_decref(line);
        status = kiln_optuna_params(sweep, &optuna->arena, &optuna->params, err);
        if (status < 0)
            return status;
        line = creation_json(sweep, number, &known);
        optuna->outdated = true;
    }
    put_line(&optuna->text, CREATE_TRIAL, line);
    optuna->trials[optuna->n_trials++] = (Logged) { .state = WAITING, .status = KILN_JOB_WAITING };
    return status;
}

/* ---- The file ------------------------------------------------------------------------------ */

/* In one write(): the dashboard appends notes to the file, and must not do so within a line. */
static KilnStatus append(KilnOptuna *optuna, const char *path, KilnError *err)
{
    const int fd = kiln_fd_open(path, O_WRONLY | O_APPEND | O_CREAT);
    const bool good = fd >= 0 && kiln_fd_write(fd, optuna->text.data, optuna->text.length);
    const KilnStatus status = good ? KILN_OK : kiln_error_errno(err, path);

    if (fd >= 0)
        close(fd);
    return status;
}

static KilnStatus flush(const KilnSweep *sweep, bool replace, KilnError *err)
{
    KilnText *text = &sweep->optuna->text;
    char *path = kiln_path_join(sweep->path, KILN_OPTUNA_FILE);
    KilnStatus status = KILN_OK;

    if (text->failed || path == NULL)
        status = kiln_error_nomem(err, 1);
    else if (replace)
        status = kiln_file_write(path, text->data, text->length, err);
    else if (text->length > 0)
        status = append(sweep->optuna, path, err);
    kiln_text_clear(text);
    free(path);
    return status;
}

/* Append what is new of all jobs up to `count`. */
static KilnStatus put_jobs(KilnSweep *sweep, size_t count, KilnError *err)
{
    KilnStatus status = KILN_OK;

    while (status >= 0 && sweep->optuna->n_trials < count) {
        status = create(sweep, err);
        if (status >= 0)
            put_changes(&sweep->optuna->text, sweep, sweep->optuna->n_trials - 1);
    }
    return status;
}

/* ---- For the launch -------------------------------------------------------------------------- */

KilnStatus kiln_optuna_rewrite(KilnSweep *sweep, KilnError *err)
{
    const bool closing = sweep->optuna != NULL && sweep->optuna->closing;

    if (!sweep->options->optuna || !has_modes(sweep))
        return KILN_OK;
    kiln_optuna_free(sweep->optuna);
    sweep->optuna = calloc(1, sizeof(*sweep->optuna));
    if (sweep->optuna == NULL)
        return kiln_error_nomem(err, sizeof(*sweep->optuna));
    sweep->optuna->closing = closing;
    KilnStatus status = kiln_optuna_params(sweep, &sweep->optuna->arena, &sweep->optuna->params,
                                           err);
    if (status >= 0) {
        put_study(&sweep->optuna->text, sweep);
        status = put_jobs(sweep, sweep->jobs.count, err);
    }
    return status >= 0 ? flush(sweep, true, err) : status;
}

KilnStatus kiln_optuna_update(KilnSweep *sweep, size_t number, KilnError *err)
{
    if (sweep->optuna == NULL)
        return kiln_optuna_rewrite(sweep, err);
    KilnStatus status = put_jobs(sweep, number + 1, err);
    if (status < 0)
        return status;
    put_changes(&sweep->optuna->text, sweep, number);
    return flush(sweep, false, err);
}

KilnStatus kiln_optuna_finish(KilnSweep *sweep, KilnError *err)
{
    if (sweep->optuna == NULL)
        return KILN_OK;
    sweep->optuna->closing = true;
    if (sweep->optuna->outdated)
        return kiln_optuna_rewrite(sweep, err);
    for (size_t i = 0; i < sweep->optuna->n_trials; i++)
        put_changes(&sweep->optuna->text, sweep, i);
    return flush(sweep, false, err);
}

void kiln_optuna_free(KilnOptuna *optuna)
{
    if (optuna == NULL)
        return;
    kiln_arena_release(&optuna->arena);
    kiln_text_release(&optuna->text);
    free(optuna->trials);
    free(optuna);
}
