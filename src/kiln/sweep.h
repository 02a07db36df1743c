/* Sweeps: the space that they vary, sweepers, which choose its points, and launchers, which run the
 * jobs. */
#ifndef KILN_SWEEP_H
#define KILN_SWEEP_H

#include "kiln/config.h"

/* The values of one override of a sweep. */
typedef struct KilnAxis {
    const char *key;              /* "lr", "+model.depth", "db@src": the text before = */
    const char *const *overrides; /* whole arguments of single runs: "lr=0.1", "lr=0.01" */
    size_t count;                 /* 1 for an override with one value */
    size_t zipped;                /* axes with the same number, not 0, vary together */
} KilnAxis;

/* All axes of a sweep, in the order of the arguments. */
typedef struct KilnSpace {
    const KilnAxis *axes;
    size_t count;
} KilnSpace;

/* ---- Sweepers: which points of the space become jobs ---------------------------- */

struct KilnSweeperOps {
    /* The number of jobs; SIZE_MAX if it is too large to count. */
    size_t (*count)(const KilnInstance *self, const KilnSpace *space);
    /* The point of job `job` (below count): choice[i] is the index of axis i's value. The same job
     * always has the same point. */
    KilnStatus (*point)(const KilnInstance *self, const KilnSpace *space, size_t job,
                        size_t *choice, KilnError *err);
};

/* ---- Launchers: where and how jobs run ------------------------------------------- */

typedef enum KilnJobStatus {
    KILN_JOB_WAITING,
    KILN_JOB_RUNNING,
    KILN_JOB_OK,
    KILN_JOB_FAILED,     /* it ended with an error, or crashed */
    KILN_JOB_KILLED,     /* from outside; it can be resumed */
    KILN_JOB_TIMEOUT,    /* it ran longer than the launcher allows */
    KILN_JOB_INTERRUPTED /* it stopped on request; it can be resumed */
} KilnJobStatus;

/* How a job ended. */
typedef struct KilnJobEnd {
    KilnJobStatus status;
    char reason[256]; /* "exit status 1", "killed by SIGSEGV", "timeout after 90s"; "" when ok */
} KilnJobEnd;

/* Exit statuses of a job's process: those of `train`. */
enum {
    KILN_JOB_EXIT_OK = 0,
    KILN_JOB_EXIT_FAILED = 1,
    KILN_JOB_EXIT_NUMERIC = 3, /* a loss was not a finite number */
    KILN_JOB_EXIT_IO = 4,
    KILN_JOB_EXIT_NOMEM = 5,
    KILN_JOB_EXIT_SIGNAL = 128 /* plus the number of the signal that stopped it */
};

/* What a launcher calls. Jobs are identified by number. */
typedef struct KilnLaunch {
    void *ctx;
    /* Take the next waiting job; false: none is left. */
    bool (*next)(void *ctx, size_t *ret_job);
    /* Do the whole job, in its own process, which then ends with the returned exit status. Pass
     * what it writes to `report` to reported(). */
    int (*run)(void *ctx, size_t job, int report);
    KilnStatus (*started)(void *ctx, size_t job, int64_t pid, KilnError *err);
    void (*reported)(void *ctx, size_t job, const char *bytes, size_t size);
    KilnStatus (*ended)(void *ctx, size_t job, const KilnJobEnd *end, KilnError *err);
    /* Call it several times a second while jobs run, for the display. */
    void (*tick)(void *ctx);
    /* Not 0: start no more jobs, and stop the running ones with a checkpoint. */
    const volatile int *stop;
} KilnLaunch;

struct KilnLauncherOps {
    /* Jobs that share this machine's processors at a time, at least 1. */
    size_t (*n_jobs)(const KilnInstance *self);
    /* Run jobs until none is left or `stop` is set. No job runs after it returns, even with an
     * error. A failed job is not an error. */
    KilnStatus (*launch)(KilnInstance *self, const KilnLaunch *launch, KilnError *err);
};

/* ---- Options ---------------------------------------------------------------------- */

/* kiln.sweep, without its subdir, which differs per job. */
typedef struct KilnSweepOptions {
    char *dir;
    int64_t max_jobs;
} KilnSweepOptions;

/* kiln.sweeper, without the options of the component that it names. */
typedef struct KilnRankOptions {
    char *_target_; /* the component */
    char *metric;
    int64_t mode; /* KilnMode */
} KilnRankOptions;

/* `kiln`: only its launcher. */
typedef struct KilnOwnOptions {
    KilnInstance *launcher;
} KilnOwnOptions;

/* Tables of these structs, for sections of a KilnComposeRequest. */
KILN_API extern const KilnField kiln_sweep_fields[], kiln_rank_fields[], kiln_own_fields[];

#endif
