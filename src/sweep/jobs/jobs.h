/* The jobs of a sweep: their overrides, status and results. */
#ifndef KILN_SWEEP_JOBS_H
#define KILN_SWEEP_JOBS_H

#include "base/arena.h"
#include "base/text.h"
#include "kiln/sweep.h"

/* The most metrics that jobs are compared by. */
enum { KILN_MAX_OBJECTIVES = 8 };

/* A metric of a finished job, from its summary. NaN: not a finite number. */
typedef struct KilnJobMetric {
    const char *name;
    double last, best;
    KilnMode mode; /* of best; AUTO: the metric declares none and has no best */
} KilnJobMetric;

/* The last report of a running job. */
typedef struct KilnJobProgress {
    int64_t epoch, max_epochs; /* finished epochs; max_epochs <= 0: no limit */
    double done;               /* fraction of the job, 0 to 1; NaN: unknown */
    char metric[96];           /* "val/accuracy 0.93" */
} KilnJobProgress;

typedef struct KilnJob {
    const char *const *overrides; /* NULL-terminated */
    const char *line;             /* the same, joined by spaces */
    const char *dir;              /* below the sweep's folder; NULL: it is not frozen yet */
    KilnJobStatus status;
    const char *reason; /* "" when there is none */
    KilnJobNeeds needs; /* once it is frozen */
    int64_t memory;     /* bytes that its process will take, as it says itself; 0: not known */
    uint64_t data;      /* kiln_shared_data_key of its config, if it was frozen in this process */
    double seconds;     /* in all its processes so far */
    int64_t steps;      /* optimizer steps, as it reported last */
    KilnJobMetric *metrics;
    size_t n_metrics;
    bool claimed;  /* a point of the current space claims it */
    size_t trial;  /* its index in the history, from 1; 0: it has none */
    size_t parent; /* the number, from 1, of the job from whose checkpoint it started; 0: none */
    size_t first_run,
        next_run;              /* numbers, from 1, of jobs that are the same point with other seeds:
                                * the first one (0: this is it), and the next one; 0: none */
    KilnTrialReport **reports; /* by rising steps */
    size_t n_reports, n_recorded, reports_capacity; /* n_recorded: in the journal */
    KilnMode modes[KILN_MAX_OBJECTIVES];            /* of the objectives, as its reports declare */
    const char *stopping;         /* why the sweeper, or a request, stops it; NULL: none does */
    int64_t stopped_step;         /* of the report at which it was stopped last: that decision is
                                   * carried out; 0: none */
    const char *added, *halted;   /* the names of the requests that added it, and that stop it for
                                   * good; NULL: none */
    bool terminating;             /* the launcher ends its process, with a checkpoint */
    double *values;               /* of the objectives, once it is OK or STOPPED; NULL before */
    double started;               /* by kiln_clock, in this process; 0: it was not */
    const char *began, *finished; /* the times of its first start and its last end, as in the
                                   * journal; NULL: none */
    bool queued;          /* RUNNING: a launcher has taken it, and its process has not started */
    KilnJobStatus before; /* while it is queued: its status before */
    const char *queue;    /* the launcher that an earlier process used, where the job still waits
                           * or runs; NULL: none */
    const char *where;    /* "Slurm job 12_3 on node a7"; NULL: here */
    int64_t read;         /* of what it wrote there, the bytes that were read (sweep/remote) */
    KilnJobProgress progress;
    KilnText report;   /* an incomplete line of its process's report */
    const char *error; /* that its process reported; NULL: none */
} KilnJob;

/* Jobs by number. Everything lives in the arena. */
typedef struct KilnJobs {
    KilnArena arena;
    KilnJob *items;
    size_t count, capacity;
    size_t *slots; /* hash table of overrides: number + 1; 0: free */
    size_t n_slots;
} KilnJobs;

/* Add a waiting job with the next number; NULL when memory is out. `overrides` is copied; `dir`
 * NULL: set later. */
KilnJob *kiln_jobs_add(KilnJobs *jobs, const char *const *overrides, size_t n, const char *dir);
/* Claim the job of a point: the first one with these overrides, in this order, that no point has
 * claimed, else a new one without a dir. NULL when memory is out. (`lr=1,1` is two jobs, and a
 * resumed sweep has the same two.) */
KilnJob *kiln_jobs_claim(KilnJobs *jobs, const char *const *overrides, size_t n);
void kiln_jobs_release(KilnJobs *jobs);
/* The number of jobs with that status. */
size_t kiln_jobs_count(const KilnJobs *jobs, KilnJobStatus status);
/* The number of those whose process has not started yet. */
size_t kiln_jobs_queued(const KilnJobs *jobs);
/* The metric of a job, or its mean over an epoch (NAME_epoch); NULL: it has none of that name. */
const KilnJobMetric *kiln_job_metric(const KilnJob *job, const char *name);
/* Make job `number` one more run of job `first`. */
void kiln_job_link_run(KilnJobs *jobs, size_t first, size_t number);
/* Append a report; NULL when memory is out. All KILN_MAX_OBJECTIVES values are copied, as the sweep
 * that is resumed may have more objectives than before. */
KilnTrialReport *kiln_job_add_report(KilnArena *arena, KilnJob *job, int64_t epoch, int64_t step,
                                     const double values[KILN_MAX_OBJECTIVES]);
/* "ok", "failed", ...; static text. */
const char *kiln_job_status_name(KilnJobStatus status);
/* The status of a job in tables: one that is queued waits. */
const char *kiln_job_status_text(const KilnJob *job);
/* False when there is no status of that name. */
bool kiln_job_status_find(const char *name, KilnJobStatus *ret);
/* "min" or "max"; NULL for AUTO; and back, AUTO for anything else. */
const char *kiln_mode_text(KilnMode mode);
KilnMode kiln_mode_of(const char *text);
/* Did it fail, crash or time out? */
bool kiln_job_failed(const KilnJob *job);
/* Split an override: its key without +, and the text after its = ("": there is none). Returns the
 * length of the key. */
size_t kiln_override_split(const char *override, const char **ret_key, const char **ret_value);
/* The value that a job's overrides give to `key`, which has no +; NULL: none. */
const char *kiln_job_value(const KilnJob *job, const char *key);

#endif
