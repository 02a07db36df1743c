/* The jobs of a sweep: what each was asked to do, and how far it came. */
#ifndef KILN_SWEEP_JOBS_H
#define KILN_SWEEP_JOBS_H

#include "base/arena.h"
#include "base/text.h"
#include "kiln/sweep.h"

/* A metric of a job that ended, from its summary. NaN: not a finite number. */
typedef struct KilnJobMetric {
    const char *name;
    double last, best;
    KilnMode mode; /* of best; AUTO: the metric does not say, and has none */
} KilnJobMetric;

/* What a running job told last. */
typedef struct KilnJobProgress {
    int64_t epoch, max_epochs; /* epochs done; max_epochs <= 0: no limit */
    double done;               /* share of the whole job, 0 to 1; NaN: not known */
    char metric[96];           /* "val/accuracy 0.93" */
} KilnJobProgress;

typedef struct KilnJob {
    const char *const *overrides; /* NULL-terminated */
    const char *line;             /* the same, joined by blanks */
    const char *dir;              /* below the sweep's folder */
    KilnJobStatus status;
    const char *reason; /* "" when there is none */
    double seconds;     /* of all its processes that ended */
    KilnJobMetric *metrics;
    size_t n_metrics;
    bool claimed;   /* it is a point of the space as it is now */
    double started; /* by kiln_clock, while it runs */
    KilnJobProgress progress;
    KilnText report;   /* of its process, a line that is not whole yet */
    const char *error; /* that its process told; NULL: none */
} KilnJob;

/* Jobs by number. Everything lives in the arena. */
typedef struct KilnJobs {
    KilnArena arena;
    KilnJob *items;
    size_t count, capacity;
    size_t *places; /* hash table of lines: number + 1, 0: free */
    size_t n_places;
} KilnJobs;

/* Add a job with the next number, waiting; NULL when memory is out. `overrides` is
 * copied; `dir` NULL: to be set. */
KilnJob *kiln_jobs_add(KilnJobs *jobs, const char *const *overrides, size_t n, const char *dir);
/* Let a point be a job: the first with these overrides, in this order, that no point
 * has claimed yet, else a new one, whose dir is to be set. NULL when memory is out.
 * (`lr=1,1` is two jobs, and when the sweep goes on they are the same two.) */
KilnJob *kiln_jobs_claim(KilnJobs *jobs, const char *const *overrides, size_t n);
void kiln_jobs_release(KilnJobs *jobs);
/* How many have that status. */
size_t kiln_jobs_count(const KilnJobs *jobs, KilnJobStatus status);
/* The metric of a job, or its mean of the epoch (NAME_epoch); NULL when it has none of that name.
 */
const KilnJobMetric *kiln_job_metric(const KilnJob *job, const char *name);
/* "ok", "failed", ...; static text. */
const char *kiln_job_status_name(KilnJobStatus status);
/* False when there is no status of that name. */
bool kiln_job_status_find(const char *name, KilnJobStatus *ret);
/* "min" or "max"; NULL for AUTO; and back, AUTO for anything else. */
const char *kiln_mode_text(KilnMode mode);
KilnMode kiln_mode_of(const char *text);
/* Did it end otherwise than well or by being asked to? */
bool kiln_job_failed(const KilnJob *job);
/* The key of an override without +, and *ret_value the text behind its = ("" when
 * there is none); the length of the key. */
size_t kiln_override_split(const char *override, const char **ret_key, const char **ret_value);

#endif
