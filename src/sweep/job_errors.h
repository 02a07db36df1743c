/* What is wrong with the configs of many jobs: each message once, with the jobs. */
#ifndef KILN_SWEEP_JOB_ERRORS_H
#define KILN_SWEEP_JOB_ERRORS_H

#include "kiln/config.h"

enum { KILN_FINDING_JOBS = 8 };

typedef struct KilnJobError {
    char *text;
    bool warning;
    size_t jobs[KILN_FINDING_JOBS]; /* the first ones */
    size_t count;
} KilnJobError;

/* A zeroed one is ready for use. */
typedef struct KilnJobErrors {
    KilnJobError *items;
    size_t count, capacity;
    size_t left_out;   /* messages beyond those that are kept */
    KilnStatus status; /* of the first error */
} KilnJobErrors;

/* Add what composing or checking job `job` gave, which ended with `status`. */
void kiln_job_errors_add(KilnJobErrors *job_errors, const KilnErrors *errors, KilnStatus status,
                         size_t job);
/* Add one message of an error. */
void kiln_job_errors_print(KilnJobErrors *job_errors, const KilnError *err, size_t job);
/* Hand all over, each with the numbers of its jobs unless it concerns all `n_jobs`
 * or `n_jobs` is 0. Returns the first error's status. */
KilnStatus kiln_job_errors_give(const KilnJobErrors *job_errors, size_t n_jobs, KilnErrors *errors);
void kiln_job_errors_release(KilnJobErrors *job_errors);

#endif
