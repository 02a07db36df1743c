/* What a job's process tells its launcher while it runs: one JSON object a line. */
#ifndef KILN_SWEEP_JOB_REPORT_H
#define KILN_SWEEP_JOB_REPORT_H

#include "sweep/jobs.h"
#include "sweep/sweep.h"

struct KilnReporter {
    int fd;
    const char *metric; /* the one that progress shows */
};

/* Take in bytes that the job's process wrote; what can't be read is left out. */
void kiln_report_read(KilnArena *arena, KilnJob *job, const char *bytes, size_t size);

#endif
