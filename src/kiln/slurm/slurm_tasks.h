/* The jobs of a sweep in Slurm, for launcher/slurm: submitted, followed and stopped. */
#ifndef KILN_SLURM_TASKS_H
#define KILN_SLURM_TASKS_H

#include "kiln/sweep.h"
#include "kiln/slurm/slurm.h"

/* A job that was taken and has not ended: a task of an array. */
typedef struct KilnSlurmTask {
    size_t job;
    int64_t array; /* 0: it is to be submitted; -1: it was, but Slurm does not know it any more */
    bool begun;    /* when the queue was asked last */
    int missing;   /* how often in succession the queue did not have it */
    int lost, timeouts;
    bool unwanted;   /* it alone is to be stopped */
    double stopping; /* when it was asked to stop; 0: it was not */
    double over;     /* when its process was over, but its task still ran; 0: it is not so */
    bool ended;
} KilnSlurmTask;

/* A job has ended, as it wrote, but Slurm may still have its task. */
typedef struct KilnSlurmLeft {
    size_t job;
    int64_t array;
    double since;
} KilnSlurmLeft;

/* Seconds that a task may take to end once its job has. */
static const double kiln_slurm_leave_s = 20.0;

typedef struct KilnSlurm {
    const KilnSlurmOptions *options;
    const KilnLaunch *launch;
    KilnSlurmTask *tasks;
    size_t n, capacity;
    KilnSlurmRecord record;
    KilnSlurmQueue queue;
    double collected, asked; /* when the jobs' files and when the queue were read, by kiln_clock */
    double retry;            /* before then nothing is submitted */
    bool hurry;              /* the queue decides what a job that ended does next */
    bool silent;             /* it was printed that squeue fails */
    bool stops;              /* all jobs are being stopped */
    bool any_submitted;      /* by this launcher */
    int tries, idle_tries; /* of sbatch that have failed in succession; with nothing in the queue */
    bool any_begun;        /* so it is not the jobs' setup that fails */
    KilnSlurmLeft *left;
    size_t n_left, left_capacity;
} KilnSlurm;

/* The array of a submission, which the record may not have, as the launcher was killed or the
 * answer of sbatch lost: then the queue, which was just read, knows its script. 0: it was not
 * submitted. */
KILN_API KILN_NODISCARD KilnStatus kiln_slurm_find_array(KilnSlurm *slurm, int64_t submission,
                                                         int64_t *ret, KilnError *err);
/* Submit the tasks that are to be. A failure of sbatch, such as a limit of jobs or a controller
 * that is down, is printed, and it is tried again later, unless the first jobs are refused twice.
 */
KILN_API KILN_NODISCARD KilnStatus kiln_slurm_submit_tasks(KilnSlurm *slurm, KilnError *err);
/* How many were submitted. */
KILN_API size_t kiln_slurm_in_queue(const KilnSlurm *slurm);
/* The task in the queue as it was read last; NULL: it is not there. */
KILN_API const KilnSlurmEntry *kiln_slurm_entry(const KilnSlurm *slurm, const KilnSlurmTask *task);
/* Read a job's files. If it has ended by itself, that is recorded, and task->ended is set. */
KILN_API KILN_NODISCARD KilnStatus kiln_slurm_collect(KilnSlurm *slurm, KilnSlurmTask *task,
                                                      KilnJobNews *ret, KilnError *err);
/* The queue was just read: the same, also for a job that has ended in another way, or is to be
 * submitted again. */
KILN_API KILN_NODISCARD KilnStatus kiln_slurm_judge(KilnSlurm *slurm, KilnSlurmTask *task,
                                                    KilnError *err);
/* The job did not begin, and waits for another launcher: sets task->ended. */
KILN_API KILN_NODISCARD KilnStatus kiln_slurm_drop(KilnSlurm *slurm, KilnSlurmTask *task,
                                                   KilnError *err);
/* The queue was just read: stop the tasks that the launch wants to be stopped by themselves. */
KILN_API void kiln_slurm_stop_unwanted(KilnSlurm *slurm);
/* The queue was just read: take tasks that wait out of it, and have those that run save and end;
 * kill those that do not. To be repeated until no task is left. */
KILN_API KILN_NODISCARD KilnStatus kiln_slurm_stop_tasks(KilnSlurm *slurm, KilnError *err);
/* The job ended by itself: its task is to leave the queue. */
KILN_API KILN_NODISCARD KilnStatus kiln_slurm_leave(KilnSlurm *slurm, const KilnSlurmTask *task,
                                                    KilnError *err);
/* If the queue was just `read`, cancel tasks whose job has ended, but which Slurm keeps or runs
 * again; forget those that have left the queue, or do not for long. */
KILN_API void kiln_slurm_clear_left(KilnSlurm *slurm, bool read);

#endif
