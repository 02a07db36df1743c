/* The table of a sweep's jobs, with a hash index of their overrides. */
#include "sweep/jobs/jobs.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"

static const char *const status_names[] = {
    [KILN_JOB_WAITING] = "waiting",
    [KILN_JOB_RUNNING] = "running",
    [KILN_JOB_OK] = "ok",
    [KILN_JOB_FAILED] = "failed",
    [KILN_JOB_KILLED] = "killed",
    [KILN_JOB_TIMEOUT] = "timeout",
    [KILN_JOB_INTERRUPTED] = "interrupted",
    [KILN_JOB_STOPPED] = "stopped",
    [KILN_JOB_FORBIDDEN] = "forbidden",
};

const char *kiln_job_status_name(KilnJobStatus status)
{
    return status_names[status];
}

const char *kiln_job_status_text(const KilnJob *job)
{
    return kiln_job_status_name(job->queued ? KILN_JOB_WAITING : job->status);
}

bool kiln_job_status_find(const char *name, KilnJobStatus *ret)
{
    for (size_t i = 0; name != NULL && i < KILN_COUNT(status_names); i++) {
        if (strcmp(status_names[i], name) == 0) {
            *ret = (KilnJobStatus)i;
            return true;
        }
    }
    return false;
}

bool kiln_job_failed(const KilnJob *job)
{
    return job->status == KILN_JOB_FAILED || job->status == KILN_JOB_KILLED ||
           job->status == KILN_JOB_TIMEOUT;
}

KilnTrialReport *kiln_job_add_report(KilnArena *arena, KilnJob *job, int64_t epoch, int64_t step,
                                     const double values[KILN_MAX_OBJECTIVES])
{
    KilnTrialReport *report = kiln_arena_alloc(arena, sizeof(*report));
    double *copy = kiln_arena_alloc(arena, KILN_MAX_OBJECTIVES * sizeof(*copy));

    if (report == NULL || copy == NULL ||
        !KILN_ARENA_RESERVE(arena, job->reports, job->reports_capacity, job->n_reports + 1))
        return NULL;
    memcpy(copy, values, KILN_MAX_OBJECTIVES * sizeof(*copy));
    *report = (KilnTrialReport) { .epoch = epoch, .step = step, .values = copy };
    return job->reports[job->n_reports++] = report;
}

size_t kiln_override_split(const char *override, const char **ret_key, const char **ret_value)
{
    const char *equals;

    while (*override == '+')
        override++;
    equals = strchr(override, '=');
    *ret_key = override;
    *ret_value = equals != NULL ? equals + 1 : "";
    return equals != NULL ? (size_t)(equals - override) : strlen(override);
}

const char *kiln_job_value(const KilnJob *job, const char *key)
{
    const char *value = NULL;

    for (const char *const *override = job->overrides; *override != NULL; override++) {
        const char *its_key, *its_value;
        size_t n = kiln_override_split(*override, &its_key, &its_value);

        if (strncmp(its_key, key, n) == 0 && key[n] == '\0')
            value = its_value;
    }
    return value;
}

/* ---- Index by overrides ---------------------------------------------------------------- */

static const char *join(KilnArena *arena, const char *const *overrides, size_t n)
{
    KilnText text = { 0 };
    const char *line;

    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            kiln_text_char(&text, ' ');
        kiln_text_append(&text, overrides[i]);
    }
    line = text.failed ? NULL
                       : kiln_arena_strndup(arena, text.data != NULL ? text.data : "", text.length);
    kiln_text_release(&text);
    return line;
}

/* FNV-1a over the overrides with their NULs. */
static size_t hash(const char *const *overrides, size_t n)
{
    uint64_t h = 14695981039346656037u;

    for (size_t i = 0; i < n; i++)
        for (const char *p = overrides[i];; p++) {
            h = (h ^ (unsigned char)*p) * 1099511628211u;
            if (*p == '\0')
                break;
        }
    return (size_t)(h ^ h >> 32);
}

static size_t length(const char *const *overrides)
{
    size_t n = 0;

    while (overrides[n] != NULL)
        n++;
    return n;
}

static bool same(const KilnJob *job, const char *const *overrides, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (job->overrides[i] == NULL || strcmp(job->overrides[i], overrides[i]) != 0)
            return false;
    return job->overrides[n] == NULL;
}

static void put_slot(KilnJobs *jobs, size_t number)
{
    const KilnJob *job = &jobs->items[number];
    size_t at = hash(job->overrides, length(job->overrides)) % jobs->n_slots;

    while (jobs->slots[at] != 0)
        at = (at + 1) % jobs->n_slots;
    jobs->slots[at] = number + 1;
}

static KilnJob *find_unclaimed(const KilnJobs *jobs, const char *const *overrides, size_t n)
{
    size_t at = jobs->n_slots > 0 ? hash(overrides, n) % jobs->n_slots : 0;

    for (; jobs->n_slots > 0 && jobs->slots[at] != 0; at = (at + 1) % jobs->n_slots) {
        KilnJob *job = &jobs->items[jobs->slots[at] - 1];

        if (!job->claimed && same(job, overrides, n))
            return job;
    }
    return NULL;
}

/* ---- Adding ------------------------------------------------------------------------------ */

static bool grow(KilnJobs *jobs)
{
    size_t capacity = jobs->capacity > 0 ? 2 * jobs->capacity : 64;
    KilnJob *items = realloc(jobs->items, capacity * sizeof(*items));
    size_t *slots = calloc(2 * capacity, sizeof(*slots));

    if (items != NULL)
        jobs->items = items;
    if (items == NULL || slots == NULL) {
        free(slots);
        return false;
    }
    free(jobs->slots);
    jobs->slots = slots;
    jobs->n_slots = 2 * capacity;
    jobs->capacity = capacity;
    for (size_t i = 0; i < jobs->count; i++)
        put_slot(jobs, i);
    return true;
}

KilnJob *kiln_jobs_add(KilnJobs *jobs, const char *const *overrides, size_t n, const char *dir)
{
    const char **copy = kiln_arena_alloc(&jobs->arena, (n + 1) * sizeof(*copy));
    const char *line = join(&jobs->arena, overrides, n);
    bool good = copy != NULL && line != NULL;

    if (jobs->count == jobs->capacity && !grow(jobs))
        return NULL;
    for (size_t i = 0; good && i < n; i++)
        good = (copy[i] = kiln_arena_strdup(&jobs->arena, overrides[i])) != NULL;
    if (good && dir != NULL)
        good = (dir = kiln_arena_strdup(&jobs->arena, dir)) != NULL;
    if (!good)
        return NULL;
    KilnJob *job = &jobs->items[jobs->count];
    *job = (KilnJob) { .overrides = copy, .line = line, .dir = dir, .reason = "" };
    put_slot(jobs, jobs->count++);
    return job;
}

KilnJob *kiln_jobs_claim(KilnJobs *jobs, const char *const *overrides, size_t n)
{
    KilnJob *job = find_unclaimed(jobs, overrides, n);

    if (job == NULL)
        job = kiln_jobs_add(jobs, overrides, n, NULL);
    if (job != NULL)
        job->claimed = true;
    return job;
}

void kiln_jobs_release(KilnJobs *jobs)
{
    for (size_t i = 0; i < jobs->count; i++)
        kiln_text_release(&jobs->items[i].report);
    kiln_arena_release(&jobs->arena);
    free(jobs->items);
    free(jobs->slots);
    *jobs = (KilnJobs) { .items = NULL };
}

/* ---- Queries ----------------------------------------------------------------------------- */

size_t kiln_jobs_count(const KilnJobs *jobs, KilnJobStatus status)
{
    size_t n = 0;

    for (size_t i = 0; i < jobs->count; i++)
        n += jobs->items[i].status == status;
    return n;
}

size_t kiln_jobs_queued(const KilnJobs *jobs)
{
    size_t n = 0;

    for (size_t i = 0; i < jobs->count; i++)
        n += jobs->items[i].queued;
    return n;
}

const char *kiln_mode_text(KilnMode mode)
{
    return mode != KILN_MODE_AUTO ? kiln_modes[mode].name : NULL;
}

KilnMode kiln_mode_of(const char *text)
{
    if (text == NULL || (strcmp(text, "min") != 0 && strcmp(text, "max") != 0))
        return KILN_MODE_AUTO;
    return strcmp(text, "max") == 0 ? KILN_MODE_MAX : KILN_MODE_MIN;
}

const KilnJobMetric *kiln_job_metric(const KilnJob *job, const char *name)
{
    const size_t length = strlen(name);
    const KilnJobMetric *mean = NULL;

    for (size_t i = 0; i < job->n_metrics; i++) {
        const char *full = job->metrics[i].name;

        if (strcmp(full, name) == 0)
            return &job->metrics[i];
        if (strncmp(full, name, length) == 0 && strcmp(full + length, "_epoch") == 0)
            mean = &job->metrics[i];
    }
    return mean;
}
