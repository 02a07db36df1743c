/* Sweeps: many jobs from one command, which are planned, frozen, run and resumed. What a job does
 * is the caller's `body`. */
#ifndef KILN_SWEEP_SWEEP_H
#define KILN_SWEEP_SWEEP_H

#include "base/arena.h"
#include "base/text.h"
#include "kiln/embed/run.h"
#include "kiln/sweep.h"
#include "kiln/trainer.h"

/* A job as its body sees it, in the job's own process. */
typedef struct KilnSweepTask {
    size_t number;
    const char *dir;              /* absolute path of the job's folder; its config is in .kiln */
    const char *const *overrides; /* that made it, NULL-terminated */
    const char *ckpt_path;        /* what to resume from; NULL: the beginning */
    bool begins;                  /* it has no checkpoint of its own: ckpt_path is its parent's */
    const char *metric;           /* that jobs are ranked by */
    int64_t mode;                 /* KilnMode of it, as configured */
    const struct KilnReporter *report; /* for kiln_report_* */
} KilnSweepTask;

/* A job whose speed is measured, as the function that measures it sees it, in a process of its own
 * without output. */
typedef struct KilnSpeedTask {
    KilnConfig *config;           /* the job's, with its number of threads */
    const char *const *overrides; /* that made it, NULL-terminated */
    double seconds;               /* to train */
    struct KilnSpeedPage *page;   /* for kiln_speed_wait, as `process`, the process's number */
    size_t process;
} KilnSpeedTask;

typedef struct KilnSweepRequest {
    KilnComposeRequest compose; /* with all overrides of the sweep */
    const char *resume;         /* folder of the sweep to resume; NULL: a new one */
    bool retry_failed;
    int64_t extend; /* more trials of the sweep `resume`: added to kiln.sweeper.n_trials; 0: none */
    bool reads;     /* only look at the sweep `resume`, which another process may run */
    const KilnSpace *space;     /* in place of that of the overrides; NULL: theirs */
    const KilnConsole *console; /* of the display; NULL: none */
    const volatile int *stop;
    /* A job's work; the exit status of its process (KILN_JOB_EXIT_*). stdout and stderr
     * are its log already. */
    int (*body)(void *ctx, const KilnSweepTask *task);
    /* Build what the job trains, call kiln_speed_wait, then train for about so many seconds:
     * *ret, steps per second. It writes nothing. For launchers whose n_jobs() is 0. */
    KilnStatus (*measure)(void *ctx, const KilnSpeedTask *task, double *ret, KilnError *err);
    void *ctx; /* of both */
    /* The command that calls kiln_sweep_run_remote with the sweep's folder and the job's number,
     * its last arguments; NULL-terminated. For launchers whose jobs run on other machines. */
    const char *const *command;
} KilnSweepRequest;

typedef struct KilnSweepResult {
    char dir[4096];
    size_t jobs, ok, failed, interrupted, stopped, waiting;
} KilnSweepResult;

/* List the jobs that would run: each goes to `line` as "#3 : lr=0.1 model=mlp". Nothing runs or is
 * written. Every value of every axis is composed and checked once, with the other axes at their
 * first value; of an axis with more than KILN_PLAN_VALUES values only so many, evenly spread.
 * *ret_left_out is the number of values that were not checked. */
enum { KILN_PLAN_VALUES = 256 };
KILN_NODISCARD KilnStatus kiln_sweep_plan(const KilnSweepRequest *request,
                                          void (*line)(void *ctx, const char *text), void *ctx,
                                          size_t *ret_left_out, KilnErrors *errors);
/* Check the configs of the jobs, then run them, each frozen when it starts; or resume a sweep. When
 * the check finds an error, nothing is written and nothing runs. A job that fails is no error of
 * the sweep: see `ret`. */
KILN_NODISCARD KilnStatus kiln_sweep_run(const KilnSweepRequest *request, KilnSweepResult *ret,
                                         KilnErrors *errors);

/* The folder of an existing sweep, and what it was started with. */
typedef struct KilnSweepFolder {
    KilnArena arena;
    const char *dir; /* absolute */
    const char *cwd;
    const char *const *plugins;
} KilnSweepFolder;
/* The absolute path of a sweep's folder, given by a path or as "last", the newest one below
 * multirun/; owned by the caller. */
KILN_NODISCARD KilnStatus kiln_sweep_find_dir(const char *word, char **ret, KilnError *err);
/* Find a sweep in the same way. */
KILN_NODISCARD KilnStatus kiln_sweep_find(const char *resume, KilnSweepFolder *ret, KilnError *err);

/* Run job `number` of the sweep in the folder `dir` (absolute), where its launcher, on another
 * machine, has it run: with nothing but the files of the folder. `body` runs in a forked process;
 * this one passes on signals (SIGUSR1: the time limit is near), and writes to the folder how the
 * job ended. *ret_status: the exit status, KILN_JOB_EXIT_REQUEUE if it saved and is to run again.
 */
KILN_NODISCARD KilnStatus kiln_sweep_run_remote(const char *dir, size_t number,
                                                int (*body)(void *ctx, const KilnSweepTask *task),
                                                void *ctx, int *ret_status, KilnError *err);

/* Count the jobs of the sweep in a folder and those that have ended; it may be running. Fails where
 * `dir` is no sweep's folder. */
KILN_NODISCARD KilnStatus kiln_sweep_status(const char *dir, size_t *ret_jobs, size_t *ret_ended,
                                            KilnError *err);

/* ---- Requests to a sweep, whether it runs or not ------------------------------------------ */

/* Who has a request. */
typedef enum KilnRequestState {
    KILN_REQUEST_TAKEN,  /* the launcher that runs the sweep: it is in the journal */
    KILN_REQUEST_LATE,   /* a launcher runs, but has not taken it after some seconds */
    KILN_REQUEST_WAITING /* no launcher runs: the next one takes it */
} KilnRequestState;

typedef struct KilnSweepAnswer {
    KilnRequestState state;
    size_t job;    /* once it is taken: the job that was added */
    bool is_point; /* of an added job: is it a point of the space, which sweepers learn from? */
    bool runs;     /* of a job that is stopped: it runs until its checkpoint is saved */
} KilnSweepAnswer;

/* Ask for one more job with these overrides (`words`, NULL-terminated), after checking them against
 * the space and the config of the sweep request->resume. */
KILN_NODISCARD KilnStatus kiln_sweep_add(const KilnSweepRequest *request, const char *const *words,
                                         KilnSweepAnswer *ret, KilnErrors *errors);
/* Ask for the end of a job of the sweep in `dir`: with a checkpoint if it runs; one that waits does
 * not start. KILN_E_KEY: there is no such job, or it has ended. */
KILN_NODISCARD KilnStatus kiln_sweep_stop(const char *dir, size_t job, KilnSweepAnswer *ret,
                                          KilnError *err);

/* ---- For the body ---------------------------------------------------------------- */

typedef struct KilnReporter KilnReporter;
/* Report progress; `done`: fraction of the job, NaN: unknown. True: the sweeper wants the job to
 * stop here. */
bool kiln_report_progress(const KilnReporter *reporter, const KilnRunProgress *progress,
                          double done);
/* Report why the job fails. */
void kiln_report_error(const KilnReporter *reporter, const char *text);
/* Of a measurement: wait until all processes that are measured together are as far. */
void kiln_speed_wait(const KilnSpeedTask *task);

#endif
