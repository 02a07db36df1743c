/* Errors in the configs of many jobs: each message once, with its jobs. */
#ifndef KILN_SWEEP_JOB_ERRORS_H
#define KILN_SWEEP_JOB_ERRORS_H

#include "kiln/embed/config.h"

enum { KILN_JOB_ERROR_JOBS = 8 };

typedef struct KilnJobError {
    char *text;
    bool warning;
    size_t jobs[KILN_JOB_ERROR_JOBS]; /* the first ones */
    size_t count;
} KilnJobError;

/* Ready when zeroed. */
typedef struct KilnJobErrors {
    KilnJobError *items;
    size_t count, capacity;
    size_t left_out;   /* messages beyond the limit */
    KilnStatus status; /* of the first error */
} KilnJobErrors;

/* Add the messages of composing and checking job `job`, and its status. */
void kiln_job_errors_add(KilnJobErrors *job_errors, const KilnErrors *errors, KilnStatus status,
                         size_t job);
/* Add one error. */
void kiln_job_errors_add_one(KilnJobErrors *job_errors, const KilnError *err, size_t job);
/* Add all messages to `errors`, each with the numbers of its jobs, unless it is about all `n_jobs`
 * or `n_jobs` is 0. Returns the first error's status. */
KilnStatus kiln_job_errors_report(const KilnJobErrors *job_errors, size_t n_jobs,
                                  KilnErrors *errors);
void kiln_job_errors_release(KilnJobErrors *job_errors);

#endif
