/* Writes reports in a job's process, and reads them in the launcher's. */
#include "sweep/job_report.h"
#include "base/json.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST_ERROR = 1000 };

/* ---- The job's side ------------------------------------------------------------------------ */

/* Write the report at once: a pipe accepts up to PIPE_BUF bytes completely or not at all. When the
 * pipe is full the report is lost: training does not wait for a display. */
static void send(const KilnReporter *reporter, json_t *report)
{
    char *text = kiln_json_dump(report, JSON_COMPACT);
    size_t length = text != NULL ? strlen(text) : 0;

    json_decref(report);
    if (length > 0 && length < PIPE_BUF) {
        text[length] = '\n';
        (void)!write(reporter->fd, text, length + 1);
    }
    free(text);
}

/* Is `name` the metric, or its value over an epoch? */
static bool is_metric(const char *name, const char *metric)
{
    size_t n = strlen(metric);

    return strncmp(name, metric, n) == 0 && (name[n] == '\0' || strcmp(name + n, "_epoch") == 0);
}

void kiln_report_progress(const KilnReporter *reporter, int64_t epoch, int64_t max_epochs,
                          double done, const KilnMetric *metrics, size_t n_metrics)
{
    char text[sizeof(((KilnJobProgress *)0)->metric)] = "";
    json_t *report = json_pack("{s:I, s:I}", "epoch", (json_int_t)epoch, "max_epochs",
                               (json_int_t)max_epochs);

    for (size_t i = 0; i < n_metrics; i++)
        if (is_metric(metrics[i].name, reporter->metric))
            snprintf(text, sizeof(text), "%s %.4g", reporter->metric, metrics[i].value);
    if (isfinite(done))
        json_object_set_new(report, "done", json_real(done));
    json_object_set_new(report, "metric", json_string(text));
    send(reporter, report);
}

/* The length of the text, at most `most` bytes, without half a character at the end. */
static size_t cut(const char *text, size_t most)
{
    size_t n = strlen(text);

    if (n <= most)
        return n;
    for (n = most; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80;)
        n--;
    return n;
}

void kiln_report_error(const KilnReporter *reporter, const char *text)
{
    send(reporter, json_pack("{s:s%}", "error", text, cut(text, LONGEST_ERROR)));
}

/* ---- The launcher's side --------------------------------------------------------------------- */

static void read_line(KilnArena *arena, KilnJob *job, const char *line)
{
    json_t *report = json_loads(line, 0, NULL);
    const char *error = json_string_value(json_object_get(report, "error"));
    const char *metric = json_string_value(json_object_get(report, "metric"));
    const json_t *done = json_object_get(report, "done");

    if (error != NULL)
        job->error = kiln_arena_strdup(arena, error);
    if (metric != NULL) {
        job->progress = (KilnJobProgress) {
            .epoch = json_integer_value(json_object_get(report, "epoch")),
            .max_epochs = json_integer_value(json_object_get(report, "max_epochs")),
            .done = json_is_number(done) ? json_number_value(done) : (double)NAN,
        };
        snprintf(job->progress.metric, sizeof(job->progress.metric), "%s", metric);
    }
    json_decref(report);
}

void kiln_report_read(KilnArena *arena, KilnJob *job, const char *bytes, size_t size)
{
    char *line, *end;

    kiln_text_append_n(&job->report, bytes, size);
    if (job->report.failed)
        return;
    for (line = job->report.data; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        read_line(arena, job, line);
    }
    job->report.length = strlen(line);
    memmove(job->report.data, line, job->report.length + 1);
}
