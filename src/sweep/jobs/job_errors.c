/* Collects messages of many jobs. */
#include "sweep/jobs/job_errors.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "config/provenance/error_list.h"
#include "config/tree/node.h"
#include "kiln/array.h"

enum { MAX_MESSAGES = 40 };

static KilnJobError *find(KilnJobErrors *job_errors, const char *text)
{
    for (size_t i = 0; i < job_errors->count; i++)
        if (strcmp(job_errors->items[i].text, text) == 0)
            return &job_errors->items[i];
    return NULL;
}

static KilnJobError *add(KilnJobErrors *job_errors, const char *text, bool warning)
{
    if (!KILN_RESERVE(job_errors->items, job_errors->capacity, job_errors->count + 1))
        return NULL;
    KilnJobError *error = &job_errors->items[job_errors->count];
    *error = (KilnJobError) { .text = kiln_strdup(text), .warning = warning };
    if (error->text == NULL)
        return NULL;
    job_errors->count++;
    return error;
}

static void add_text(KilnJobErrors *job_errors, const char *text, bool warning, size_t job)
{
    KilnJobError *error = find(job_errors, text);

    if (error == NULL && job_errors->count == MAX_MESSAGES) {
        job_errors->left_out++;
        return;
    }
    if (error == NULL)
        error = add(job_errors, text, warning);
    if (error == NULL)
        return; /* memory is out; the status has the error */
    if (error->count < KILN_JOB_ERROR_JOBS)
        error->jobs[error->count] = job;
    error->count++;
}

void kiln_job_errors_add(KilnJobErrors *job_errors, const KilnErrors *errors, KilnStatus status,
                         size_t job)
{
    if (job_errors->status >= 0)
        job_errors->status = status;
    for (size_t i = 0; i < kiln_errors_count(errors); i++)
        add_text(job_errors, kiln_errors_text(errors, i), kiln_errors_is_warning(errors, i), job);
}

void kiln_job_errors_add_one(KilnJobErrors *job_errors, const KilnError *err, size_t job)
{
    if (job_errors->status >= 0)
        job_errors->status = err->status;
    add_text(job_errors, err->text, false, job);
}

static void append_jobs(KilnText *text, const KilnJobError *error)
{
    size_t shown = error->count < KILN_JOB_ERROR_JOBS ? error->count : KILN_JOB_ERROR_JOBS;

    kiln_text_append(text, error->count == 1 ? "\n  in job" : "\n  in jobs");
    for (size_t i = 0; i < shown; i++)
        kiln_text_printf(text, "%s #%zu", i > 0 ? "," : "", error->jobs[i]);
    if (shown < error->count)
        kiln_text_printf(text, " and %zu more", error->count - shown);
}

static void report(const KilnJobErrors *job_errors, const KilnJobError *error, size_t n_jobs,
                   KilnErrors *errors)
{
    KilnText text = { 0 };
    KilnError err = { 0 };

    kiln_text_append(&text, error->text);
    if (error->count < n_jobs)
        append_jobs(&text, error);
    kiln_error_set(&err, job_errors->status < 0 ? job_errors->status : KILN_E_TYPE, "%s",
                   text.failed ? error->text : text.data);
    if (error->warning)
        kiln_errors_warn(errors, &err);
    else
        kiln_errors_add(errors, &err);
    kiln_text_release(&text);
}

KilnStatus kiln_job_errors_report(const KilnJobErrors *job_errors, size_t n_jobs,
                                  KilnErrors *errors)
{
    KilnError err = { 0 };

    for (size_t i = 0; i < job_errors->count; i++)
        report(job_errors, &job_errors->items[i], n_jobs, errors);
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
