/* results.csv and results.json: a table of the jobs, for people and programs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/array.h"
#include "base/json.h"
#include "base/parse.h"
#include "base/text.h"
#include "sweep/sweep_state.h"

/* ---- Columns ------------------------------------------------------------------------------ */

typedef struct Names {
    KilnArena *arena;
    const char **list;
    size_t count, capacity;
    bool failed;
} Names;

static bool is_in(const Names *names, const char *name, size_t n)
{
    for (size_t i = 0; i < names->count; i++)
        if (strncmp(names->list[i], name, n) == 0 && names->list[i][n] == '\0')
            return true;
    return false;
}

static void add(Names *names, const char *name, size_t n)
{
    if (is_in(names, name, n))
        return;
    if (!KILN_ARENA_RESERVE(names->arena, names->list, names->capacity, names->count + 1) ||
        (names->list[names->count] = kiln_arena_strndup(names->arena, name, n)) == NULL)
        names->failed = true;
    else
        names->count++;
}

static bool varies(const KilnJobs *jobs, const char *key)
{
    const char *first = kiln_job_value(&jobs->items[0], key);

    for (size_t i = 1; i < jobs->count; i++) {
        const char *value = kiln_job_value(&jobs->items[i], key);

        if ((value == NULL) != (first == NULL) || (value != NULL && strcmp(value, first) != 0))
            return true;
    }
    return false;
}

const char **kiln_results_keys(const KilnJobs *jobs, KilnArena *arena)
{
    Names all = { .arena = arena };
    const char **keys;
    size_t n = 0;

    for (size_t i = 0; i < jobs->count; i++)
        for (const char *const *override = jobs->items[i].overrides; *override != NULL;
             override++) {
            const char *key, *value;
            size_t length = kiln_override_split(*override, &key, &value);

            add(&all, key, length);
        }
    keys = kiln_arena_alloc(arena, (all.count + 1) * sizeof(*keys));
    if (keys == NULL || all.failed)
        return NULL;
    for (size_t i = 0; i < all.count; i++)
        if (varies(jobs, all.list[i]))
            keys[n++] = all.list[i];
    return keys;
}

static Names metric_names(const KilnJobs *jobs, KilnArena *arena)
{
    Names names = { .arena = arena };

    for (size_t i = 0; i < jobs->count; i++)
        for (size_t k = 0; k < jobs->items[i].n_metrics; k++) {
            const char *name = jobs->items[i].metrics[k].name;

            add(&names, name, strlen(name));
        }
    return names;
}

/* ---- Ranks ------------------------------------------------------------------------------- */

typedef struct Ranking {
    size_t *order; /* numbers of n jobs, best first */
    size_t *of;    /* the rank of each job, from 1; 0: it has none */
    size_t *ranks; /* by order */
    size_t n;
} Ranking;

static bool make_ranking(const KilnSweep *sweep, KilnArena *arena, Ranking *ret)
{
    const size_t count = sweep->jobs.count + 1;

    *ret = (Ranking) { .order = kiln_arena_alloc(arena, count * sizeof(size_t)),
                       .of = kiln_arena_alloc(arena, count * sizeof(size_t)),
                       .ranks = kiln_arena_alloc(arena, count * sizeof(size_t)) };
    if (ret->order == NULL || ret->of == NULL || ret->ranks == NULL)
        return false;
    ret->n = kiln_sweep_rank(sweep, ret->order);
    kiln_sweep_ranks(sweep, ret->order, ret->n, ret->ranks);
    memset(ret->of, 0, count * sizeof(size_t));
    for (size_t i = 0; i < ret->n; i++)
        ret->of[ret->order[i]] = ret->ranks[i];
    return true;
}

/* ---- CSV ----------------------------------------------------------------------------------- */

static void append_cell(KilnText *text, const char *cell)
{
    if (cell == NULL) {
        text->failed = true;
        return;
    }
    bool quoted = strpbrk(cell, ",\"\n\r") != NULL;

    if (!quoted) {
        kiln_text_append(text, cell);
        return;
    }
    kiln_text_char(text, '"');
    for (const char *p = cell; *p != '\0'; p++) {
        if (*p == '"')
            kiln_text_char(text, '"');
        kiln_text_char(text, *p);
    }
    kiln_text_char(text, '"');
}

static void append_number(KilnText *text, double value)
{
    char buf[KILN_F64_TEXT];

    kiln_text_char(text, ',');
    if (isfinite(value))
        kiln_text_append(text, kiln_format_f64(value, buf, sizeof(buf)));
}

/* `rank`: from 1; 0: it has none. */
static void append_row(KilnText *text, const KilnJobs *jobs, size_t number, size_t rank,
                       const char *const *keys, const Names *metrics)
{
    const KilnJob *job = &jobs->items[number];

    kiln_text_printf(text, "%zu,%s,%.3f,", number, kiln_job_status_text(job), job->seconds);
    if (rank > 0)
        kiln_text_printf(text, "%zu", rank);
    kiln_text_char(text, ',');
    append_cell(text, job->reason);
    kiln_text_char(text, ',');
    if (job->first_run > 0)
        kiln_text_printf(text, "%zu", job->first_run - 1);
    for (; *keys != NULL; keys++) {
        const char *value = kiln_job_value(job, *keys);

        kiln_text_char(text, ',');
        append_cell(text, value != NULL ? value : "");
    }
    for (size_t i = 0; i < metrics->count; i++) {
        const KilnJobMetric *metric = kiln_job_metric(job, metrics->list[i]);

        append_number(text, metric != NULL ? metric->last : (double)NAN);
        append_number(text, metric != NULL ? metric->best : (double)NAN);
    }
    kiln_text_char(text, '\n');
}

/* A metric may have the name of a key: `lr`. */
static const char *metric_column(const Names *metrics, size_t i, const char *const *keys)
{
    for (; *keys != NULL; keys++)
        if (strcmp(*keys, metrics->list[i]) == 0)
            return kiln_arena_printf(metrics->arena, "metrics.%s", metrics->list[i]);
    return metrics->list[i];
}

static void make_csv(KilnText *text, const KilnJobs *jobs, const Ranking *ranking,
                     const char *const *keys, const Names *metrics)
{
    kiln_text_append(text, "job,status,seconds,rank,reason,repeats");
    for (const char *const *key = keys; *key != NULL; key++) {
        kiln_text_char(text, ',');
        append_cell(text, *key);
    }
    for (size_t i = 0; i < metrics->count; i++) {
        const char *name = metric_column(metrics, i, keys);

        kiln_text_char(text, ',');
        append_cell(text, name);
        kiln_text_char(text, ',');
        append_cell(text, name != NULL ? kiln_arena_printf(metrics->arena, "%s_best", name) : NULL);
    }
    kiln_text_char(text, '\n');
    for (size_t i = 0; i < jobs->count; i++)
        append_row(text, jobs, i, ranking->of[i], keys, metrics);
}

/* ---- JSON --------------------------------------------------------------------------- */

static json_t *number_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *values_json(const KilnJob *job, const char *const *keys)
{
    json_t *values = json_object();

    for (; *keys != NULL; keys++) {
        const char *value = kiln_job_value(job, *keys);

        kiln_json_put(&values, *keys, value != NULL ? kiln_json_text(value) : json_null());
    }
    return values;
}

/* The runs of a point with other seeds; null: there are none. */
static json_t *runs_json(const KilnSweep *sweep, const KilnJob *job)
{
    const KilnRuns runs = kiln_sweep_runs_of(sweep, job, 0);

    return runs.counted < 2 || job->first_run > 0
               ? json_null()
               : json_pack("{s:I, s:o, s:o}", "count", (json_int_t)runs.counted, "mean",
                           number_json(runs.value), "deviation", number_json(runs.deviation));
}

static json_t *job_json(const KilnSweep *sweep, size_t number, size_t rank, const char *const *keys)
{
    const KilnJob *job = &sweep->jobs.items[number];
    json_t *metrics = json_object(), *overrides = json_array();

    for (size_t i = 0; i < job->n_metrics; i++)
        kiln_json_put(&metrics, job->metrics[i].name,
                      json_pack("{s:o, s:o, s:s?}", "last", number_json(job->metrics[i].last),
                                "best", number_json(job->metrics[i].best), "mode",
                                kiln_mode_text(job->metrics[i].mode)));
    for (const char *const *override = job->overrides; *override != NULL; override++)
        kiln_json_add(&overrides, kiln_json_text(*override));
    json_t *ranked = rank > 0 ? json_integer((json_int_t)rank) : json_null();
    json_t *repeats = job->first_run > 0 ? json_integer((json_int_t)job->first_run - 1)
                                         : json_null();
    return json_pack("{s:I, s:o, s:o, s:o, s:s, s:s, s:f, s:s?, s:o, s:o, s:o}", "job",
                     (json_int_t)number, "rank", ranked, "repeats", repeats, "runs",
                     runs_json(sweep, job), "status", kiln_job_status_text(job), "reason",
                     job->reason, "seconds", job->seconds, "dir", job->dir, "values",
                     values_json(job, keys), "overrides", overrides, "metrics", metrics);
}

static char *make_json(const KilnSweep *sweep, const Ranking *ranking, const char *const *keys)
{
    json_t *all = json_array(), *ranked = json_array(), *metrics = json_array(), *results;
    char *text = NULL;

    for (size_t i = 0; i < sweep->jobs.count; i++)
        kiln_json_add(&all, job_json(sweep, i, ranking->of[i], keys));
    for (size_t i = 0; i < ranking->n; i++)
        kiln_json_add(&ranked, json_integer((json_int_t)ranking->order[i]));
    for (size_t i = 0; i <= sweep->n_more; i++)
        kiln_json_add(&metrics, kiln_json_text(kiln_sweep_metric(sweep, i)));
    results = json_pack("{s:s, s:s?, s:o, s:o, s:o}", "metric", sweep->metric, "mode",
                        kiln_mode_text(sweep->metric_mode), "metrics", metrics, "ranked", ranked,
                        "jobs", all);
    if (results != NULL)
        text = kiln_json_dump(results, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
    json_decref(results);
    return text;
}

/* ---- Files -------------------------------------------------------------------------- */

/* Replace a file atomically, without a sync: it can be rebuilt from the journal. */
static KilnStatus replace(const KilnSweep *sweep, const char *name, const char *text,
                          KilnError *err)
{
    char *path = kiln_path_join(sweep->path, name);
    KilnText temporary = { 0 };
    KilnStatus status = KILN_OK;

    if (path != NULL)
        kiln_text_printf(&temporary, "%s.tmp", path);
    FILE *file = path != NULL && !temporary.failed ? kiln_file_open(temporary.data, "w") : NULL;
    if (file == NULL || fputs(text, file) == EOF)
        status = kiln_error_errno(err, path != NULL ? path : name);
    if (file != NULL && fclose(file) != 0 && status >= 0)
        status = kiln_error_errno(err, path);
    if (status >= 0 && rename(temporary.data, path) != 0)
        status = kiln_error_errno(err, path);
    kiln_text_release(&temporary);
    free(path);
    return status;
}

KilnStatus kiln_results_write(const KilnSweep *sweep, KilnError *err)
{
    KilnArena arena = { 0 };
    Names metrics = metric_names(&sweep->jobs, &arena);
    const char **keys = kiln_results_keys(&sweep->jobs, &arena);
    KilnText csv = { 0 };
    Ranking ranking;
    const bool ranked = make_ranking(sweep, &arena, &ranking);
    char *json = keys != NULL && ranked ? make_json(sweep, &ranking, keys) : NULL;
    KilnStatus status;

    if (keys != NULL && ranked)
        make_csv(&csv, &sweep->jobs, &ranking, keys, &metrics);
    if (json == NULL || csv.failed || metrics.failed)
        status = kiln_error_nomem(err, 1);
    else
        status = replace(sweep, "results.csv", csv.data, err);
    if (status >= 0)
        status = replace(sweep, "results.json", json, err);
    kiln_text_release(&csv);
    free(json);
    kiln_arena_release(&arena);
    return status;
}
