/* A sweep at work: what the files of this folder share. */
#ifndef KILN_SWEEP_STATE_H
#define KILN_SWEEP_STATE_H

#include "config/sweep/sweep_arguments.h"
#include "sweep/job_errors.h"
#include "sweep/history.h"
#include "base/system/journal.h"
#include "sweep/sweep.h"

/* A config file as it was when it was used first. */
typedef struct KilnKeptFile {
    const char *path; /* "model/resnet.yaml" below the folder of kept files */
    const char *text;
    size_t size;
} KilnKeptFile;

/* The texts of a job's .kiln folder, until they are written. Owned. */
typedef struct KilnFrozen {
    char *config, *references, *overrides, *own, *origins;
} KilnFrozen;

typedef struct KilnSweep {
    const KilnSweepRequest *request;
    KilnComposeRequest compose; /* request's, or for --resume with the kept files first */
    KilnArena arena;            /* of what lives as long as the sweep */
    KilnConfig *config;         /* of the sweep itself */
    KilnSweepArguments arguments;
    KilnSweepOptions *options;
    KilnRankOptions *rank;
    KilnInstance *sweeper, *launcher;
    size_t n_points; /* of the space */
    char *dir;       /* the sweep's folder, as kiln.sweep.dir has it */
    char *path;      /* the same, absolute, when it is there */
    char *top;       /* the deepest folder above it that was there before; absolute */
    KilnSweepBegin begin;
    KilnJournal *journal;
    KilnJobs jobs;
    size_t n_old;       /* jobs that were there before this process */
    KilnFrozen *frozen; /* of the new jobs: [n_old, jobs.count) */
    KilnKeptFile *kept;
    size_t n_kept, kept_capacity;
    const char *metric;   /* jobs are ranked by it */
    KilnMode metric_mode; /* AUTO: as the metric itself declares */
} KilnSweep;

/* ---- prepare.c: from the request to a space of points -------------------------------- */

/* Compose the sweep itself and build its sweeper and launcher. */
KilnStatus kiln_sweep_open(const KilnSweepRequest *request, KilnSweep *ret, KilnErrors *errors);
/* Accepts a half-open one. */
void kiln_sweep_close(KilnSweep *sweep);
/* The overrides of point `point`, stored in `overrides` (room for space.count). */
KilnStatus kiln_sweep_point(const KilnSweep *sweep, size_t point, const char **overrides,
                            KilnError *err);
/* For a sweep that goes on: own and read its journal, and let its kept files come
 * first. */
KilnStatus kiln_sweep_recall(KilnSweep *sweep, KilnError *err);

/* Will this process run the job? One that waits, was interrupted or killed from
 * outside, or failed and may be tried again. */
bool kiln_sweep_runs(const KilnSweep *sweep, const KilnJob *job);

/* ---- job_config.c: the config of a job ------------------------------------------------- */

/* Compose the config of job `number` with these overrides. `whole`: what is only known
 * when it runs is checked, too (else a tree that is no kiln task is fine). */
KilnStatus kiln_sweep_compose(const KilnSweep *sweep, const char *const *overrides, size_t n,
                              size_t number, bool whole, KilnConfig **ret, KilnErrors *errors);

/* ---- freeze.c: jobs' configs, kept as they are now -------------------------------------- */

/* Add the points that are no jobs yet to sweep->jobs, and compose, check and freeze
 * each in memory. What is wrong goes to `findings`. */
KilnStatus kiln_sweep_freeze(KilnSweep *sweep, KilnJobErrors *job_errors, KilnError *err);

/* ---- frozen.c: the files of that ------------------------------------------------------------ */

/* Write the config files that were used, so that they are on disk. */
KilnStatus kiln_sweep_write_kept(const KilnSweep *sweep, KilnError *err);
/* Write the new jobs' folders, so that they are on disk. */
KilnStatus kiln_sweep_write_frozen(KilnSweep *sweep, KilnError *err);
void kiln_frozen_release(KilnFrozen *frozen);
/* Remember the config files that a composed config was made of. */
KilnStatus kiln_sweep_keep_files(KilnSweep *sweep, const KilnConfig *config, KilnError *err);

/* ---- folder.c: the folder of a sweep ------------------------------------------------------ */

/* Choose sweep->dir: kiln.sweep.dir, with a number behind when it is there and written
 * with ${now:...}. */
KilnStatus kiln_sweep_choose_dir(KilnSweep *sweep, KilnError *err);
/* Make it and open its journal; *ret_taken: somebody else was faster, choose another. */
KilnStatus kiln_sweep_make_dir(KilnSweep *sweep, bool *ret_taken, KilnError *err);
/* Absolute path of something in a job's folder; NULL when memory is out. Owned by the
 * caller. `name` NULL: the folder. */
char *kiln_sweep_job_path(const KilnSweep *sweep, const KilnJob *job, const char *name);

/* ---- launch.c: running the jobs that wait --------------------------------------------------- */

KilnStatus kiln_sweep_launch(KilnSweep *sweep, KilnError *err);

/* ---- rank.c ------------------------------------------------------------------------- */

/* Set sweep->metric by kiln.sweeper.metric, or the callbacks of the sweep's config. */
KilnStatus kiln_sweep_choose_metric(KilnSweep *sweep, KilnError *err);
/* The value of the metric by which a job is ranked; NaN: it has none. *ret_mode: whether a
 * larger value is better; AUTO: nobody says. */
double kiln_sweep_score(const KilnSweep *sweep, const KilnJob *job, KilnMode *ret_mode);
/* Numbers of the jobs that ended well and have a metric that ranks them, best first; the number
 * of them. `ret` has room for all jobs. */
size_t kiln_sweep_rank(const KilnSweep *sweep, size_t *ret);

/* ---- results.c ---------------------------------------------------------------------- */

/* results.csv and results.json, replaced at once. */
KilnStatus kiln_results_write(const KilnSweep *sweep, KilnError *err);
/* The keys that differ between jobs, in order of appearance; NULL-terminated, in the
 * arena; NULL when memory is out. */
const char **kiln_results_keys(const KilnJobs *jobs, KilnArena *arena);

#endif
