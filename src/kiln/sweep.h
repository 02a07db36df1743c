/* Sweeps: the space that they vary, sweepers, which choose its points, and launchers, which run the
 * jobs. */
#ifndef KILN_SWEEP_H
#define KILN_SWEEP_H

#include "kiln/component.h"
#include "kiln/tools/text.h"

/* ---- The search space -------------------------------------------------------------- */

/* The values of an axis. Bits: KilnSweeperOps.axes has several. */
typedef enum KilnAxisKind {
    KILN_AXIS_CHOICE = 1 << 0, /* in no order: a,b choice() glob(); or the only one */
    KILN_AXIS_RANGE = 1 << 1,  /* evenly spaced numbers: range() */
    KILN_AXIS_FLOAT = 1 << 2,  /* interval() */
    KILN_AXIS_INT = 1 << 3     /* int(interval()) */
} KilnAxisKind;

/* A parameter of the search space: the values of one override. */
typedef struct KilnAxis {
    const char *key; /* "lr", "+model.depth", "db@src": the text before = */
    KilnAxisKind kind;
    const char *const *overrides; /* CHOICE, RANGE: whole arguments of single runs, "lr=0.1" */
    size_t count;                 /* of `overrides`; 1 for an override with one value */
    double low, high;        /* RANGE: the first and the last value. FLOAT, INT: the smallest and
                              * the largest, both included */
    bool log;                /* FLOAT, INT: tag(log,...), a logarithmic scale; low is above 0 */
    const char *const *tags; /* tag(TAG,...); NULL-terminated; NULL: none */
    size_t leader; /* the first axis that varies together with this one, by zip(); the index of the
                    * axis itself if none does */
    /* when(): the axis has values only for some values of another one. */
    const bool *active_for; /* by value of the parent: is this axis active there? NULL: always */
    size_t parent;          /* an earlier axis, CHOICE or RANGE, and no follower of a leader */
    double step; /* FLOAT, INT: values are `low` plus multiples of it, and so is `high`; 0: all */
    const double *weights; /* CHOICE: the shares of its values, their sum is 1; NULL: equal ones */
} KilnAxis;

/* All axes of a sweep, in the order of the arguments, except that parents come first. */
typedef struct KilnSpace {
    const KilnAxis *const *axes;
    size_t count;
} KilnSpace;

/* The value of an axis at a point of the space. */
typedef union KilnAxisValue {
    size_t index;  /* CHOICE, RANGE: of the override */
    double number; /* FLOAT, INT */
} KilnAxisValue;

/* The value at `u` of [0, 1) on the axis: all values, or on a logarithmic scale all magnitudes,
 * have equal shares of [0, 1), unless they have weights. An axis without values has index 0. */
KILN_API KilnAxisValue kiln_axis_value(const KilnAxis *axis, double u);

/* Does axis number `axis` have a value at the point? It depends on the values of earlier axes. A
 * job has no override of an inactive axis, and the value of the axis at that point is ignored. */
KILN_API bool kiln_axis_is_active(const KilnSpace *space, size_t axis, const KilnAxisValue *point);

/* ---- Sweepers: which points of the space become jobs -------------------------------- */

typedef enum KilnJobStatus {
    KILN_JOB_WAITING,
    KILN_JOB_RUNNING,
    KILN_JOB_OK,
    KILN_JOB_FAILED,      /* it ended with an error, or crashed */
    KILN_JOB_KILLED,      /* from outside; it can be resumed */
    KILN_JOB_TIMEOUT,     /* it ran longer than the launcher allows */
    KILN_JOB_INTERRUPTED, /* it stopped on request; it can be resumed */
    KILN_JOB_STOPPED,     /* by the sweeper, with a checkpoint; the sweeper may resume it */
    KILN_JOB_FORBIDDEN    /* it never runs: kiln.sweeper.forbid */
} KilnJobStatus;

/* What jobs are compared by: kiln.sweeper.metric, or one of kiln.sweeper.metrics. */
typedef struct KilnObjective {
    const char *metric;
    KilnMode mode; /* AUTO: not known before the first report */
} KilnObjective;

/* Values that a trial reported after an epoch. */
typedef struct KilnTrialReport {
    int64_t epoch, step;  /* finished epochs and optimizer steps */
    const double *values; /* of the objectives; NaN: none */
} KilnTrialReport;

#define KILN_NO_TRIAL SIZE_MAX

/* A job as a sweeper sees it. */
typedef struct KilnTrial {
    size_t job;                 /* its number */
    const KilnAxisValue *point; /* by axis */
    KilnJobStatus status;       /* of one that a request has stopped OK, without reports FAILED */
    const KilnTrialReport *const *reports; /* by rising steps; only where the sweeper has no
                                            * count() */
    size_t n_reports;
    const double *values; /* of the objectives, once it is OK (the best) or STOPPED (the last); NULL
                           * before; NaN: none */
    size_t parent;        /* the trial from whose checkpoint it started; KILN_NO_TRIAL */
} KilnTrial;

/* What a sweeper knows. Borrowed for a call. */
typedef struct KilnHistory {
    const KilnSpace *space;
    const KilnObjective *const *objectives;
    size_t n_objectives;
    const KilnTrial *const *trials; /* in the order in which they were asked for */
    size_t count;
    bool complete; /* the sweeper suggests nothing more: no trial follows */
} KilnHistory;

typedef enum KilnAdvice {
    KILN_ADVICE_TRIAL,  /* start a new trial */
    KILN_ADVICE_RESUME, /* resume a trial that was stopped, from its checkpoint */
    KILN_ADVICE_WAIT,   /* nothing now: ask again after the next report or end of a trial */
    KILN_ADVICE_DONE    /* nothing is left to start */
} KilnAdvice;

/* The answer of ask(). */
typedef struct KilnSuggestion {
    KilnAdvice advice;
    KilnAxisValue *point; /* TRIAL: by axis, zeroed: to be filled in. An axis with another leader
                           * gets the leader's value; values of inactive axes are ignored. */
    size_t
        trial; /* RESUME: which. TRIAL: the one that does not run and from whose last checkpoint the
                * new one starts; KILN_NO_TRIAL, as set before the call: from the beginning */
} KilnSuggestion;

/* Room for the reason of a decision. */
#define KILN_SWEEP_REASON 256

/* A sweeper's answers depend on its options and on the history alone: then a sweep with one job at
 * a time has the same trials in every run, and after a resume. Its functions run in the launcher's
 * process, which has no threads. */
struct KilnSweeperOps {
    /* The kinds of axes that it searches, KilnAxisKind bits. Others are refused; an axis with one
     * value is always accepted. */
    unsigned axes;
    /* Optional. The number of trials of a sweeper that does not learn: what ask() answers depends
     * on history->count alone, never WAIT or RESUME. All trials are then known and checked before
     * the first one starts. SIZE_MAX if it is too large to count. */
    size_t (*count)(const KilnInstance *self, const KilnSpace *space);
    /* Suggest what to start next. Called when a job could start. */
    KilnStatus (*ask)(KilnInstance *self, const KilnHistory *history, KilnSuggestion *ret,
                      KilnError *err);
    /* Optional, without count(). A running trial, the index `trial` in the history, has reported:
     * its last report is new. True stops it here, with a checkpoint; write why into `reason`. The
     * trial waits for the answer. */
    bool (*tell)(KilnInstance *self, const KilnHistory *history, size_t trial,
                 char reason[KILN_SWEEP_REASON]);
    /* Optional. Refuse a space, before anything runs. */
    KilnStatus (*check)(const KilnInstance *self, const KilnSpace *space, KilnError *err);
};

/* ---- Pruners: which jobs stop early --------------------------------------------------- */

/* A pruner works with every sweeper. Like a sweeper it answers from its options and the history
 * alone. */
struct KilnPrunerOps {
    /* A running trial, the index `trial` in the history, has reported: its last report is new. True
     * stops it here, with a checkpoint; write why into `reason`. The trial waits for the answer. */
    bool (*prune)(KilnInstance *self, const KilnHistory *history, size_t trial,
                  char reason[KILN_SWEEP_REASON]);
    /* Optional. A trial with the status STOPPED that continues from its checkpoint, before any new
     * one starts; KILN_NO_TRIAL: none. Called when a job could start. */
    size_t (*resume)(KilnInstance *self, const KilnHistory *history);
};

/* ---- Launchers: where and how jobs run ------------------------------------------- */

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
    KILN_JOB_EXIT_REQUEUE = 85, /* of KilnLaunch.command: it saved near its time limit, and is to
                                 * run again */
    KILN_JOB_EXIT_SIGNAL = 128  /* plus the number of the signal that stopped it */
};

/* What the process of KilnLaunch.command reads from its environment. All are optional. */
#define KILN_ENV_JOB_WHERE "KILN_JOB_WHERE"     /* "Slurm job 12_3 on node a7", for the journal */
#define KILN_ENV_JOB_LIMIT "KILN_JOB_LIMIT"     /* "time limit of 30 min": what SIGUSR1 means */
#define KILN_ENV_JOB_REQUEUE "KILN_JOB_REQUEUE" /* how often SIGUSR1 ends it with EXIT_REQUEUE */

typedef enum KilnNextJob {
    KILN_NEXT_JOB,  /* start it */
    KILN_NEXT_WAIT, /* none now; take again when a running one has reported or ended */
    KILN_NEXT_NONE  /* none is left */
} KilnNextJob;

/* What a job needs: kiln.needs of its config; of a running one, also what it has found out itself.
 */
typedef struct KilnJobNeeds {
    int64_t cpus;   /* processors; 0: its share of those that are there */
    int64_t memory; /* bytes; 0: not known */
} KilnJobNeeds;

/* What the files of a job say (KilnLaunch.collect). */
typedef struct KilnJobNews {
    bool begun;     /* a process runs, or has ended, and the job does not wait to run again */
    bool over;      /* it has ended, as `end` says; a next one may begin */
    KilnJobEnd end; /* INTERRUPTED: by a signal from outside; STOPPED: by the sweeper or pruner */
} KilnJobNews;

/* What a launcher calls. Jobs are identified by number. */
typedef struct KilnLaunch {
    void *ctx;
    /* Take the next job to start. */
    KilnStatus (*next)(void *ctx, KilnNextJob *ret, size_t *ret_job, KilnError *err);
    /* Do the whole job, in its own process, which then ends with the returned exit status. It
     * writes messages of less than PIPE_BUF bytes to the socket `report`: pass them to reported(),
     * and its replies back. */
    int (*run)(void *ctx, size_t job, int report);
    KilnStatus (*started)(void *ctx, size_t job, int64_t pid, KilnError *err);
    /* *ret_reply: to be sent to the job; static text; "": nothing. */
    KilnStatus (*reported)(void *ctx, size_t job, const char *bytes, size_t size,
                           const char **ret_reply, KilnError *err);
    KilnStatus (*ended)(void *ctx, size_t job, const KilnJobEnd *end, KilnError *err);
    /* Call it several times a second while jobs run, for the display. */
    void (*tick)(void *ctx);
    /* Not 0: start no more jobs, and stop the running ones with a checkpoint. */
    const volatile int *stop;
    /* Of a job that next() gave, or that runs. */
    KilnJobNeeds (*needs)(void *ctx, size_t job);
    /* True: stop this running job with a checkpoint. Call it for each one after tick(). */
    bool (*stops)(void *ctx, size_t job);

    /* ---- For launchers whose jobs run on other machines, and may outlive the launcher. They call
     * these functions in place of run(), started() and reported(). */

    const char *dir; /* the sweep's folder, absolute; a launcher may keep files in its .kiln */
    /* Jobs to come depend on the results of earlier ones: take only as many as can run at once. */
    bool follows;
    /* Prepare the job for a new process, which must not run yet, and get the command that runs it
     * on any machine that has the folder: *ret_argv, NULL-terminated, borrowed from the launch and
     * the same for all jobs; the job's number is to be appended. The process handles SIGTERM (it
     * stops with a checkpoint) and SIGUSR1 (the time limit is near), once each. */
    KilnStatus (*command)(void *ctx, size_t job, const char *const **ret_argv, KilnError *err);
    /* In place of command(): the job was taken, but the process that an earlier launcher prepared
     * runs, waits to run, or has ended. */
    KilnStatus (*attach)(void *ctx, size_t job, KilnError *err);
    /* Read what the job's process has written since, answer it, and record that it started. */
    KilnStatus (*collect)(void *ctx, size_t job, KilnJobNews *ret, KilnError *err);
    /* The job's process has ended as `why` says, or is lost, and the job waits to run again from
     * its checkpoint. Call ended() instead if it does not run again. */
    KilnStatus (*requeued)(void *ctx, size_t job, const KilnJobEnd *why, KilnError *err);
    /* Print a line. */
    void (*print)(void *ctx, const char *line);

    /* Jobs to run at a time: what the launcher's n_jobs() gives, or what was measured where that is
     * 0. */
    size_t n_jobs;
    /* ---- For launchers that fork their jobs: jobs with the same data set it up once. */

    /* Is another job setting up the data of this one? Then it should not start yet. */
    bool (*loading)(void *ctx, size_t job);
    /* Call it before fork(). `ends` is a pair of sockets for the job's report, the launcher's end
     * and the job's. *ret_pid: the job's process, in place of fork() and run(). It is a child of
     * this process with a process group of its own and the limits of an earlier job, was forked
     * from one that has the data, and ends with this process. 0: there is none. */
    KilnStatus (*fork_loaded)(void *ctx, size_t job, const int ends[2], int64_t *ret_pid,
                              KilnError *err);
    /* Bytes of a job's memory that it shares, and of all that is shared. */
    int64_t (*shared)(void *ctx, size_t job);
    int64_t (*held)(void *ctx);
} KilnLaunch;

struct KilnLauncherOps {
    /* Jobs that share this machine's processors at a time. 0: as many as are fastest, which kiln
     * measures before launch(), for KilnLaunch.n_jobs. */
    size_t (*n_jobs)(const KilnInstance *self);
    /* Run jobs until none is left or `stop` is set. No job runs after it returns, even with an
     * error. A failed job is not an error. */
    KilnStatus (*launch)(KilnInstance *self, const KilnLaunch *launch, KilnError *err);
    /* Optional. Processors that a job has, for trainer.threads=0; without it, a share of this
     * machine's. */
    size_t (*processors)(const KilnInstance *self);
    /* Optional. Can jobs be launched from here? Called before anything is written. */
    KilnStatus (*ready)(KilnInstance *self, KilnError *err);
    /* Optional. Append what launch() would do with these jobs, for --plan. Of `launch` only dir and
     * command are set, and command prepares nothing. */
    KilnStatus (*plan)(KilnInstance *self, const KilnLaunch *launch, const size_t *jobs, size_t n,
                       KilnText *ret, KilnError *err);
};

/* ---- Options ---------------------------------------------------------------------- */

/* kiln.sweep, without its subdir, which differs per job. */
typedef struct KilnSweepOptions {
    char *dir;
    int64_t max_jobs;
    double timeout;
    int64_t max_steps, patience;
    bool optuna;
    int64_t repeats, confirm;
} KilnSweepOptions;

/* kiln.sweeper, without the options of the component that it names. */
typedef struct KilnRankOptions {
    char *_target_; /* the component */
    char *metric;
    int64_t mode; /* KilnMode */
    char **forbid;
    size_t forbid_count;
    char **metrics;
    size_t metrics_count;
    int64_t *modes;
    size_t modes_count;
} KilnRankOptions;

/* `kiln`: only its components. */
typedef struct KilnOwnOptions {
    KilnInstance *launcher, *pruner;
} KilnOwnOptions;

/* Tables of these structs, for sections of a KilnComposeRequest. The one of kiln.needs is of
 * KilnJobNeeds. */
KILN_API_TABLE const KilnField kiln_sweep_fields[], kiln_rank_fields[], kiln_own_fields[],
    kiln_needs_fields[];

#endif
