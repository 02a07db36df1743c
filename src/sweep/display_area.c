/* The status area of a sweep on a terminal: how far it is, the best job so far, what is left of the
 * budget, and the jobs that run, with their curves. */
#include <math.h>
#include <string.h>

#include "kiln/tools/clock.h"
#include "sweep/display.h"

enum { MAX_SHOWN = 12, CURVE = 12 };

/* End the line that began at `start`: cut it to the width of the terminal, since a line that wraps
 * is not erased completely. No character is cut in half. */
static void end_line(KilnDisplay *display, size_t start)
{
    KilnText *text = &display->text;
    size_t end = start;

    display->lines++;
    if (text->failed)
        return;
    for (int columns = 0; end < text->length; end++)
        if (((unsigned char)text->data[end] & 0xc0) != 0x80 && ++columns >= display->console.width)
            break;
    text->length = end;
    text->data[end] = '\0';
    kiln_text_char(text, '\n');
}

/* ---- How far it is --------------------------------------------------------------------------- */

/* The expected seconds of a job: the mean of finished jobs, else extrapolated from a running one;
 * NaN: unknown. */
static double seconds_a_job(const KilnSweep *sweep, double now)
{
    double sum = 0.0, guessed = (double)NAN;
    size_t n = 0;

    for (size_t i = 0; i < sweep->jobs.count; i++) {
        const KilnJob *job = &sweep->jobs.items[i];

        if (job->status == KILN_JOB_OK) {
            sum += job->seconds;
            n++;
        } else if (job->status == KILN_JOB_RUNNING && !job->queued && job->progress.done > 0.0) {
            guessed = (now - job->started) / job->progress.done;
        }
    }
    return n > 0 ? sum / (double)n : guessed;
}

/* The expected seconds until the sweep ends; NaN: unknown. */
static double seconds_left(const KilnDisplay *display, double now)
{
    double each = seconds_a_job(display->sweep, now), work = 0.0;

    for (size_t i = 0; i < display->sweep->jobs.count; i++) {
        const KilnJob *job = &display->sweep->jobs.items[i];
        double elapsed = now - job->started;

        if (job->queued || job->status == KILN_JOB_WAITING || job->status == KILN_JOB_INTERRUPTED)
            work += each;
        else if (job->status == KILN_JOB_RUNNING && job->progress.done > 0.0)
            work += elapsed / job->progress.done * (1.0 - job->progress.done);
        else if (job->status == KILN_JOB_RUNNING)
            work += each > elapsed ? each - elapsed : 0.0;
    }
    return work / (double)display->at_once;
}

static void append_count(KilnText *text, size_t n, const char *what)
{
    if (n > 0)
        kiln_text_printf(text, ", %zu %s", n, what);
}

static void append_summary(KilnDisplay *display, double now)
{
    const KilnJobs *jobs = &display->sweep->jobs;
    KilnText *text = &display->text;
    const size_t start = text->length;
    const double left = seconds_left(display, now);
    size_t failed = 0;

    for (size_t i = 0; i < jobs->count; i++)
        failed += kiln_job_failed(&jobs->items[i]);
    kiln_text_printf(text, "%zu of %zu jobs done", kiln_jobs_count(jobs, KILN_JOB_OK),
                     jobs->count - kiln_jobs_count(jobs, KILN_JOB_FORBIDDEN));
    append_count(text, kiln_jobs_count(jobs, KILN_JOB_STOPPED), "stopped");
    append_count(text, failed, "failed");
    append_count(text, kiln_jobs_count(jobs, KILN_JOB_RUNNING) - kiln_jobs_queued(jobs), "running");
    append_count(text, kiln_jobs_queued(jobs), "queued");
    if (isfinite(left) && left > 0.0) {
        kiln_text_append(text, ", about ");
        kiln_display_time(text, left);
        kiln_text_append(text, " left");
    }
    end_line(display, start);
}

/* ---- The best job, and the budget -------------------------------------------------------- */

static void append_best(KilnDisplay *display, const KilnJob *best)
{
    KilnText *text = &display->text;
    const size_t start = text->length;
    KilnMode mode;

    if (best == NULL)
        return;
    kiln_text_printf(text, "best so far #%zu  %s %.4g", (size_t)(best - display->sweep->jobs.items),
                     display->sweep->metric, kiln_sweep_score(display->sweep, best, &mode));
    kiln_display_values(display, best);
    end_line(display, start);
}

static void append_budget(KilnDisplay *display, double now)
{
    const KilnSweepOptions *options = display->sweep->options;
    const KilnSweepUse use = kiln_sweep_use(display->sweep);
    KilnText *text = &display->text;
    const size_t start = text->length;
    const double left = options->timeout - (now - display->started);
    const char *between = "budget ";

    if (options->timeout > 0.0) {
        kiln_text_append(text, between);
        kiln_display_time(text, left > 0.0 ? left : 0.0);
        kiln_text_append(text, " left");
        between = ", ";
    }
    if (options->max_steps > 0) {
        kiln_text_printf(text, "%s%lld of %lld steps", between, (long long)use.steps,
                         (long long)options->max_steps);
        between = ", ";
    }
    if (options->patience > 0)
        kiln_text_printf(text, "%s%lld of %lld jobs without a better value", between,
                         (long long)use.ended_since_best, (long long)options->patience);
    if (text->length > start)
        end_line(display, start);
}

/* ---- Running jobs ---------------------------------------------------------------------------- */

/* The range of reported values. */
typedef struct Range {
    double low, high;
} Range;

static void widen(Range *range, const KilnJob *job)
{
    for (size_t i = 0; i < job->n_reports; i++) {
        const double value = job->reports[i]->values[0];

        if (isfinite(value)) {
            range->low = fmin(range->low, value);
            range->high = fmax(range->high, value);
        }
    }
}

/* The last values of a job, on the scale of all that are shown: "▁▃▅▆". */
static void append_curve(KilnDisplay *display, const KilnJob *job, const Range *range)
{
    static const char *const bars[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    const double height = range->high - range->low;

    if (!display->console.utf8 || !(height > 0.0) || job->n_reports < 2)
        return;
    kiln_text_append(&display->text, "  ");
    for (size_t i = job->n_reports > CURVE ? job->n_reports - CURVE : 0; i < job->n_reports; i++) {
        const double value = job->reports[i]->values[0];
        const double at = (value - range->low) / height * 7.99;

        kiln_text_append(&display->text, isfinite(value) ? bars[(size_t)at] : "×");
    }
}

static void append_running(KilnDisplay *display, size_t number, const Range *range, double now)
{
    const KilnJob *job = &display->sweep->jobs.items[number];
    KilnText *text = &display->text;
    const size_t start = text->length;

    kiln_text_printf(text, "  #%zu  ", number);
    kiln_display_time(text, now - job->started);
    if (job->progress.epoch > 0)
        kiln_text_printf(text, "  epoch %lld", (long long)job->progress.epoch);
    if (job->progress.epoch > 0 && job->progress.max_epochs > 0)
        kiln_text_printf(text, "/%lld", (long long)job->progress.max_epochs);
    append_curve(display, job, range);
    if (job->progress.metric[0] != '\0')
        kiln_text_printf(text, "  %s", job->progress.metric);
    kiln_display_values(display, job);
    end_line(display, start);
}

void kiln_display_area(KilnDisplay *display)
{
    const KilnSweep *sweep = display->sweep;
    const KilnJob *best = kiln_sweep_best(sweep);
    const double now = kiln_clock();
    Range range = { .low = (double)INFINITY, .high = (double)-INFINITY };
    size_t shown[MAX_SHOWN], n = 0;

    append_summary(display, now);
    append_best(display, best);
    append_budget(display, now);
    for (size_t i = 0; i < sweep->jobs.count && n < MAX_SHOWN; i++) {
        if (sweep->jobs.items[i].status != KILN_JOB_RUNNING || sweep->jobs.items[i].queued)
            continue;
        widen(&range, &sweep->jobs.items[i]);
        shown[n++] = i;
    }
    if (best != NULL)
        widen(&range, best);
    for (size_t i = 0; i < n; i++)
        append_running(display, shown[i], &range, now);
    display->drawn = now;
}
