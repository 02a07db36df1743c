/* The state of a sweep, and what the files of this folder share. */
#ifndef KILN_SWEEP_SWEEP_STATE_H
#define KILN_SWEEP_SWEEP_STATE_H

#include <time.h>

#include "config/sweep/sweep_arguments.h"
#include "sweep/jobs/job_errors.h"
#include "sweep/records.h"
#include "base/system/journal.h"
#include "sweep/sweep.h"

/* A copy of a config file, as it was when the sweep used it first. */
typedef struct KilnConfigCopy {
    const char *path; /* "model/resnet.yaml", below the folder of copies */
    const char *text;
    size_t size;
} KilnConfigCopy;

/* The texts of a job's .kiln folder. Owned. */
typedef struct KilnJobFiles {
    char *config, *references, *overrides, *own, *origins;
} KilnJobFiles;

struct KilnDisplay;
typedef struct KilnOptuna KilnOptuna;

typedef struct KilnSweep {
    const KilnSweepRequest *request;
    KilnComposeRequest compose; /* request's; for --resume with the config copies first */
    KilnArena arena;            /* for the sweep's lifetime */
    KilnConfig *config;         /* of the sweep itself */
    KilnSweepArguments arguments;
    KilnSweepOptions *options;
    KilnRankOptions *rank;
    struct KilnForbidden *forbidden; /* combinations; in the arena */
    KilnInstance *sweeper, *launcher;
    KilnInstance *pruner; /* NULL: none */
    bool learns;          /* the sweeper's trials depend on results */
    bool follows;         /* reports are followed: the sweeper learns, or there is a pruner */
    bool complete;        /* the sweeper suggests nothing more */
    size_t n_points;      /* of a sweeper that does not learn: trials that it will suggest */
    KilnTrial **trials;   /* those that were asked for; in the arena */
    size_t n_trials, trials_capacity;
    char *dir;  /* the sweep's folder, as kiln.sweep.dir has it */
    char *path; /* the same, absolute, once it exists */
    char *top;  /* the deepest folder above it that existed before; absolute */
    KilnSweepStart start;
    KilnJournal *journal;
    KilnJobs jobs;
    size_t n_old;          /* jobs of earlier processes */
    size_t processors;     /* that this process may use */
    size_t n_jobs;         /* at a time, as the launcher says; 0: as many as are fastest */
    KilnDivision division; /* of the processors, for a launcher that leaves its n_jobs open;
                            * zero: not measured yet */
    KilnConfigCopy *copies;
    size_t n_copies, n_written, copies_capacity; /* n_written: on disk */
    const char **variables; /* of the environment: NAME=VALUE, or NAME; NULL-terminated */
    size_t n_variables, n_recorded, variables_capacity; /* n_recorded: in the journal */
    const char *metric;                                 /* jobs are ranked by it */
    KilnMode metric_mode;                               /* AUTO: as the metric itself declares */
    KilnObjective *more; /* metrics by which jobs are ranked, too, and their modes */
    size_t n_more;
    KilnObjective declared[KILN_MAX_OBJECTIVES]; /* all of them, with modes that reports declare */
    const KilnObjective *objectives[KILN_MAX_OBJECTIVES]; /* the same, for the history */
    KilnOptuna *optuna;            /* what optuna.log has; NULL: nothing yet */
    struct timespec requests_seen; /* when the folder of requests had changed, as of the last
                                    * look */
} KilnSweep;

/* ---- open.c: from the request to a space of points --- -------------------------------- */

/* Compose the sweep itself and build its sweeper and launcher. */
KilnStatus kiln_sweep_open(const KilnSweepRequest *request, KilnSweep *ret, KilnErrors *errors);
/* Accepts a half-open one. */
void kiln_sweep_close(KilnSweep *sweep);
/* Resume a sweep: own and replay its journal, and search its config copies first. */
KilnStatus kiln_sweep_reopen(KilnSweep *sweep, KilnError *err);

/* The error that `path` is no sweep: it is not there, or something else. */
KilnStatus kiln_sweep_not_there(const char *path, KilnError *err);

/* The end of an absolute path that is relative to the current folder, if it is below that; else the
 * path. */
const char *kiln_sweep_shown_path(const char *path);

/* Will this process run the job? It waits, was interrupted or killed from outside, or failed and is
 * retried. */
bool kiln_sweep_runs(const KilnSweep *sweep, const KilnJob *job);

/* ---- space.c: points of the space ---------------------------------------------------- */

/* FLOAT or INT: without overrides. */
bool kiln_axis_is_interval(const KilnAxis *axis);
/* Is it a value of the axis? */
bool kiln_axis_accepts(const KilnAxis *axis, KilnAxisValue value);
/* Let each axis of a zip() follow its leader, and clear the values of inactive axes. False: axis
 * *ret_wrong does not have its value. */
bool kiln_space_complete(const KilnSpace *space, KilnAxisValue *point, size_t *ret_wrong);
/* The point that has these overrides (NULL-terminated); false: none has. `ret` is zeroed before. */
bool kiln_space_locate(const KilnSpace *space, const char *const *overrides, KilnAxisValue *ret);
/* The overrides of a point, without those of inactive axes; texts are in the arena, or the space's
 * own. `ret` has room for all axes. False when memory is out. */
bool kiln_space_overrides(const KilnSpace *space, const KilnAxisValue *point, KilnArena *arena,
                          const char **ret, size_t *ret_count);

/* ---- ask.c: trials from the sweeper --------------------------------------------------- */

/* Refuse an axis that the sweeper does not search. */
KilnStatus kiln_sweep_check_axes(const KilnSweep *sweep, KilnError *err);
/* Set sweep->learns and n_points. */
KilnStatus kiln_sweep_count(KilnSweep *sweep, KilnError *err);
/* Ask the sweeper once. A new trial gets a job, *ret_job, the first one with its overrides that no
 * other trial has, else a new one; of a trial to resume it is the job. */
KilnStatus kiln_sweep_ask(KilnSweep *sweep, KilnAdvice *ret, size_t *ret_job, KilnError *err);
/* Put a new job into the journal. */
KilnStatus kiln_sweep_record_job(const KilnSweep *sweep, size_t number, KilnError *err);
/* Ask for all trials of a sweeper that does not learn. */
KilnStatus kiln_sweep_ask_all(KilnSweep *sweep, KilnError *err);
/* The trial to resume that the pruner names; *ret_any false: none. */
KilnStatus kiln_sweep_ask_pruner(KilnSweep *sweep, bool *ret_any, size_t *ret_job, KilnError *err);
/* Make a trial of a job without one, if its overrides are a point of the space. */
KilnStatus kiln_sweep_claim_trial(KilnSweep *sweep, size_t number, KilnError *err);
/* Give the trials the results of the jobs of earlier processes, of which those at a point of the
 * space become trials. */
KilnStatus kiln_sweep_restore_trials(KilnSweep *sweep, KilnError *err);
/* Copy a job's status, reports and values to its trial. */
KilnStatus kiln_sweep_update_trial(KilnSweep *sweep, size_t number, KilnError *err);
/* Take the modes of objectives that are not known yet from the job's reports. */
void kiln_sweep_learn_modes(KilnSweep *sweep, const KilnJob *job);
/* Do jobs wait for an answer to their reports? */
bool kiln_sweep_tells(const KilnSweep *sweep);
/* Tell the sweeper and the pruner the last report of a job. True: stop the job, for that reason. */
bool kiln_sweep_tell(KilnSweep *sweep, size_t number, char reason[KILN_SWEEP_REASON]);

/* ---- budget.c: when a sweep starts nothing more ----------------------------------------- */

/* What a sweep has used: optimizer steps of all jobs, and jobs that have ended since the best one,
 * by number. */
typedef struct KilnSweepUse {
    int64_t steps, ended_since_best;
} KilnSweepUse;
KilnSweepUse kiln_sweep_use(const KilnSweep *sweep);
/* Why no job starts any more; static text. NULL: there is room in the budget. `elapsed`: seconds of
 * this process. */
const char *kiln_sweep_budget_end(const KilnSweep *sweep, double elapsed);

/* ---- forbidden.c: combinations that do not run ---------------------------------------------- */

/* Read kiln.sweeper.forbid. */
KilnStatus kiln_sweep_read_forbidden(KilnSweep *sweep, KilnError *err);
/* The text of the combination that forbids the point; NULL: none does. */
const char *kiln_sweep_forbids(const KilnSweep *sweep, const KilnAxisValue *point);

/* ---- repeats.c: more runs of a point, with other seeds -------------------------------------- */

/* All runs of a point. */
typedef struct KilnRuns {
    size_t count, open, counted; /* runs; those that have not ended; those whose value counts */
    double value, deviation;     /* mean and standard deviation; NaN: none; 0: of fewer than two */
    KilnMode mode;
} KilnRuns;
KilnRuns kiln_sweep_runs_of(const KilnSweep *sweep, const KilnJob *first, size_t objective);
/* Refuse a space in which the seed varies itself. */
KilnStatus kiln_sweep_check_repeats(const KilnSweep *sweep, KilnError *err);
/* Add the runs of kiln.sweep.repeats to a job that has ended well. */
KilnStatus kiln_sweep_repeat(KilnSweep *sweep, size_t number, KilnError *err);
/* Add the runs of kiln.sweep.confirm to the best job; *ret_any: there were too few. */
KilnStatus kiln_sweep_confirm(KilnSweep *sweep, bool *ret_any, KilnError *err);

/* ---- job_config.c: the config of a job ------------------------------------------------- */

/* Compose and check the config of job `number` with these overrides. Without `whole`, a config of
 * no kiln task is not checked. `sources` (sweep->arguments.sources) names the arguments and files
 * in messages; NULL: the i-th override is argument i + 1. */
KilnStatus kiln_sweep_compose_job(const KilnSweep *sweep, const char *const *overrides, size_t n,
                                  size_t number, bool whole, const KilnAxisSource *sources,
                                  KilnConfig **ret, KilnErrors *errors);

/* ---- sweep_check.c: before anything runs --------------------------------------------- */

/* Check the values of every axis, at most `most` of each, evenly spread, with the other axes at
 * their first value. Their errors go to `job_errors`. *ret_left_out: values that were not checked.
 * `whole` as for kiln_sweep_compose_job. */
KilnStatus kiln_sweep_check_values(KilnSweep *sweep, bool whole, size_t most,
                                   KilnJobErrors *job_errors, size_t *ret_left_out, KilnError *err);
/* Check the configs of the new jobs, *ret_jobs of them; of too many, and of an interval, check the
 * values (then *ret_jobs may be 0). Also copies what they are made of, into memory. */
KilnStatus kiln_sweep_check(KilnSweep *sweep, KilnJobErrors *job_errors, size_t *ret_jobs,
                            KilnError *err);

/* ---- source_copies.c: what configs are made of --------------------------------------------------
 */

/* Add an environment variable: NAME=VALUE, or NAME; in the arena. NULL: memory is out. */
KilnStatus kiln_sweep_add_variable(KilnSweep *sweep, const char *text, KilnError *err);
/* Copy the config files and variables that a config was composed from, into memory. */
KilnStatus kiln_sweep_copy_sources(KilnSweep *sweep, const KilnConfig *config, KilnError *err);
/* Copy also what the search path offers, write and sync the copies, and use them. */
KilnStatus kiln_sweep_snapshot(KilnSweep *sweep, KilnError *err);
/* Search the copies first. */
KilnStatus kiln_sweep_use_copies(KilnSweep *sweep, KilnError *err);
/* Write the copies that are not on disk yet, and the variables that are not in the journal yet. */
KilnStatus kiln_sweep_record_sources(KilnSweep *sweep, KilnError *err);

/* ---- freeze.c: the config of a job that starts --------------------------------------------- */

/* Jobs at a time: as the launcher says, or as was measured; 1 before that. */
size_t kiln_sweep_at_once(const KilnSweep *sweep);
/* Compose and check the config of a job; an error in it is in `wrong`. */
KilnStatus kiln_sweep_config_of(const KilnSweep *sweep, size_t number, KilnConfig **ret,
                                KilnError *wrong);
/* Set job->needs from its config. */
KilnStatus kiln_job_read_needs(KilnJob *job, const KilnConfig *config, KilnError *err);
/* trainer.threads=0 means all processors; jobs that run at the same time divide them. */
KilnStatus kiln_sweep_share_threads(const KilnSweep *sweep, KilnConfig *config, size_t number,
                                    KilnJobErrors *job_errors, KilnError *err);
/* The folder of the job with that config, below the sweep's. Owned by the caller. */
KilnStatus kiln_sweep_job_dir(const KilnConfig *config, char **ret, KilnError *err);
/* Compose and check a job's config, and write and sync its folder. An error in the config is in
 * `wrong`, and the job has no folder; the status is of other errors. */
KilnStatus kiln_sweep_freeze(KilnSweep *sweep, size_t number, KilnError *wrong, KilnError *err);

/* ---- job_process.c ------------------------------------------------------------------------- */

/* In a job's own process: set up its folder and its log, set task->ckpt_path, and run the body; the
 * exit status. Of several processes of a job, ranks, only the first one writes to the folder. */
int kiln_job_run(KilnSweepTask *task, bool first_rank,
                 int (*body)(void *ctx, const KilnSweepTask *task), void *ctx);
/* The same of a frozen job of this sweep, with its report to the socket: its folder below the
 * sweep's, and its overrides. */
int kiln_sweep_run_frozen(const KilnSweep *sweep, size_t number, const char *job_dir,
                          const char *const *overrides, int report);

/* ---- job_files.c ------------------------------------------------------------------------- */

/* Write and sync a job's folder. */
KilnStatus kiln_sweep_write_job(const KilnSweep *sweep, const KilnJob *job,
                                const KilnJobFiles *files, KilnError *err);
void kiln_job_files_release(KilnJobFiles *files);
/* Give a job the last checkpoint of its parent to start from: hard links to its files, in
 * .kiln/start of the job's folder. An error of the parent's is in `wrong`. */
KilnStatus kiln_sweep_link_start(const KilnSweep *sweep, const KilnJob *job, KilnError *wrong,
                                 KilnError *err);

/* ---- folder.c: the folder of a sweep ------------------------------------------------------ */

/* Set sweep->dir: kiln.sweep.dir, with a number appended if it exists and was written with
 * ${now:...}. */
KilnStatus kiln_sweep_choose_dir(KilnSweep *sweep, KilnError *err);
/* Make it and open its journal; *ret_taken: another process has made it, choose again. */
KilnStatus kiln_sweep_make_dir(KilnSweep *sweep, bool *ret_taken, KilnError *err);
/* Absolute path of something in a job's folder; NULL when memory is out. Owned by the
 * caller. `name` NULL: the folder. */
char *kiln_sweep_job_path(const KilnSweep *sweep, const KilnJob *job, const char *name);

/* ---- launch.c: running the waiting jobs ----------------------------------------------------- */

KilnStatus kiln_sweep_launch(KilnSweep *sweep, KilnError *err);

/* ---- take_requests.c ------------------------------------------------------------------------ */

/* Take the requests in the sweep's folder, if there are new ones: put what they change into the
 * journal, and on the display. *ret_any: something has changed. */
KilnStatus kiln_sweep_take_requests(KilnSweep *sweep, struct KilnDisplay *display, bool *ret_any,
                                    KilnError *err);

/* ---- point.c: the overrides of a point by hand ----------------------------------------------- */

/* Check the arguments of an added job. *ret_overrides: those of the job, NULL-terminated, in the
 * arena. */
KilnStatus kiln_sweep_check_point(KilnSweep *sweep, const char *const *words,
                                  const char *const **ret_overrides, bool *ret_is_point,
                                  KilnErrors *errors);

/* ---- rank.c ------------------------------------------------------------------------- */

/* Set sweep->metric and `more` from kiln.sweeper, or from the callbacks of the sweep's config. */
KilnStatus kiln_sweep_choose_metric(KilnSweep *sweep, KilnError *err);
/* The value by which a job is ranked; NaN: it has none. *ret_mode: is a larger value better? AUTO:
 * it is not declared. */
double kiln_sweep_score(const KilnSweep *sweep, const KilnJob *job, KilnMode *ret_mode);
/* The best successful job; NULL: none can be ranked. */
const KilnJob *kiln_sweep_best(const KilnSweep *sweep);
/* Refuse a configured metric that a job, which has ended well, does not log. */
KilnStatus kiln_sweep_check_logged(const KilnSweep *sweep, const KilnJob *job, KilnError *err);
/* The value of one run. */
double kiln_job_value_of(const KilnSweep *sweep, const KilnJob *job, size_t objective,
                         KilnMode *ret_mode);
/* The same of one of the objectives: 0, or one of `more`, from 1. */
double kiln_sweep_value(const KilnSweep *sweep, const KilnJob *job, size_t objective,
                        KilnMode *ret_mode);
/* The name of an objective. */
const char *kiln_sweep_metric(const KilnSweep *sweep, size_t objective);
/* Numbers of the successful jobs that can be ranked, best first; returns how many. With several
 * objectives they are in the order of their ranks, and then of the first one. `ret` has room for
 * all jobs. */
size_t kiln_sweep_rank(const KilnSweep *sweep, size_t *ret);
/* Ranks of `n` jobs in the order of kiln_sweep_rank: 1, 2, 3, ...; with several objectives all jobs
 * of a front have the same (kiln/search/pareto.h), and 0 when memory is out. */
void kiln_sweep_ranks(const KilnSweep *sweep, const size_t *order, size_t n, size_t *ret);

/* ---- optuna_journal.c: optuna.log ------------------------------------------------------ */

#define KILN_OPTUNA_FILE "optuna.log"

/* Write the log again, from all jobs, with kiln.sweep.optuna; not before it is known whether a
 * larger value is better. */
KilnStatus kiln_optuna_rewrite(KilnSweep *sweep, KilnError *err);
/* Append what has changed in a job. */
KilnStatus kiln_optuna_update(KilnSweep *sweep, size_t number, KilnError *err);
/* No job runs any more: append the states that are final only now. */
KilnStatus kiln_optuna_finish(KilnSweep *sweep, KilnError *err);
/* Accepts NULL. */
void kiln_optuna_free(KilnOptuna *optuna);

/* ---- results.c ---------------------------------------------------------------------- */

/* Write results.csv and results.json, each replaced atomically. */
KilnStatus kiln_results_write(const KilnSweep *sweep, KilnError *err);
/* The keys that differ between jobs, in order of appearance; NULL-terminated, in the
 * arena; NULL when memory is out. */
const char **kiln_results_keys(const KilnJobs *jobs, KilnArena *arena);

#endif
