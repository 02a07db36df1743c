/* Reads a sweep from its folder: the journal, which another process may be writing, and the metric
 * of the last results. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/system/file.h"
#include "base/text.h"
#include "sweep/report/sweep_report.h"

enum { MAX_JOURNAL = 1 << 28 };

/* ---- The journal -------------------------------------------------------------------------- */

static KilnStatus damaged(const char *path, size_t line, const char *why, KilnError *err)
{
    return kiln_error_set(err, KILN_E_FORMAT,
                          "%s:%zu: the line is damaged: %s; a journal has one JSON object in each "
                          "line. Restore the file from a copy, or delete the line: its job then "
                          "counts as not run",
                          path, line, why);
}

/* Replay one line. *begun: the last record of a start, which has the space. */
static KilnStatus read_line(KilnReplay *replay, const char *path, size_t number, const char *line,
                            size_t length, json_t **begun, KilnError *err)
{
    json_error_t why;
    json_t *record = json_loadb(line, length, 0, &why);
    const char *event = json_string_value(json_object_get(record, "event"));
    KilnStatus status = KILN_OK;

    if (!json_is_object(record))
        status = damaged(path, number, record == NULL ? why.text : "it is no object", err);
    else if ((status = kiln_replay_record(replay, record, err)) < 0)
        (void)kiln_error_prefix(err, "%s:%zu: ", path, number);
    if (status >= 0 && event != NULL &&
        (strcmp(event, "begun") == 0 || strcmp(event, "extended") == 0)) {
        json_decref(*begun);
        *begun = json_incref(record);
    }
    json_decref(record);
    return status;
}

static KilnStatus read_journal(KilnReplay *replay, const char *path, json_t **begun, KilnError *err)
{
    char *text = NULL;
    size_t size = 0;
    KilnStatus status = kiln_file_read(path, MAX_JOURNAL, &text, &size, err);
    const char *end, *line = text;

    /* The last line has no end while its writer is at work. */
    for (size_t number = 1; status >= 0 && (end = memchr(line, '\n', size)) != NULL; number++) {
        const size_t length = (size_t)(end - line);

        status = read_line(replay, path, number, line, length, begun, err);
        line = end + 1;
        size -= length + 1;
    }
    free(text);
    if (status >= 0 && *begun == NULL)
        status = kiln_error_set(err, KILN_E_FORMAT,
                                "%s: does not say how the sweep began: it ended before its first "
                                "job, or the file is damaged; start the sweep again",
                                path);
    return status;
}

/* ---- The metric ---------------------------------------------------------------------------- */

static KilnStatus set_metric(KilnSweepReport *report, const json_t *json, KilnError *err)
{
    const char *metric = json_string_value(json_object_get(json, "metric"));

    if (metric == NULL)
        return KILN_OK;
    report->sweep.metric = kiln_arena_strdup(&report->arena, metric);
    report->sweep.metric_mode = kiln_mode_of(json_string_value(json_object_get(json, "mode")));
    return report->sweep.metric != NULL ? KILN_OK : kiln_error_nomem(err, strlen(metric));
}

/* Of the start, and of the last results: a resumed sweep may have another. */
static KilnStatus read_metric(KilnSweepReport *report, const json_t *begun, KilnError *err)
{
    char *path = kiln_path_join(report->sweep.path, "results.json");
    json_t *results = NULL;
    KilnStatus status = path != NULL ? set_metric(report, begun, err) : kiln_error_nomem(err, 1);

    if (status >= 0 && kiln_json_read(path, &results, NULL) >= 0)
        status = set_metric(report, results, err);
    if (status >= 0 && report->sweep.metric == NULL)
        status = kiln_error_set(err, KILN_E_MISSING,
                                "%s: neither its " KILN_JOURNAL_FILE " nor its results.json names "
                                "the metric that jobs are ranked by; `train -m --resume %s` writes "
                                "results.json again",
                                report->sweep.dir, report->sweep.dir);
    json_decref(results);
    free(path);
    return status;
}

/* ---- Jobs ---------------------------------------------------------------------------------- */

static void count_jobs(KilnSweepReport *report)
{
    const KilnJobs *jobs = &report->sweep.jobs;

    report->ok = kiln_jobs_count(jobs, KILN_JOB_OK);
    report->stopped = kiln_jobs_count(jobs, KILN_JOB_STOPPED);
    report->forbidden = kiln_jobs_count(jobs, KILN_JOB_FORBIDDEN);
    report->running = kiln_jobs_count(jobs, KILN_JOB_RUNNING);
    report->waiting = kiln_jobs_count(jobs, KILN_JOB_WAITING) +
                      kiln_jobs_count(jobs, KILN_JOB_INTERRUPTED);
    for (size_t i = 0; i < jobs->count; i++) {
        report->failed += kiln_job_failed(&jobs->items[i]);
        report->seconds += jobs->items[i].seconds;
    }
}

/* The metrics that jobs logged: "train/loss, val/loss". */
static void append_logged(const KilnJobs *jobs, KilnText *text)
{
    for (size_t i = 0; i < jobs->count; i++) {
        const KilnJob *job = &jobs->items[i];

        if (job->status != KILN_JOB_OK || job->n_metrics == 0)
            continue;
        kiln_text_append(text, "; job #");
        kiln_text_printf(text, "%zu logged ", i);
        for (size_t k = 0; k < job->n_metrics; k++)
            kiln_text_printf(text, "%s%s", k > 0 ? ", " : "", job->metrics[k].name);
        return;
    }
}

static KilnStatus no_value(const KilnSweepReport *report, bool logged, KilnError *err)
{
    const KilnSweep *sweep = &report->sweep;
    KilnText text = { 0 };

    if (report->ok == 0) {
        kiln_text_printf(&text,
                         "%s: no job has finished: of %zu jobs %zu are running, %zu wait, %zu were "
                         "stopped and %zu failed; a report needs at least one. ",
                         sweep->dir, sweep->jobs.count, report->running, report->waiting,
                         report->stopped, report->failed);
        if (report->running > 0)
            kiln_text_append(&text, "Try again later");
        else
            kiln_text_printf(&text, "`train -m --resume %s%s` runs them", sweep->dir,
                             report->waiting == 0 ? " --retry-failed" : "");
    } else if (!logged) {
        kiln_text_printf(&text, "%s: no job logged %s, by which the sweep ranks its jobs",
                         sweep->dir, sweep->metric);
        append_logged(&sweep->jobs, &text);
        kiln_text_printf(&text,
                         ". `train -m --resume %s kiln.sweeper.metric=NAME` ranks by another",
                         sweep->dir);
    } else {
        kiln_text_printf(&text,
                         "%s: the value of %s is not a finite number in any job, or the metric "
                         "does not declare whether a larger or a smaller value is better: "
                         "`train -m --resume %s kiln.sweeper.mode=max` (or min) declares it",
                         sweep->dir, sweep->metric, sweep->dir);
    }
    return kiln_text_to_error(&text, KILN_E_MISSING, err);
}

static KilnStatus rank_jobs(KilnSweepReport *report, KilnError *err)
{
    const KilnJobs *jobs = &report->sweep.jobs;
    bool logged = false;

    report->ranked = kiln_arena_alloc(&report->arena, (jobs->count + 1) * sizeof(size_t));
    if (report->ranked == NULL)
        return kiln_error_nomem(err, jobs->count * sizeof(size_t));
    for (size_t i = 0; i < jobs->count; i++)
        logged |= jobs->items[i].status == KILN_JOB_OK &&
                  kiln_job_metric(&jobs->items[i], report->sweep.metric) != NULL;
    report->n_ranked = kiln_sweep_rank(&report->sweep, report->ranked);
    while (report->n_ranked > 0 &&
           !isfinite(kiln_sweep_report_value(report, report->ranked[report->n_ranked - 1])))
        report->n_ranked--; /* an infinite loss comes last */
    if (report->n_ranked == 0)
        return no_value(report, logged, err);
    (void)kiln_sweep_score(&report->sweep, &jobs->items[report->ranked[0]], &report->mode);
    return KILN_OK;
}

KilnStatus kiln_sweep_report_read(const char *dir, KilnSweepReport *report, KilnError *err)
{
    KilnSweep *sweep = &report->sweep;
    KilnReplay replay = { .jobs = &sweep->jobs };
    char *path = kiln_path_join(dir, KILN_JOURNAL_FILE);
    json_t *begun = NULL;
    KilnStatus status = KILN_OK;

    sweep->path = kiln_strdup(dir);
    sweep->dir = kiln_strdup(kiln_sweep_shown_path(dir));
    if (path == NULL || sweep->path == NULL || sweep->dir == NULL)
        status = kiln_error_nomem(err, strlen(dir));
    if (status >= 0)
        status = read_journal(&replay, kiln_sweep_shown_path(path), &begun, err);
    sweep->start = replay.start;
    free(replay.variables);
    if (status >= 0)
        status = kiln_space_read(json_object_get(begun, "space"), &report->arena, &report->space,
                                 err);
    if (status >= 0)
        status = read_metric(report, begun, err);
    if (status >= 0) {
        count_jobs(report);
        status = rank_jobs(report, err);
    }
    json_decref(begun);
    free(path);
    return status;
}
