/* Makes records of a sweep's journal and reads them back. */
#include "sweep/records.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/system/journal.h"
#include "base/json.h"
#include "kiln/array.h"
#include "registry/plugin/plugin_record.h"

static const size_t largest_summary = (size_t)1 << 26;

/* ---- Records --------------------------------------------------------------------------- */

static json_t *texts(const char *const *list)
{
    json_t *array = json_array();

    for (; list != NULL && *list != NULL; list++)
        kiln_json_add(&array, kiln_json_text(*list));
    return array;
}

static json_t *timed(const char *event)
{
    char time[KILN_TIME_TEXT];

    return json_pack("{s:s, s:s}", "event", event, "time", kiln_time_text(time));
}

static json_t *axis_json(const KilnSpace *space, const KilnAxis *axis)
{
    json_t *values = json_array(), *active = json_array(), *json;

    for (size_t i = 0; i < axis->count; i++)
        kiln_json_add(&values, kiln_json_text(axis->overrides[i]));
    if (axis->kind == KILN_AXIS_FLOAT || axis->kind == KILN_AXIS_INT) {
        json_decref(values);
        json = json_pack("{s:s, s:f, s:f, s:f, s:b, s:b}", "key", axis->key, "low", axis->low,
                         "high", axis->high, "step", axis->step, "int", axis->kind == KILN_AXIS_INT,
                         "log", axis->log);
    } else {
        json = json_pack("{s:s, s:o, s:I}", "key", axis->key, "overrides", values, "leader",
                         (json_int_t)axis->leader);
    }
    if (axis->active_for == NULL) {
        json_decref(active);
        return json;
    }
    for (size_t i = 0; i < space->axes[axis->parent]->count; i++)
        kiln_json_add(&active, json_boolean(axis->active_for[i]));
    kiln_json_put(&json, "parent", json_integer((json_int_t)axis->parent));
    kiln_json_put(&json, "active_for", active);
    return json;
}

json_t *kiln_record_begun(const KilnSweepStart *begin, json_t *plugins, const KilnSpace *space,
                          const KilnObjective *objective, bool extended)
{
    json_t *record = timed(extended ? "extended" : "begun"), *axes = json_array();

    for (size_t i = 0; i < space->count; i++)
        kiln_json_add(&axes, axis_json(space, space->axes[i]));
    kiln_json_put(&record, "version", json_string(KILN_VERSION));
    json_t *cwd = json_string(begin->cwd);
    if (cwd != NULL) /* JSON has no path that is not UTF-8; then it is where --resume is called */
        kiln_json_put(&record, "cwd", cwd);
    kiln_json_put(&record, "config_name", kiln_json_text(begin->config_name));
    kiln_json_put(&record, "config_dirs", texts(begin->config_dirs));
    kiln_json_put(&record, "plugins", plugins);
    kiln_json_put(&record, "arguments", texts(begin->arguments));
    kiln_json_put(&record, "space", axes);
    kiln_json_put(&record, "metric", kiln_json_text(objective->metric));
    if (objective->mode != KILN_MODE_AUTO)
        kiln_json_put(&record, "mode", json_string(kiln_mode_text(objective->mode)));
    return record;
}

json_t *kiln_record_submitted(size_t number, const KilnJob *job)
{
    json_t *record = json_pack("{s:s, s:I, s:o}", "event", "submitted", "job", (json_int_t)number,
                               "overrides", texts(job->overrides));

    if (job->parent > 0)
        kiln_json_put(&record, "parent", json_integer((json_int_t)job->parent - 1));
    if (job->first_run > 0)
        kiln_json_put(&record, "repeats", json_integer((json_int_t)job->first_run - 1));
    if (job->added != NULL)
        kiln_json_put(&record, "request", kiln_json_text(job->added));
    return record;
}

/* Of a job on another machine. */
static void put_read(json_t **record, const KilnJob *job)
{
    if (job->read > 0)
        kiln_json_put(record, "read", json_integer((json_int_t)job->read));
}

json_t *kiln_record_queued(size_t number, const KilnJob *job, const char *launcher)
{
    json_t *record = timed("queued");

    kiln_json_put(&record, "job", json_integer((json_int_t)number));
    kiln_json_put(&record, "launcher", kiln_json_text(launcher));
    kiln_json_put(&record, "dir", kiln_json_text(job->dir));
    put_read(&record, job);
    return record;
}

json_t *kiln_record_returned(size_t number, const KilnJob *job)
{
    json_t *record = timed("returned");

    kiln_json_put(&record, "job", json_integer((json_int_t)number));
    kiln_json_put(&record, "status", json_string(kiln_job_status_name(job->status)));
    return record;
}

json_t *kiln_record_started(size_t number, const KilnJob *job, int64_t pid)
{
    json_t *record = timed("started");

    kiln_json_put(&record, "job", json_integer((json_int_t)number));
    kiln_json_put(&record, "dir", kiln_json_text(job->dir));
    kiln_json_put(&record, "cpus", json_integer((json_int_t)job->needs.cpus));
    kiln_json_put(&record, "memory", json_integer((json_int_t)job->needs.memory));
    if (job->where == NULL) {
        kiln_json_put(&record, "pid", json_integer((json_int_t)pid));
        return record;
    }
    kiln_json_put(&record, "where", kiln_json_text(job->where));
    put_read(&record, job);
    return record;
}

json_t *kiln_record_stopping(size_t number, const KilnJob *job)
{
    json_t *record = json_pack("{s:s, s:I, s:o}", "event", "stopping", "job", (json_int_t)number,
                               "reason", kiln_json_text(job->stopping));

    if (job->halted != NULL)
        kiln_json_put(&record, "request", kiln_json_text(job->halted));
    return record;
}

json_t *kiln_record_refused(const char *request, const char *reason)
{
    json_t *record = timed("refused");

    kiln_json_put(&record, "request", kiln_json_text(request));
    kiln_json_put(&record, "reason", kiln_json_text(reason));
    return record;
}

json_t *kiln_record_environment(const char *const *variables)
{
    return json_pack("{s:s, s:o}", "event", "environment", "variables", texts(variables));
}

json_t *kiln_record_plain(const char *event)
{
    return timed(event);
}

json_t *kiln_record_measured(const KilnDivisions *divisions, const KilnDivision *chosen)
{
    json_t *record = timed("measured"), *list = json_array();

    kiln_json_put(&record, "n_jobs", json_integer((json_int_t)chosen->n_jobs));
    kiln_json_put(&record, "threads", json_integer((json_int_t)chosen->threads));
    for (size_t i = 0; i < divisions->count; i++) {
        const KilnDivision *division = &divisions->items[i];
        json_t *one = json_pack("{s:I, s:I}", "n_jobs", (json_int_t)division->n_jobs, "threads",
                                (json_int_t)division->threads);

        if (division->failed[0] != '\0')
            kiln_json_put(&one, "failed", kiln_json_text(division->failed));
        else if (isfinite(division->steps_per_s))
            kiln_json_put(&one, "steps_per_s", json_real(division->steps_per_s));
        kiln_json_add(&list, one);
    }
    kiln_json_put(&record, "divisions", list);
    return record;
}

json_t *kiln_record_exhausted(const char *reason)
{
    json_t *record = timed("exhausted");

    kiln_json_put(&record, "reason", kiln_json_text(reason));
    return record;
}

/* JSON has no NaN and no infinity; null stands for both. */
static json_t *number_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *mode_json(KilnMode mode)
{
    const char *text = kiln_mode_text(mode);

    return text != NULL ? json_string(text) : json_null();
}

void kiln_values_put(json_t *record, const double *values, const KilnMode *modes, size_t n)
{
    json_t *all = json_array(), *all_modes = json_array();

    for (size_t i = 0; i < n; i++) {
        kiln_json_add(&all, number_json(values[i]));
        kiln_json_add(&all_modes, mode_json(modes[i]));
    }
    json_object_set_new(record, "value", number_json(values[0]));
    json_object_set_new(record, "mode", mode_json(modes[0]));
    if (n > 1) {
        json_object_set(record, "values", all);
        json_object_set(record, "modes", all_modes);
    }
    json_decref(all);
    json_decref(all_modes);
}

json_t *kiln_record_reported(size_t number, const KilnTrialReport *report, const KilnMode *modes,
                             size_t n_objectives)
{
    json_t *record = json_pack("{s:s, s:I, s:I, s:I}", "event", "reported", "job",
                               (json_int_t)number, "epoch", (json_int_t)report->epoch, "step",
                               (json_int_t)report->step);

    if (record != NULL)
        kiln_values_put(record, report->values, modes, n_objectives);
    return record;
}

json_t *kiln_record_ended(size_t number, const KilnJob *job, double seconds)
{
    json_t *record = timed("ended"), *metrics = json_object();

    for (size_t i = 0; i < job->n_metrics; i++)
        kiln_json_put(&metrics, job->metrics[i].name,
                      json_pack("{s:o, s:o, s:s?}", "last", number_json(job->metrics[i].last),
                                "best", number_json(job->metrics[i].best), "mode",
                                kiln_mode_text(job->metrics[i].mode)));
    kiln_json_put(&record, "job", json_integer((json_int_t)number));
    kiln_json_put(&record, "status", json_string(kiln_job_status_name(job->status)));
    kiln_json_put(&record, "reason", kiln_json_text(job->reason));
    kiln_json_put(&record, "seconds", json_real(seconds));
    kiln_json_put(&record, "steps", json_integer((json_int_t)job->steps));
    kiln_json_put(&record, "metrics", metrics);
    if (job->halted != NULL)
        kiln_json_put(&record, "request", kiln_json_text(job->halted));
    put_read(&record, job);
    return record;
}

/* ---- Reading back ------------------------------------------------------------------------ */

static double number_of(const json_t *value)
{
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

void kiln_values_read(const json_t *record, double ret_values[KILN_MAX_OBJECTIVES],
                      KilnMode ret_modes[KILN_MAX_OBJECTIVES])
{
    const json_t *values = json_object_get(record, "values");
    const json_t *modes = json_object_get(record, "modes");

    for (size_t i = 0; i < KILN_MAX_OBJECTIVES; i++) {
        const json_t *value = json_array_get(values, i), *mode = json_array_get(modes, i);

        if (i == 0) {
            value = json_object_get(record, "value");
            mode = json_object_get(record, "mode");
        }
        ret_values[i] = number_of(value);
        ret_modes[i] = kiln_mode_of(json_string_value(mode));
    }
}

/* Of a summary the values lie one level deeper: {"last": {"value": 1}}. */
static double value_of(const json_t *metric, const char *which)
{
    const json_t *value = json_object_get(metric, which);

    return number_of(json_is_object(value) ? json_object_get(value, "value") : value);
}

static KilnStatus read_metrics(KilnArena *arena, const json_t *metrics, KilnJob *job,
                               KilnError *err)
{
    size_t n = json_object_size(metrics);
    KilnJobMetric *list = kiln_arena_alloc(arena, (n + 1) * sizeof(*list));
    const char *name;
    json_t *metric;

    if (list == NULL)
        return kiln_error_nomem(err, n * sizeof(*list));
    job->metrics = list;
    job->n_metrics = 0;
    json_object_foreach((json_t *)metrics, name, metric)
    {
        const char *mode = json_string_value(json_object_get(metric, "mode"));

        *list = (KilnJobMetric) {
            .name = kiln_arena_strdup(arena, name),
            .last = value_of(metric, "last"),
            .best = value_of(metric, "best"),
            .mode = kiln_mode_of(mode),
        };
        if (list->name == NULL)
            return kiln_error_nomem(err, strlen(name));
        list++;
        job->n_metrics++;
    }
    return KILN_OK;
}

KilnStatus kiln_job_read_summary(KilnArena *arena, const char *path, KilnJob *job, KilnError *err)
{
    char *text = NULL;
    size_t size = 0;
    json_t *summary = NULL;
    KilnStatus status = KILN_OK;

    job->n_metrics = 0;
    if (kiln_file_read(path, largest_summary, &text, &size, NULL) >= 0)
        summary = json_loadb(text, size, 0, NULL);
    if (summary != NULL)
        status = read_metrics(arena, json_object_get(summary, "metrics"), job, err);
    json_decref(summary);
    free(text);
    return status;
}

const char *const *kiln_texts_read(KilnArena *arena, const json_t *list)
{
    size_t n = json_array_size(list), kept = 0;
    const char **all = kiln_arena_alloc(arena, (n + 1) * sizeof(*all));

    for (size_t i = 0; all != NULL && i < n; i++) {
        const char *text = json_string_value(json_array_get(list, i));

        if (text != NULL && (all[kept++] = kiln_arena_strdup(arena, text)) == NULL)
            return NULL;
    }
    return all;
}

/* The name of the request that made the record, if one did; *ret is unchanged else. */
static KilnStatus read_request(KilnJobs *jobs, const json_t *line, const char **ret, KilnError *err)
{
    const char *name = json_string_value(json_object_get(line, "request"));

    if (name != NULL && (*ret = kiln_arena_strdup(&jobs->arena, name)) == NULL)
        return kiln_error_nomem(err, strlen(name));
    return KILN_OK;
}

static KilnStatus read_begun(KilnReplay *replay, const json_t *line, KilnError *err)
{
    KilnArena *arena = &replay->jobs->arena;
    const char *cwd = json_string_value(json_object_get(line, "cwd"));
    const char *name = json_string_value(json_object_get(line, "config_name"));
    KilnSweepStart start = {
        .cwd = kiln_arena_strdup(arena, cwd != NULL ? cwd : "."),
        .config_name = kiln_arena_strdup(arena, name != NULL ? name : "config"),
        .config_dirs = kiln_texts_read(arena, json_object_get(line, "config_dirs")),
        .plugins = kiln_plugin_record_paths(arena, json_object_get(line, "plugins")),
        .arguments = kiln_texts_read(arena, json_object_get(line, "arguments")),
    };

    if (start.cwd == NULL || start.config_name == NULL || start.config_dirs == NULL ||
        start.plugins == NULL || start.arguments == NULL)
        return kiln_error_nomem(err, 1);
    replay->start = start;
    replay->started = true;
    replay->complete = false;
    return KILN_OK;
}

static KilnStatus read_submitted(KilnReplay *replay, const json_t *line, KilnError *err)
{
    KilnJobs *jobs = replay->jobs;
    json_int_t number = json_integer_value(json_object_get(line, "job"));
    const char *dir = json_string_value(json_object_get(line, "dir")); /* of an earlier version */
    const char *const *overrides = kiln_texts_read(&jobs->arena,
                                                   json_object_get(line, "overrides"));
    size_t n = 0;

    if (overrides == NULL)
        return kiln_error_nomem(err, 1);
    if (number < 0 || (size_t)number > jobs->count)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "the journal is damaged: job %lld comes where job %zu should",
                              (long long)number, jobs->count);
    if ((size_t)number < jobs->count)
        return KILN_OK; /* recorded twice */
    while (overrides[n] != NULL)
        n++;
    KilnJob *job = kiln_jobs_add(jobs, overrides, n, dir);
    const json_t *parent = json_object_get(line, "parent");
    if (job == NULL)
        return kiln_error_nomem(err, n);
    if (json_is_integer(parent) && json_integer_value(parent) >= 0 &&
        json_integer_value(parent) < number)
        job->parent = (size_t)json_integer_value(parent) + 1;
    const json_t *first = json_object_get(line, "repeats");
    if (json_is_integer(first) && json_integer_value(first) >= 0 &&
        json_integer_value(first) < number) {
        job->claimed = true;
        kiln_job_link_run(jobs, (size_t)json_integer_value(first), (size_t)number);
    }
    return read_request(jobs, line, &job->added, err);
}

/* NULL when there is none, or memory is out: such a job has the current time. */
static const char *read_time(KilnJobs *jobs, const json_t *line)
{
    const char *time = json_string_value(json_object_get(line, "time"));

    return time != NULL ? kiln_arena_strdup(&jobs->arena, time) : NULL;
}

/* A job that was queued may have started since: it counts as running. */
static KilnStatus read_started(KilnJobs *jobs, KilnJob *job, const json_t *line, KilnError *err)
{
    const char *dir = json_string_value(json_object_get(line, "dir"));
    const char *launcher = json_string_value(json_object_get(line, "launcher"));

    job->status = KILN_JOB_RUNNING;
    if (launcher != NULL && (job->queue = kiln_arena_strdup(&jobs->arena, launcher)) == NULL)
        return kiln_error_nomem(err, strlen(launcher));
    job->needs = (KilnJobNeeds) {
        .cpus = json_integer_value(json_object_get(line, "cpus")),
        .memory = json_integer_value(json_object_get(line, "memory")),
    };
    if (job->began == NULL)
        job->began = read_time(jobs, line);
    job->read = json_integer_value(json_object_get(line, "read"));
    if (dir != NULL && (job->dir = kiln_arena_strdup(&jobs->arena, dir)) == NULL)
        return kiln_error_nomem(err, strlen(dir));
    return KILN_OK;
}

static void read_returned(KilnJob *job, const json_t *line)
{
    job->queue = NULL;
    (void)kiln_job_status_find(json_string_value(json_object_get(line, "status")), &job->status);
}

static KilnStatus read_reported(KilnJobs *jobs, KilnJob *job, const json_t *line, KilnError *err)
{
    double values[KILN_MAX_OBJECTIVES];

    kiln_values_read(line, values, job->modes);
    if (kiln_job_add_report(&jobs->arena, job, json_integer_value(json_object_get(line, "epoch")),
                            json_integer_value(json_object_get(line, "step")), values) == NULL)
        return kiln_error_nomem(err, 1);
    job->n_recorded = job->n_reports;
    return KILN_OK;
}

static KilnStatus read_stopping(KilnJobs *jobs, KilnJob *job, const json_t *line, KilnError *err)
{
    const char *reason = json_string_value(json_object_get(line, "reason"));

    job->stopping = kiln_arena_strdup(&jobs->arena, reason != NULL ? reason : "");
    return job->stopping != NULL ? read_request(jobs, line, &job->halted, err)
                                 : kiln_error_nomem(err, 1);
}

static KilnStatus read_environment(KilnReplay *replay, const json_t *line, KilnError *err)
{
    const char *const *variables = kiln_texts_read(&replay->jobs->arena,
                                                   json_object_get(line, "variables"));

    for (; variables != NULL && *variables != NULL; variables++) {
        if (!KILN_RESERVE(replay->variables, replay->variables_capacity, replay->n_variables + 1))
            return kiln_error_nomem(err, 1);
        replay->variables[replay->n_variables++] = *variables;
    }
    return variables != NULL ? KILN_OK : kiln_error_nomem(err, 1);
}

static void read_measured(KilnReplay *replay, const json_t *line)
{
    const json_int_t n_jobs = json_integer_value(json_object_get(line, "n_jobs")),
                     threads = json_integer_value(json_object_get(line, "threads"));

    if (n_jobs > 0 && threads > 0)
        replay->division = (KilnDivision) { .n_jobs = (size_t)n_jobs,
                                            .threads = (size_t)threads,
                                            .steps_per_s = (double)NAN };
}

static KilnStatus read_ended(KilnJobs *jobs, KilnJob *job, const json_t *line, KilnError *err)
{
    const char *reason = json_string_value(json_object_get(line, "reason"));
    double seconds = number_of(json_object_get(line, "seconds"));

    if (!kiln_job_status_find(json_string_value(json_object_get(line, "status")), &job->status))
        return KILN_OK; /* of a later version: it runs again */
    job->queue = job->stopping = NULL;
    if (job->status == KILN_JOB_STOPPED && job->n_reports > 0)
        job->stopped_step = job->reports[job->n_reports - 1]->step;
    job->reason = kiln_arena_strdup(&jobs->arena, reason != NULL ? reason : "");
    if (job->reason == NULL)
        return kiln_error_nomem(err, 1);
    job->finished = read_time(jobs, line);
    if (isfinite(seconds))
        job->seconds += seconds;
    job->steps = json_integer_value(json_object_get(line, "steps"));
    if (read_request(jobs, line, &job->halted, err) < 0)
        return err->status;
    job->read = json_integer_value(json_object_get(line, "read"));
    return read_metrics(&jobs->arena, json_object_get(line, "metrics"), job, err);
}

KilnStatus kiln_replay_record(void *ctx, const json_t *line, KilnError *err)
{
    KilnReplay *replay = ctx;
    const char *event = json_string_value(json_object_get(line, "event"));
    json_int_t number = json_integer_value(json_object_get(line, "job"));
    KilnJob *job = number >= 0 && (size_t)number < replay->jobs->count
                       ? &replay->jobs->items[number]
                       : NULL;

    if (event == NULL)
        return KILN_OK;
    if (strcmp(event, "begun") == 0 || strcmp(event, "extended") == 0)
        return read_begun(replay, line, err);
    if (strcmp(event, "submitted") == 0)
        return read_submitted(replay, line, err);
    if (strcmp(event, "complete") == 0)
        replay->complete = true;
    if (strcmp(event, "environment") == 0)
        return read_environment(replay, line, err);
    if (strcmp(event, "measured") == 0)
        read_measured(replay, line);
    if ((strcmp(event, "started") == 0 || strcmp(event, "queued") == 0) && job != NULL)
        return read_started(replay->jobs, job, line, err);
    if (strcmp(event, "returned") == 0 && job != NULL)
        read_returned(job, line);
    if (strcmp(event, "reported") == 0 && job != NULL)
        return read_reported(replay->jobs, job, line, err);
    if (strcmp(event, "stopping") == 0 && job != NULL)
        return read_stopping(replay->jobs, job, line, err);
    if (strcmp(event, "ended") == 0 && job != NULL)
        return read_ended(replay->jobs, job, line, err);
    return KILN_OK;
}

void kiln_replay_end(KilnReplay *replay)
{
    for (size_t i = 0; i < replay->jobs->count; i++) {
        KilnJob *job = &replay->jobs->items[i];

        if (job->status != KILN_JOB_RUNNING)
            continue;
        job->status = KILN_JOB_INTERRUPTED;
        job->reason = "its launcher was killed";
    }
}
