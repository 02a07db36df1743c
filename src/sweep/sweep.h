/* Sweeps: many jobs from one command, planned, frozen, run, gone on with. What a job
 * does is the caller's; here is everything around it. */
#ifndef KILN_SWEEP_SWEEP_H
#define KILN_SWEEP_SWEEP_H

#include "base/arena.h"
#include "base/text.h"
#include "kiln/sweep.h"
#include "kiln/trainer.h"

/* A job as its body sees it, in the job's own process. */
typedef struct KilnSweepTask {
    size_t number;
    const char *dir;              /* absolute path of the job's folder; its config is in .kiln */
    const char *const *overrides; /* that made it, NULL-terminated */
    bool resumes;                 /* there is a checkpoint in the folder to go on from */
    const char *metric;           /* that jobs are ranked by */
    int64_t mode;                 /* KilnMode that was given for it */
    const struct KilnReporter *report; /* for kiln_report_* */
} KilnSweepTask;

typedef struct KilnSweepRequest {
    KilnComposeRequest compose; /* overrides: all that the sweep was given */
    const char *const *plugins; /* absolute paths, NULL-terminated; remembered for --resume */
    const char *resume;         /* folder of the sweep to go on with; NULL: a new one */
    bool retry_failed;
    const KilnConsole *console; /* of the display; NULL: none */
    const volatile int *stop;
    /* A job's work; the exit status of its process (KILN_JOB_EXIT_*). stdout and stderr
     * are its log already. */
    int (*body)(void *ctx, const KilnSweepTask *task);
    void *ctx;
} KilnSweepRequest;

typedef struct KilnSweepResult {
    char dir[4096];
    size_t jobs, ok, failed, interrupted, waiting;
} KilnSweepResult;

/* Tell each job that would run to `line`, as "#3 : lr=0.1 model=mlp". Nothing is run
 * or written. Every value of every axis is composed and checked once, the other axes
 * at their first value; of an axis with more than KILN_PLAN_VALUES values that many,
 * spread evenly. *ret_left_out is the number of values that were not looked at. */
enum { KILN_PLAN_VALUES = 256 };
KILN_NODISCARD KilnStatus kiln_sweep_plan(const KilnSweepRequest *request,
                                          void (*line)(void *ctx, const char *text), void *ctx,
                                          size_t *ret_left_out, KilnErrors *errors);
/* Compose, check and freeze all jobs, then run them; or go on with a sweep. When
 * anything is wrong with any job nothing is written and nothing runs. A job that fails
 * is no error of the sweep: see `ret`. */
KILN_NODISCARD KilnStatus kiln_sweep_run(const KilnSweepRequest *request, KilnSweepResult *ret,
                                         KilnErrors *errors);

/* What the sweep in a folder was begun with. */
typedef struct KilnSweepMemory {
    KilnArena arena;
    const char *dir; /* absolute */
    const char *cwd;
    const char *const *plugins;
} KilnSweepMemory;
/* `resume`: a sweep's folder, or "last": the newest one below multirun/. */
KILN_NODISCARD KilnStatus kiln_sweep_remember(const char *resume, KilnSweepMemory *ret,
                                              KilnError *err);

/* How many jobs the sweep in a folder has, and how many of them have ended; whether it runs now or
 * not. An error where `dir` is no sweep's folder. */
KILN_NODISCARD KilnStatus kiln_sweep_status(const char *dir, size_t *ret_jobs, size_t *ret_ended,
                                            KilnError *err);

/* ---- For the body ---------------------------------------------------------------- */

typedef struct KilnReporter KilnReporter;
/* How far the job is. `done`: share of the whole, NaN when it can't be known. */
void kiln_report_progress(const KilnReporter *reporter, int64_t epoch, int64_t max_epochs,
                          double done, const KilnMetric *metrics, size_t n_metrics);
/* Why the job fails. */
void kiln_report_error(const KilnReporter *reporter, const char *text);
/* Append "KEY='VALUE'", quoted as an override needs it. */
void kiln_override_quote(KilnText *text, const char *key, const char *value);

#endif
