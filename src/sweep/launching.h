/* A sweep that runs: what launch.c, which takes the launcher's events, and next_job.c share. */
#ifndef KILN_SWEEP_LAUNCHING_H
#define KILN_SWEEP_LAUNCHING_H

#include "sweep/display.h"
#include "sweep/jobs/data_process.h"
#include "sweep/remote/remote_launch.h"
#include "sweep/sweep_state.h"

typedef struct KilnLaunching {
    KilnSweep *sweep;
    KilnDisplay display;
    size_t begun,
        waiting;    /* jobs before were taken, if an earlier process had begun them; if not */
    bool done;      /* the sweeper starts nothing more */
    bool waits;     /* the sweeper waits for a report or an end */
    bool settled;   /* the pruner resumes nothing before the next report or end */
    bool exhausted; /* the budget is used up */
    double started, written; /* when the launch, and when the results were, by kiln_clock */
    double looked;           /* for requests, by kiln_clock */
    KilnError failed;        /* of a tick; what is called next returns it */
    KilnRemote remote;       /* jobs on other machines */
    KilnDataProcesses data;  /* of jobs on this one */
} KilnLaunching;

/* ---- next_job.c ------------------------------------------------------------------------- */

/* KilnLaunch.next; `ctx` is a KilnLaunching. */
KilnStatus kiln_launching_next(void *ctx, KilnNextJob *ret, size_t *ret_job, KilnError *err);
/* Take the requests in the sweep's folder. */
KilnStatus kiln_launching_take_requests(KilnLaunching *launching, KilnError *err);
/* Repeat jobs that ended well in an earlier process, before their repeats were in the journal. */
KilnStatus kiln_launching_repeat_old(KilnLaunching *launching, KilnError *err);

/* Find the job that would start first; a new trial of a sweeper that learns then waits. Set
 * *ret_any: there is one. */
KilnStatus kiln_launching_first(KilnLaunching *launching, bool *ret_any, size_t *ret_job,
                                KilnError *err);

/* ---- speed/measure_speed.c ---------------------------------------------------------------- */

/* Where the launcher leaves open how many jobs run at a time, and the journal does not say: measure
 * it, set sweep->division, and record it. */
KilnStatus kiln_launching_divide(KilnLaunching *launching, KilnError *err);

/* ---- launch.c ----------------------------------------------------------------------------- */

/* The launcher has taken the job, and its process has not started. */
KilnStatus kiln_launching_set_queued(KilnSweep *sweep, size_t number, KilnError *err);
/* The job's config has an error, which the check could not see: the job fails. */
KilnStatus kiln_launching_fail_config(KilnLaunching *launching, size_t number,
                                      const KilnError *wrong, KilnError *err);
/* Write the results; unless `now`, not more often than each second. */
KilnStatus kiln_launching_write_results(KilnLaunching *launching, bool now, KilnError *err);

#endif
