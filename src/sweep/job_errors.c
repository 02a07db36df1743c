/* Collecting messages of many jobs. */
#include "sweep/job_errors.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "config/tree/node.h"

enum { MOST_KEPT = 40 };

static KilnJobError *find(KilnJobErrors *job_errors, const char *text)
{
    for (size_t i = 0; i < job_errors->count; i++)
        if (strcmp(job_errors->items[i].text, text) == 0)
            return &job_errors->items[i];
    return NULL;
}

static KilnJobError *add(KilnJobErrors *job_errors, const char *text, bool warning)
{
    if (job_errors->count == job_errors->capacity) {
        size_t capacity = job_errors->capacity > 0 ? 2 * job_errors->capacity : 8;
        KilnJobError *more = realloc(job_errors->items, capacity * sizeof(*more));

        if (more == NULL)
            return NULL;
        job_errors->items = more;
        job_errors->capacity = capacity;
    }
    KilnJobError *finding = &job_errors->items[job_errors->count];
    *finding = (KilnJobError) { .text = kiln_strdup(text), .warning = warning };
    if (finding->text == NULL)
        return NULL;
    job_errors->count++;
    return finding;
}

static void tell(KilnJobErrors *job_errors, const char *text, bool warning, size_t job)
{
    KilnJobError *finding = find(job_errors, text);

    if (finding == NULL && job_errors->count == MOST_KEPT) {
        job_errors->left_out++;
        return;
    }
    if (finding == NULL)
        finding = add(job_errors, text, warning);
    if (finding == NULL)
        return; /* memory is out: the status tells that something is wrong */
    if (finding->count < KILN_FINDING_JOBS)
        finding->jobs[finding->count] = job;
    finding->count++;
}

void kiln_job_errors_add(KilnJobErrors *job_errors, const KilnErrors *errors, KilnStatus status,
                         size_t job)
{
    if (job_errors->status >= 0)
        job_errors->status = status;
    for (size_t i = 0; i < kiln_errors_count(errors); i++)
        tell(job_errors, kiln_errors_text(errors, i), kiln_errors_is_warning(errors, i), job);
}

void kiln_job_errors_print(KilnJobErrors *job_errors, const KilnError *err, size_t job)
{
    if (job_errors->status >= 0)
        job_errors->status = err->status;
    tell(job_errors, err->text, false, job);
}

static void append_jobs(KilnText *text, const KilnJobError *finding)
{
    size_t shown = finding->count < KILN_FINDING_JOBS ? finding->count : KILN_FINDING_JOBS;

    kiln_text_append(text, finding->count == 1 ? "\n  in job" : "\n  in jobs");
    for (size_t i = 0; i < shown; i++)
        kiln_text_printf(text, "%s #%zu", i > 0 ? "," : "", finding->jobs[i]);
    if (shown < finding->count)
        kiln_text_printf(text, " and %zu more", finding->count - shown);
}

static void give(const KilnJobErrors *job_errors, const KilnJobError *finding, size_t n_jobs,
                 KilnErrors *errors)
{
    KilnText text = { 0 };
    KilnError err = { 0 };

    kiln_text_append(&text, finding->text);
    if (finding->count < n_jobs)
        append_jobs(&text, finding);
    kiln_error_set(&err, job_errors->status < 0 ? job_errors->status : KILN_E_TYPE, "%s",
                   text.failed ? finding->text : text.data);
    if (finding->warning)
        kiln_errors_warn(errors, &err);
    else
        kiln_errors_add(errors, &err);
    kiln_text_release(&text);
}

KilnStatus kiln_job_errors_give(const KilnJobErrors *job_errors, size_t n_jobs, KilnErrors *errors)
{
    KilnError err = { 0 };

    for (size_t i = 0; i < job_errors->count; i++)
        give(job_errors, &job_errors->items[i], n_jobs, errors);
    if (job_errors->left_out > 0) {
        kiln_error_set(&err, job_errors->status, "and %zu more such messages",
                       job_errors->left_out);
        kiln_errors_add(errors, &err);
    }
    return job_errors->status;
}

void kiln_job_errors_release(KilnJobErrors *job_errors)
{
    for (size_t i = 0; i < job_errors->count; i++)
        free(job_errors->items[i].text);
    free(job_errors->items);
    *job_errors = (KilnJobErrors) { .items = NULL };
}
