/* Writes reports in a job's process, and reads them in the launcher's. */
#include "sweep/jobs/job_report.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "sweep/records.h"
#include "sweep/remote/mailbox.h"

enum { LONGEST_ERROR = 1000 };

/* ---- The job's side ------------------------------------------------------------------------ */

/* Write the report at once: a pipe or socket accepts up to PIPE_BUF bytes completely or not at all.
 * When it is full the report is lost, as training does not wait for a display; one that must
 * arrive (`wait`) waits for room. */
static bool send_report(const KilnReporter *reporter, json_t *report, bool wait)
{
    char *text = kiln_json_dump(report, JSON_COMPACT);
    size_t length = text != NULL ? strlen(text) : 0;
    ssize_t n = -1;

    json_decref(report);
    if (length > 0 && length < PIPE_BUF) {
        text[length] = '\n';
        while ((n = write(reporter->fd, text, length + 1)) < 0 && wait &&
               (errno == EAGAIN || errno == EINTR))
            (void)poll(&(struct pollfd) { .fd = reporter->fd, .events = POLLOUT }, 1, -1);
    }
    free(text);
    return n > 0;
}

/* Is the launcher's answer to stop? Continue when it has ended. */
static bool read_reply(const KilnReporter *reporter)
{
    char reply[sizeof(KILN_REPLY_CONTINUE)] = "";
    ssize_t n;

    while ((n = read(reporter->fd, reply, sizeof(reply) - 1)) < 0 &&
           (errno == EAGAIN || errno == EINTR))
        (void)poll(&(struct pollfd) { .fd = reporter->fd, .events = POLLIN }, 1, -1);
    return n > 0 && strcmp(reply, KILN_REPLY_STOP) == 0;
}

/* Is `name` the metric, or its value over an epoch? */
static bool is_metric(const char *name, const char *metric)
{
    size_t n = strlen(metric);

    return strncmp(name, metric, n) == 0 && (name[n] == '\0' || strcmp(name + n, "_epoch") == 0);
}

/* What the run has of a metric; NULL: nothing. */
static const KilnMetric *find_metric(const KilnRunProgress *progress, const char *name)
{
    const KilnMetric *metric = NULL;

    for (size_t i = 0; i < progress->n_metrics; i++)
        if (is_metric(progress->metrics[i].name, name))
            metric = &progress->metrics[i];
    return metric;
}

static KilnMode mode_of(const KilnMetric *metric)
{
    const bool higher = (metric->flags & KILN_LOG_HIGHER_IS_BETTER) != 0;
    const bool lower = (metric->flags & KILN_LOG_LOWER_IS_BETTER) != 0;

    return higher == lower ? KILN_MODE_AUTO : higher ? KILN_MODE_MAX : KILN_MODE_MIN;
}

static void put_values(json_t *report, const KilnReporter *reporter,
                       const KilnRunProgress *progress)
{
    double values[KILN_MAX_OBJECTIVES];
    KilnMode modes[KILN_MAX_OBJECTIVES];
    bool any = false;

    for (size_t i = 0; i <= reporter->n_more; i++) {
        const KilnMetric *metric = find_metric(progress, i == 0 ? reporter->metric
                                                                : reporter->more[i - 1].metric);

        values[i] = metric != NULL ? metric->value : (double)NAN;
        modes[i] = metric != NULL ? mode_of(metric) : KILN_MODE_AUTO;
        any |= metric != NULL;
    }
    if (!any)
        return;
    json_object_set_new(report, "metric", json_string(reporter->metric));
    kiln_values_put(report, values, modes, reporter->n_more + 1);
}

bool kiln_report_progress(const KilnReporter *reporter, const KilnRunProgress *progress,
                          double done)
{
    /* A job that stops reports its last values again. */
    const bool stops = reporter->mailbox != NULL && reporter->mailbox->stopped;
    const bool asks = reporter->asks && !stops;

    if (progress->memory > 0) {
        if (reporter->mailbox == NULL) /* other machines need not know */
            (void)send_report(reporter, json_pack("{s:I}", "memory", (json_int_t)progress->memory),
                              true);
        return false;
    }
    json_t *report = json_pack("{s:I, s:I, s:I, s:b}", "epoch", (json_int_t)progress->epoch,
                               "max_epochs", (json_int_t)progress->max_epochs, "step",
                               (json_int_t)progress->step, "asks", asks);

    const int64_t number = reporter->mailbox != NULL ? kiln_mailbox_number(reporter->mailbox) : 0;

    if (reporter->mailbox != NULL)
        json_object_set_new(report, "number", json_integer(number));
    if (isfinite(done))
        json_object_set_new(report, "done", json_real(done));
    put_values(report, reporter, progress);
    if (!send_report(reporter, report, asks) || !asks)
        return false;
    return reporter->mailbox != NULL ? kiln_mailbox_wait(reporter->mailbox, number)
                                     : read_reply(reporter);
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
    (void)send_report(reporter, json_pack("{s:s%}", "error", text, cut(text, LONGEST_ERROR)),
                      false);
}

/* ---- The launcher's side --------------------------------------------------------------------- */

/* A resumed job repeats what it reported after its last checkpoint. */
static void add_values(KilnArena *arena, KilnJob *job, const json_t *report)
{
    const int64_t step = json_integer_value(json_object_get(report, "step"));
    const bool repeats = job->n_reports > 0 && job->reports[job->n_reports - 1]->step >= step;
    double values[KILN_MAX_OBJECTIVES];

    kiln_values_read(report, values, job->modes);
    if (json_object_get(report, "metric") != NULL && !repeats)
        (void)!kiln_job_add_report(arena, job, job->progress.epoch, step, values);
}

static void read_progress(KilnArena *arena, KilnJob *job, const json_t *report)
{
    const char *metric = json_string_value(json_object_get(report, "metric"));
    const json_t *done = json_object_get(report, "done"), *value = json_object_get(report, "value");

    job->progress = (KilnJobProgress) {
        .epoch = json_integer_value(json_object_get(report, "epoch")),
        .max_epochs = json_integer_value(json_object_get(report, "max_epochs")),
        .done = json_is_number(done) ? json_number_value(done) : (double)NAN,
    };
    if (metric != NULL && json_is_number(value))
        snprintf(job->progress.metric, sizeof(job->progress.metric), "%s %.4g", metric,
                 json_number_value(value));
    job->steps = json_integer_value(json_object_get(report, "step"));
    add_values(arena, job, report);
}

/* Does the job wait for a reply to the line? */
static bool read_line(KilnArena *arena, KilnJob *job, const char *line)
{
    json_t *report = json_loads(line, 0, NULL);
    const char *error = json_string_value(json_object_get(report, "error"));
    const bool asks = json_is_true(json_object_get(report, "asks"));

    if (error != NULL)
        job->error = kiln_arena_strdup(arena, error);
    if (json_is_integer(json_object_get(report, "memory")))
        job->memory = json_integer_value(json_object_get(report, "memory"));
    if (json_is_integer(json_object_get(report, "epoch")))
        read_progress(arena, job, report);
    json_decref(report);
    return asks;
}

bool kiln_report_read(KilnArena *arena, KilnJob *job, const char *bytes, size_t size)
{
    char *line, *end;
    bool asks = false;

    kiln_text_append_n(&job->report, bytes, size);
    if (job->report.failed)
        return false;
    for (line = job->report.data; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        asks |= read_line(arena, job, line);
    }
    job->report.length = strlen(line);
    memmove(job->report.data, line, job->report.length + 1);
    return asks;
}
