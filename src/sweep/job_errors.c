/* Collecting messages of many jobs. */
#include "sweep/job_errors.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "config/tree/node.h"

enum { MOST_KEPT = 40 };

static KilnFinding *find(KilnFindings *findings, const char *text)
{
    for (size_t i = 0; i < findings->count; i++)
        if (strcmp(findings->items[i].text, text) == 0)
            return &findings->items[i];
    return NULL;
}

static KilnFinding *add(KilnFindings *findings, const char *text, bool warning)
{
    if (findings->count == findings->capacity) {
        size_t capacity = findings->capacity > 0 ? 2 * findings->capacity : 8;
        KilnFinding *more = realloc(findings->items, capacity * sizeof(*more));

        if (more == NULL)
            return NULL;
        findings->items = more;
        findings->capacity = capacity;
    }
    KilnFinding *finding = &findings->items[findings->count];
    *finding = (KilnFinding) { .text = kiln_strdup(text), .warning = warning };
    if (finding->text == NULL)
        return NULL;
    findings->count++;
    return finding;
}

static void tell(KilnFindings *findings, const char *text, bool warning, size_t job)
{
    KilnFinding *finding = find(findings, text);

    if (finding == NULL && findings->count == MOST_KEPT) {
        findings->left_out++;
        return;
    }
    if (finding == NULL)
        finding = add(findings, text, warning);
    if (finding == NULL)
        return; /* memory is out: the status tells that something is wrong */
    if (finding->count < KILN_FINDING_JOBS)
        finding->jobs[finding->count] = job;
    finding->count++;
}

void kiln_findings_add(KilnFindings *findings, const KilnErrors *errors, KilnStatus status,
                       size_t job)
{
    if (findings->status >= 0)
        findings->status = status;
    for (size_t i = 0; i < kiln_errors_count(errors); i++)
        tell(findings, kiln_errors_text(errors, i), kiln_errors_is_warning(errors, i), job);
}

void kiln_findings_tell(KilnFindings *findings, const KilnError *err, size_t job)
{
    if (findings->status >= 0)
        findings->status = err->status;
    tell(findings, err->text, false, job);
}

static void append_jobs(KilnText *text, const KilnFinding *finding)
{
    size_t shown = finding->count < KILN_FINDING_JOBS ? finding->count : KILN_FINDING_JOBS;

    kiln_text_append(text, finding->count == 1 ? "\n  in job" : "\n  in jobs");
    for (size_t i = 0; i < shown; i++)
        kiln_text_printf(text, "%s #%zu", i > 0 ? "," : "", finding->jobs[i]);
    if (shown < finding->count)
        kiln_text_printf(text, " and %zu more", finding->count - shown);
}

static void give(const KilnFindings *findings, const KilnFinding *finding, size_t n_jobs,
                 KilnErrors *errors)
{
    KilnText text = { 0 };
    KilnError err = { 0 };

    kiln_text_append(&text, finding->text);
    if (finding->count < n_jobs)
        append_jobs(&text, finding);
    kiln_error_set(&err, findings->status < 0 ? findings->status : KILN_E_TYPE, "%s",
                   text.failed ? finding->text : text.data);
    if (finding->warning)
        kiln_errors_warn(errors, &err);
    else
        kiln_errors_add(errors, &err);
    kiln_text_release(&text);
}

KilnStatus kiln_findings_give(const KilnFindings *findings, size_t n_jobs, KilnErrors *errors)
{
    KilnError err = { 0 };

    for (size_t i = 0; i < findings->count; i++)
        give(findings, &findings->items[i], n_jobs, errors);
    if (findings->left_out > 0) {
        kiln_error_set(&err, findings->status, "and %zu more such messages", findings->left_out);
        kiln_errors_add(errors, &err);
    }
    return findings->status;
}

void kiln_findings_release(KilnFindings *findings)
{
    for (size_t i = 0; i < findings->count; i++)
        free(findings->items[i].text);
    free(findings->items);
    *findings = (KilnFindings) { .items = NULL };
}
