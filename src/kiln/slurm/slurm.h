/* Slurm's commands, for launcher/slurm: the script and the sbatch line of a job array, the queue,
 * and the record of what was submitted. */
#ifndef KILN_SLURM_H
#define KILN_SLURM_H

#include "kiln/field.h"
#include "kiln/tools/program.h"

/* Options of the launcher, with the names of Hydra's submitit launcher. NULL: not given to sbatch.
 */
typedef struct KilnSlurmOptions {
    int64_t *timeout_min, *cpus_per_task, *gpus_per_node;
    double *mem_gb;
    char *partition, *qos, *account, *constraint, *exclude, *gres;
    int64_t nodes, tasks_per_node;
    char *name, *comment;
    int64_t array_parallelism, signal_delay_s, max_num_timeout;
    char **setup;
    size_t setup_count;
    char **srun_args;
    size_t srun_args_count;
    KilnPairStr *additional_parameters;
    size_t additional_parameters_count;
} KilnSlurmOptions;

/* ---- sbatch_script.c: what is submitted ------------------------------------------------- */

/* Slurm's limit of array indexes is 1001 by default, so jobs of an array are in one block of
 * numbers: an index is a job's number in its block. */
enum { KILN_SLURM_BLOCK = 1000 };

/* A job array. */
typedef struct KilnSlurmBatch {
    const size_t *jobs; /* rising numbers, of one block */
    size_t count;
    int64_t at_once;            /* how many run at a time */
    const char *const *command; /* KilnLaunch.command */
    const char *script;         /* the script's path */
    const char *dir;            /* of the output of the script itself */
} KilnSlurmBatch;

/* Append the script. */
KILN_API void kiln_slurm_script(const KilnSlurmOptions *options, const KilnSlurmBatch *batch,
                                KilnText *ret);
/* The sbatch line. */
KILN_API void kiln_slurm_line(const KilnSlurmOptions *options, const KilnSlurmBatch *batch,
                              KilnArgv *ret);
/* "time limit of 30 min", in `buf` (64 bytes). */
KILN_API const char *kiln_slurm_limit(const KilnSlurmOptions *options, char *buf);
/* Submit it; the script's file is there. *ret_array: the number of the array's job. */
KILN_API KILN_NODISCARD KilnStatus kiln_slurm_submit(const KilnSlurmOptions *options,
                                                     const KilnSlurmBatch *batch,
                                                     int64_t *ret_array, KilnError *err);

/* ---- slurm_queue.c: what Slurm knows ---------------------------------------------------- */

typedef enum KilnSlurmPhase {
    KILN_SLURM_WAITS,
    KILN_SLURM_RUNS,
    KILN_SLURM_ENDS, /* it is about to leave the queue, or to wait again */
    KILN_SLURM_GONE
} KilnSlurmPhase;

/* A task of an array. */
typedef struct KilnSlurmEntry {
    int64_t array, index;
    const char *state;  /* Slurm's name: "NODE_FAIL" */
    bool held;          /* Slurm failed to start it, and does not try again */
    const char *script; /* path of the script */
} KilnSlurmEntry;

/* The user's jobs, those that have ended lately among them. A zeroed one is empty. */
typedef struct KilnSlurmQueue {
    char *text;
    KilnSlurmEntry *entries; /* in order of array and index */
    size_t count, capacity;
} KilnSlurmQueue;

/* Ask squeue for all of them at once. On failure the queue is as before. */
KILN_API KILN_NODISCARD KilnStatus kiln_slurm_queue_read(KilnSlurmQueue *queue, KilnError *err);
KILN_API void kiln_slurm_queue_release(KilnSlurmQueue *queue);
/* NULL: it is not there. */
KILN_API const KilnSlurmEntry *kiln_slurm_queue_find(const KilnSlurmQueue *queue, int64_t array,
                                                     int64_t index);
/* The array that was submitted with that script; 0: none is there. */
KILN_API int64_t kiln_slurm_queue_array(const KilnSlurmQueue *queue, const char *script);
/* `entry` NULL: GONE. */
KILN_API KilnSlurmPhase kiln_slurm_phase(const KilnSlurmEntry *entry);

/* ---- slurm_record.c: what was submitted, for a launcher that resumes the sweep ---------- */

/* The file `submitted` in .kiln/slurm of the sweep's folder. */
typedef struct KilnSlurmRecord {
    char *dir; /* .kiln/slurm, absolute */
    int fd;
    int64_t token;       /* of this sweep, in the names of its scripts */
    int64_t *submission; /* by job: the number of its last one, from 1; 0: none, or it has ended */
    size_t n_jobs, jobs_capacity;
    int64_t *array; /* by submission; 0: not known */
    size_t n_submissions, arrays_capacity;
} KilnSlurmRecord;

/* Read it, and open it for appending. `sweep`: the sweep's folder. */
KILN_API KILN_NODISCARD KilnStatus kiln_slurm_record_open(const char *sweep, KilnSlurmRecord *ret,
                                                          KilnError *err);
/* Accepts a zeroed one. */
KILN_API void kiln_slurm_record_close(KilnSlurmRecord *record);
/* Before jobs are submitted: they belong to a new submission, *ret. On disk when it returns. */
KILN_API KILN_NODISCARD KilnStatus kiln_slurm_record_begin(KilnSlurmRecord *record,
                                                           const size_t *jobs, size_t n,
                                                           int64_t *ret, KilnError *err);
/* They were. */
KILN_API KILN_NODISCARD KilnStatus kiln_slurm_record_array(KilnSlurmRecord *record,
                                                           int64_t submission, int64_t array,
                                                           KilnError *err);
/* A job has ended, and belongs to no submission. */
KILN_API KILN_NODISCARD KilnStatus kiln_slurm_record_end(KilnSlurmRecord *record, size_t job,
                                                         KilnError *err);
/* The submission of a job; 0: none. */
KILN_API int64_t kiln_slurm_record_find(const KilnSlurmRecord *record, size_t job);
/* The path of a submission's script; owned by the caller. NULL when memory is out. */
KILN_API char *kiln_slurm_record_script(const KilnSlurmRecord *record, int64_t submission);
/* Write a submission's script. */
KILN_API KILN_NODISCARD KilnStatus kiln_slurm_record_write(const char *script, const KilnText *text,
                                                           KilnError *err);

#endif
