/* Draws the progress of a sweep. */
#include "sweep/display.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "kiln/tools/clock.h"

enum { MAX_RANKED = 20, MAX_FAILED = 20 };
static const double redraw_s = 0.2;

static void write_nothing(void *ctx, const char *text)
{
    (void)ctx;
    (void)text;
}

/* The keys that a learning sweeper varies; NULL when memory is out. */
static const char **varied_keys(const KilnSweep *sweep, KilnArena *arena)
{
    const KilnSpace *space = &sweep->arguments.space;
    const char **keys = kiln_arena_alloc(arena, (space->count + 1) * sizeof(*keys)), *value;
    size_t n = 0;

    for (size_t i = 0; keys != NULL && i < space->count; i++)
        if (space->axes[i]->count != 1)
            (void)kiln_override_split(space->axes[i]->key, &keys[n++], &value);
    return keys;
}

void kiln_display_init(KilnDisplay *display, const KilnSweep *sweep, const KilnConsole *console,
                       size_t at_once)
{
    *display = (KilnDisplay) { .sweep = sweep, .at_once = at_once, .started = kiln_clock() };
    if (console != NULL && console->write != NULL)
        display->console = *console;
    else
        display->console.write = write_nothing;
    display->keys = sweep->learns ? varied_keys(sweep, &display->arena)
                                  : kiln_results_keys(&sweep->jobs, &display->arena);
    for (size_t i = 0; i < sweep->jobs.count; i++)
        display->to_run += kiln_sweep_runs(sweep, &sweep->jobs.items[i]);
}

/* ---- Parts of lines ------------------------------------------------------------------------ */

void kiln_display_time(KilnText *text, double seconds)
{
    char time[KILN_UNIT_TEXT];

    if (seconds < 9.95)
        kiln_text_printf(text, "%.1f s", seconds);
    else
        kiln_text_append(text, kiln_clock_text(seconds, time));
}

/* The overrides in which jobs differ: "  lr=0.1  model=mlp". */
void kiln_display_values(KilnDisplay *display, const KilnJob *job)
{
    for (const char *const *override = job->overrides; *override != NULL; override++) {
        const char *key, *value;
        size_t n = kiln_override_split(*override, &key, &value);

        for (const char *const *varied = display->keys; varied != NULL && *varied != NULL; varied++)
            if (strncmp(*varied, key, n) == 0 && (*varied)[n] == '\0')
                kiln_text_printf(&display->text, "  %s", *override);
    }
}

/* ---- The screen --------------------------------------------------------------------- */

/* Erase the status area; the next text takes its place. */
static void append_erase(KilnDisplay *display)
{
    if (display->lines > 0)
        kiln_text_printf(&display->text, "\033[%dA\r\033[J", display->lines);
    display->lines = 0;
}

static void flush(KilnDisplay *display)
{
    if (!display->text.failed && display->text.length > 0)
        display->console.write(display->console.ctx, display->text.data);
    kiln_text_clear(&display->text);
}

void kiln_display_tick(KilnDisplay *display)
{
    if (!display->console.terminal || kiln_clock() - display->drawn < redraw_s)
        return;
    append_erase(display);
    kiln_display_area(display);
    flush(display);
}

void kiln_display_release(KilnDisplay *display)
{
    append_erase(display);
    flush(display);
    kiln_text_release(&display->text);
    kiln_arena_release(&display->arena);
}

/* ---- Permanent lines ---------------------------------------------------------------- */

void kiln_display_print(KilnDisplay *display, const char *format, ...)
{
    char line[4096];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    append_erase(display);
    kiln_text_printf(&display->text, "%s\n", line);
    flush(display);
}

void kiln_display_note(KilnDisplay *display, size_t number, const char *what)
{
    append_erase(display);
    kiln_text_printf(&display->text, "#%zu %s", number, what);
    kiln_display_values(display, &display->sweep->jobs.items[number]);
    kiln_text_char(&display->text, '\n');
    flush(display);
}

static void append_indented(KilnText *text, const char *lines)
{
    while (*lines != '\0') {
        size_t n = strcspn(lines, "\n");

        kiln_text_printf(text, "    | %.*s\n", (int)n, lines);
        lines += n + (lines[n] == '\n');
    }
}

/* The metrics of a finished job: "  val/loss 0.12". */
static void append_scores(KilnDisplay *display, const KilnJob *job)
{
    KilnMode mode;

    for (size_t i = 0; i <= display->sweep->n_more; i++) {
        const double value = kiln_sweep_value(display->sweep, job, i, &mode);

        if (isfinite(value))
            kiln_text_printf(&display->text, "  %s %.4g", kiln_sweep_metric(display->sweep, i),
                             value);
    }
}

void kiln_display_ended(KilnDisplay *display, size_t number, double seconds, const char *log)
{
    const KilnSweep *sweep = display->sweep;
    const KilnJob *job = &sweep->jobs.items[number];
    KilnText *text = &display->text;

    display->ended++;
    append_erase(display);
    if (sweep->follows)
        kiln_text_printf(text, "#%zu %s  ", number, kiln_job_status_name(job->status));
    else
        kiln_text_printf(text, "[%zu/%zu] #%zu %s  ", display->ended, display->to_run, number,
                         kiln_job_status_name(job->status));
    kiln_display_time(text, seconds);
    append_scores(display, job);
    if (job->first_run > 0)
        kiln_text_printf(text, "  repeats #%zu", job->first_run - 1);
    kiln_display_values(display, job);
    kiln_text_char(text, '\n');
    if (job->reason[0] != '\0')
        kiln_text_printf(text, "    %s\n", job->reason);
    if (log != NULL && log[0] != '\0')
        append_indented(text, log);
    if (display->console.terminal)
        kiln_display_area(display);
    flush(display);
}

/* ---- The end ------------------------------------------------------------------------ */

/* The first objective that no successful job has a value of, or else one whose mode is not known;
 * *ret_logged: it is the latter. */
static size_t find_unranked(const KilnSweep *sweep, bool *ret_logged)
{
    size_t unknown = 0;

    for (size_t objective = 0; objective <= sweep->n_more; objective++) {
        KilnMode mode = KILN_MODE_AUTO;
        bool logged = false;

        for (size_t i = 0; i < sweep->jobs.count && mode == KILN_MODE_AUTO; i++) {
            const KilnJob *job = &sweep->jobs.items[i];
            const char *name = kiln_sweep_metric(sweep, objective);

            if (job->status != KILN_JOB_OK || kiln_job_metric(job, name) == NULL)
                continue;
            logged = true;
            (void)kiln_sweep_value(sweep, job, objective, &mode);
        }
        if (!logged) {
            *ret_logged = false;
            return objective;
        }
        unknown = mode == KILN_MODE_AUTO ? objective : unknown;
    }
    *ret_logged = true;
    return unknown;
}

/* Explain why successful jobs have no rank. */
static void append_unranked(KilnDisplay *display)
{
    const KilnSweep *sweep = display->sweep;
    const char *s = sweep->n_more > 0 ? "s" : "", *open = sweep->n_more > 0 ? "[...," : "";
    bool logged;

    if (kiln_jobs_count(&sweep->jobs, KILN_JOB_OK) == 0)
        return;
    const char *metric = kiln_sweep_metric(sweep, find_unranked(sweep, &logged));
    if (!logged)
        kiln_text_printf(&display->text,
                         "no ranking: no job logged %s; select a metric with "
                         "kiln.sweeper.metric%s\n",
                         metric, s);
    else
        kiln_text_printf(
            &display->text,
            "no ranking: %s does not declare whether a larger or a smaller value is "
            "better; write kiln.sweeper.mode%s=%smax%s or kiln.sweeper.mode%s=%smin%s\n",
            metric, s, open, *s != '\0' ? "]" : "", s, open, *s != '\0' ? "]" : "");
}

static int column_width(const KilnSweep *sweep, size_t objective)
{
    const int width = (int)strlen(kiln_sweep_metric(sweep, objective));

    return width > 10 ? width : 10;
}

/* "  ± 0.012 of 3 runs" */
static void append_runs(KilnDisplay *display, const KilnJob *job)
{
    const KilnRuns runs = kiln_sweep_runs_of(display->sweep, job, 0);

    if (runs.counted > 1)
        kiln_text_printf(&display->text, "  %s %.2g of %zu runs",
                         display->console.utf8 ? "±" : "+-", runs.deviation, runs.counted);
}

static void append_ranking(KilnDisplay *display, const size_t *order, const size_t *ranks, size_t n)
{
    const KilnSweep *sweep = display->sweep;
    KilnText *text = &display->text;
    KilnMode mode;

    if (n == 0)
        return;
    kiln_text_append(text, "rank  job  ");
    for (size_t k = 0; k <= sweep->n_more; k++)
        kiln_text_printf(text, " %*s", column_width(sweep, k), kiln_sweep_metric(sweep, k));
    kiln_text_char(text, '\n');
    for (size_t i = 0; i < n && i < MAX_RANKED; i++) {
        const KilnJob *job = &sweep->jobs.items[order[i]];

        kiln_text_printf(text, "%4zu  #%-4zu", ranks[i], order[i]);
        for (size_t k = 0; k <= sweep->n_more; k++)
            kiln_text_printf(text, "%s%*.5g", k > 0 ? " " : "", column_width(sweep, k),
                             kiln_sweep_value(sweep, job, k, &mode));
        append_runs(display, job);
        kiln_display_values(display, job);
        kiln_text_char(text, '\n');
    }
    if (n > MAX_RANKED)
        kiln_text_printf(text, "and %zu more in results.csv\n", n - MAX_RANKED);
}

static void append_failed(KilnDisplay *display)
{
    const KilnJobs *jobs = &display->sweep->jobs;
    size_t failed = 0;

    for (size_t i = 0; i < jobs->count; i++) {
        const KilnJob *job = &jobs->items[i];

        if (!kiln_job_failed(job) || ++failed > MAX_FAILED)
            continue;
        kiln_text_printf(&display->text, "#%zu %s: %s\n   ", i, kiln_job_status_name(job->status),
                         job->reason);
        kiln_display_values(display, job);
        if (job->dir != NULL)
            kiln_text_printf(&display->text, "  %s/%s/train.log", display->sweep->dir, job->dir);
        kiln_text_char(&display->text, '\n');
    }
    if (failed > MAX_FAILED)
        kiln_text_printf(&display->text, "and %zu more that failed: results.csv\n",
                         failed - MAX_FAILED);
}

static void append_next_step(KilnDisplay *display)
{
    const KilnJobs *jobs = &display->sweep->jobs;
    size_t open = kiln_jobs_count(jobs, KILN_JOB_WAITING) +
                  kiln_jobs_count(jobs, KILN_JOB_INTERRUPTED) +
                  kiln_jobs_count(jobs, KILN_JOB_KILLED);
    size_t failed = 0;

    for (size_t i = 0; i < jobs->count; i++)
        failed += kiln_job_failed(&jobs->items[i]) && jobs->items[i].status != KILN_JOB_KILLED;
    if (open > 0)
        kiln_text_printf(&display->text, "%zu %s not done; continue with: train -m --resume %s\n",
                         open, open == 1 ? "job is" : "jobs are", display->sweep->dir);
    else if (failed > 0)
        kiln_text_printf(&display->text,
                         "retry failed jobs with: train -m --resume %s --retry-failed\n",
                         display->sweep->dir);
}

/* The best job, or with several objectives those that no other one beats. */
static void append_best(KilnDisplay *display, const size_t *order, const size_t *ranks, size_t n)
{
    const KilnSweep *sweep = display->sweep;
    size_t front = 0;

    while (front < n && ranks[front] == 1)
        front++;
    if (n > 0 && sweep->n_more > 0)
        kiln_text_printf(&display->text, "Pareto front: %zu of %zu jobs\n", front, n);
    if (n > 0)
        kiln_text_printf(&display->text, "best run%s%s: %s/%s\n", sweep->n_more > 0 ? " by " : "",
                         sweep->n_more > 0 ? sweep->metric : "", sweep->dir,
                         sweep->jobs.items[order[0]].dir);
}

void kiln_display_close(KilnDisplay *display)
{
    const KilnSweep *sweep = display->sweep;
    size_t *order = calloc(2 * (sweep->jobs.count + 1), sizeof(*order));
    size_t *ranks = order + sweep->jobs.count + 1;
    size_t n = order != NULL && sweep->metric != NULL ? kiln_sweep_rank(sweep, order) : 0;

    if (n > 0)
        kiln_sweep_ranks(sweep, order, n, ranks);
    append_erase(display);
    append_ranking(display, order, ranks, n);
    if (n == 0)
        append_unranked(display);
    append_failed(display);
    kiln_text_printf(&display->text, "sweep folder: %s (results.csv, results.json)\n", sweep->dir);
    append_best(display, order, ranks, n);
    append_next_step(display);
    flush(display);
    free(order);
}
